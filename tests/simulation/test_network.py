"""TCP between hosts: order, refusal, cuts, resets, half-open and half-closed connections."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable, Iterator

import pytest

from logboat.jepsen_style.simulation import Host, HostFailed, SimEscape, World

PORT = 1000

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def forever(_: Host) -> None:
    await asyncio.get_running_loop().create_future()


async def upper(_: Host) -> None:
    """A server that answers each line in capitals."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(line.upper())
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    await asyncio.start_server(answer, None, PORT)
    await asyncio.get_running_loop().create_future()


async def ask(writer: asyncio.StreamWriter, reader: asyncio.StreamReader, line: bytes) -> bytes:
    writer.write(line)
    await writer.drain()
    return await reader.readline()


class Stage(World):
    """Keeps the connections that tests make, until the run is over."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.connections: list[Connection] = []


@pytest.fixture
def world() -> Iterator[Stage]:
    with Stage(1) as world:
        world.host("client").start(forever)
        world.host("server").start(upper)
        world.run(0.01)
        yield world


def hosts(world: Stage) -> tuple[Host, Host]:
    return world.hosts["client"], world.hosts["server"]


def dial(world: Stage, name: str = "server", port: int = PORT) -> Connection:
    connection = world.call(world.hosts["client"], asyncio.open_connection(name, port))
    world.connections.append(connection)
    return connection


def test_two_hosts_play_ping_pong_over_streams(world: Stage) -> None:
    client, _ = hosts(world)

    async def play() -> None:
        reader, writer = await asyncio.open_connection("server", PORT)
        assert writer.get_extra_info("peername")[1] == PORT
        for number in range(100):
            assert await ask(writer, reader, b"ping %d\n" % number) == b"PING %d\n" % number
        writer.close()
        await writer.wait_closed()

    world.call(client, play())
    world.run(1)
    assert world.network.open_connections(client) == 0


def test_a_small_message_takes_about_one_latency(world: Stage) -> None:
    client, server = hosts(world)
    for link in (world.network.link(client, server), world.network.link(server, client)):
        link.latency_s, link.jitter_s = 0.050, 0.0
    reader, writer = dial(world)
    began = world.now
    world.call(client, ask(writer, reader, b"x\n"))
    assert world.now - began == pytest.approx(0.1, abs=0.001)


def test_bandwidth_bounds_a_large_transfer(world: Stage) -> None:
    client, server = hosts(world)
    world.network.link(client, server).bytes_per_s = 1e6
    reader, writer = dial(world)
    began = world.now
    world.call(client, ask(writer, reader, b"x" * 50_000 + b"\n"))
    assert world.now - began == pytest.approx(0.05, abs=0.005)


def test_nobody_listens_is_refused_and_unknown_names_do_not_resolve(world: Stage) -> None:
    client, server = hosts(world)
    with pytest.raises(ConnectionRefusedError):
        world.call(client, asyncio.open_connection("server", 9))
    with pytest.raises(socket.gaierror):
        world.call(client, asyncio.open_connection("nowhere", 9))
    world.network.set_resolvable(server, False)
    with pytest.raises(socket.gaierror):
        world.call(client, asyncio.open_connection("server", PORT))
    dial(world, server.ip)


def test_a_port_is_bound_once_and_a_loopback_port_is_private(world: Stage) -> None:
    client, server = hosts(world)

    async def listen(address: str | None, port: int) -> int:
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(asyncio.Protocol, address, port)
        return int(listening.sockets[0].getsockname()[1])

    with pytest.raises(OSError, match="Address already in use"):
        world.call(server, listen(None, PORT))
    with pytest.raises(OSError, match="Cannot assign requested address"):
        world.call(server, listen("client", 5))
    private = world.call(server, listen("127.0.0.1", 0))
    assert private > 0
    world.connections.append(world.call(server, asyncio.open_connection("127.0.0.1", private)))
    with pytest.raises(ConnectionRefusedError):
        world.call(client, asyncio.open_connection("server", private))


def test_nothing_reaches_a_protocol_before_connection_made(world: Stage) -> None:
    events: list[str] = []

    class Recorder(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            events.append("made")

        def data_received(self, data: bytes) -> None:
            events.append(data.decode())

        def connection_lost(self, exc: Exception | None) -> None:
            events.append("lost")

    async def listen(host: Host) -> None:
        await asyncio.get_running_loop().create_server(Recorder, None, 7)
        await forever(host)

    client = world.hosts["client"]
    late = world.host("late")
    late.start(listen)
    world.run(1)
    # The kernel accepts and receives while the process stands still.
    late.pause()

    async def speak() -> None:
        _, writer = await asyncio.open_connection("late", 7)
        writer.write(b"early")
        writer.close()

    world.call(client, speak())
    world.run(1)
    assert events == []
    late.resume()
    world.run(1)
    assert events == ["made", "early", "lost"]


def test_a_slow_reader_holds_the_writer(world: Stage) -> None:
    client = world.hosts["client"]
    read: list[int] = []

    async def slow(host: Host) -> None:
        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(5)
            read.append(len(await reader.read()))
            writer.close()

        await asyncio.start_server(take, None, 7)
        await forever(host)

    world.host("slow").start(slow)
    world.run(0.1)

    async def pour() -> int:
        reader, writer = await asyncio.open_connection("slow", 7)
        world.connections.append((reader, writer))
        for _ in range(64):
            writer.write(bytes(65536))
            await writer.drain()
        writer.write_eof()
        assert await reader.read() == b""
        return 64 * 65536

    began = world.now
    assert world.call(client, pour()) == 4 << 20
    assert world.now - began > 5
    assert read == [4 << 20]


def test_a_killed_process_is_heard_of_and_its_port_refuses(world: Stage) -> None:
    client, server = hosts(world)
    reader, writer = dial(world)
    assert world.call(client, ask(writer, reader, b"hello\n")) == b"HELLO\n"
    server.kill()
    assert world.call(client, reader.read()) == b""
    with pytest.raises(ConnectionRefusedError):
        dial(world)
    server.start(upper)
    world.run(0.01)
    reader, writer = dial(world)
    assert world.call(client, ask(writer, reader, b"again\n")) == b"AGAIN\n"


def test_death_with_unread_data_resets(world: Stage) -> None:
    client, server = hosts(world)
    reader, writer = dial(world)
    world.call(client, ask(writer, reader, b"x\n"))
    server.pause()
    writer.write(b"never read\n")
    world.run(1)
    server.kill()
    with pytest.raises(ConnectionResetError):
        world.call(client, reader.readline())


def test_a_paused_process_accepts_and_answers_after_it_resumes(world: Stage) -> None:
    client, server = hosts(world)
    server.pause()
    reader, writer = dial(world)
    answer = client.spawn(ask(writer, reader, b"late\n"))
    world.run(10)
    assert not answer.done()
    server.resume()
    world.run(1)
    assert answer.result() == b"LATE\n"


@pytest.mark.parametrize("one_way", [True, False])
def test_a_cut_holds_what_is_sent_and_loses_nothing(world: Stage, one_way: bool) -> None:
    client, server = hosts(world)
    reader, writer = dial(world)
    if one_way:
        world.network.block(server, client)
    else:
        world.network.partition([client], [server])
    answer = client.spawn(ask(writer, reader, b"held\n"))
    world.run(30)
    assert not answer.done()
    world.network.heal()
    world.run(2)
    assert answer.result() == b"HELD\n"


def test_connecting_through_a_cut_retries_and_then_times_out(world: Stage) -> None:
    client, server = hosts(world)
    world.network.block(client, server)
    early = client.spawn(asyncio.open_connection("server", PORT))
    world.run(5)
    world.network.heal()
    world.run(10)
    assert early.done()
    world.network.block(server, client)
    began = world.now
    with pytest.raises(TimeoutError):
        world.call(client, asyncio.open_connection("server", PORT), within=1000)
    assert world.now - began == pytest.approx(127, abs=1)


def test_a_reset_reaches_both_ends(world: Stage) -> None:
    client, server = hosts(world)
    reader, writer = dial(world)
    world.call(client, ask(writer, reader, b"x\n"))
    world.network.reset(client, server)
    with pytest.raises(ConnectionResetError):
        world.call(client, reader.readline())
    world.run(1)
    assert world.network.open_connections(server) == 0


def test_a_host_without_power_is_silent_and_answers_old_connections_with_reset(
    world: Stage,
) -> None:
    client, server = hosts(world)
    reader, writer = dial(world)
    world.call(client, ask(writer, reader, b"x\n"))
    server.power_off()
    answer = client.spawn(reader.readline())
    world.run(60)
    assert not answer.done()
    server.start(upper)
    world.run(1)
    assert not answer.done()
    writer.write(b"who are you?\n")
    world.run(1)
    with pytest.raises(ConnectionResetError):
        answer.result()


def test_a_silent_peer_is_given_up_after_all_retransmissions(world: Stage) -> None:
    client, server = hosts(world)
    reader, writer = dial(world)
    server.power_off()
    writer.write(b"hello?\n")
    with pytest.raises(ConnectionResetError):
        world.call(client, reader.readline(), within=2000)


def test_writing_to_a_closed_peer_fails(world: Stage) -> None:
    client, server = hosts(world)
    reader, writer = dial(world)
    world.call(client, ask(writer, reader, b"x\n"))
    server.kill()
    world.run(1)

    async def insist() -> None:
        for _ in range(10):
            writer.write(b"more\n")
            await writer.drain()
            await asyncio.sleep(0.1)

    with pytest.raises(ConnectionError):
        world.call(client, insist())


def test_an_exception_in_a_protocol_closes_the_connection_and_fails_the_run(
    world: Stage,
) -> None:
    class Broken(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            raise ValueError("cannot parse")

    async def listen(host: Host) -> None:
        await asyncio.get_running_loop().create_server(Broken, None, 7)
        await forever(host)

    world.host("broken").start(listen)
    world.run(0.1)
    client = world.hosts["client"]
    reader, writer = dial(world, "broken", 7)
    writer.write(b"x")
    with pytest.raises(HostFailed, match="cannot parse"):
        world.run(1)
    assert world.call(client, reader.read()) == b""


def test_closing_a_server_refuses_newcomers_and_waits_for_the_others(world: Stage) -> None:
    client = world.hosts["client"]
    closed: list[float] = []

    async def main(host: Host) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(serve, None, 7)
        await asyncio.sleep(1)
        server.close()
        await server.wait_closed()
        closed.append(world.now)
        await forever(host)

    world.host("brief").start(main)
    world.run(0.5)
    _, writer = dial(world, "brief", 7)
    world.run(2)
    with pytest.raises(ConnectionRefusedError):
        world.call(client, asyncio.open_connection("brief", 7))
    assert closed == []
    writer.close()
    world.run(1)
    assert len(closed) == 1


def test_tls_is_refused_by_name(world: Stage) -> None:
    client = world.hosts["client"]
    with pytest.raises(SimEscape, match="TLS"):
        world.call(client, asyncio.open_connection("server", PORT, ssl=True))


class Collector(asyncio.BufferedProtocol):
    """Reads through a buffer of its own size, and stops now and then."""

    def __init__(self, into: bytearray) -> None:
        self._into = into
        self._buffer = bytearray(3000)
        self._reads = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._into += self._buffer[:nbytes]
        self._reads += 1
        if self._reads % 50 == 0:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(0.01, self._transport.resume_reading)


Fault = Callable[[World, Host, Host], None]
FAULTS: tuple[Fault, ...] = (
    lambda world, one, two: world.network.partition([one], [two]),
    lambda world, one, two: world.network.block(two, one),
    lambda world, one, two: world.network.block(one, two),
    lambda world, one, two: two.pause(),
    lambda world, one, two: two.stall(0.3),
)


@pytest.mark.parametrize("seed", range(8))
def test_streams_stay_intact_under_cuts_splits_losses_and_pauses(seed: int) -> None:
    sent, received = bytearray(), bytearray()
    dice = random.Random(seed)

    async def listen(host: Host) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_server(lambda: Collector(received), None, PORT)
        await forever(host)

    async def pour(host: Host) -> None:
        await asyncio.sleep(0.1)
        _, writer = await asyncio.open_connection("server", PORT)
        for _ in range(150):
            piece = dice.randbytes(dice.randrange(1, 20_000))
            sent.extend(piece)
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(dice.random() * 0.02)
        writer.close()
        await forever(host)

    with World(seed) as world:
        world.network.defaults.split = 0.5
        world.network.defaults.loss = 0.05
        client, server = world.host("client"), world.host("server")
        server.start(listen)
        client.start(pour)
        for _ in range(8):
            world.run(dice.random() * 0.5)
            dice.choice(FAULTS)(world, client, server)
            world.run(dice.random() * 2)
            world.network.heal()
            server.resume()
        world.run(30)
    assert sent == received
    assert len(sent) > 1_000_000


def test_data_before_a_reset_is_still_read(world: Stage) -> None:
    client = world.hosts["client"]

    async def listen(host: Host) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(b"last words\n")
            await asyncio.sleep(0.1)
            host.kill()

        await asyncio.start_server(serve, None, 7)
        await forever(host)

    world.host("brief").start(listen)
    world.run(0.1)

    async def talk(settle: Callable[[float], Awaitable[None]]) -> bytes:
        reader, writer = await asyncio.open_connection("brief", 7)
        world.connections.append((reader, writer))
        writer.write(b"x\n")
        await settle(1)
        return await reader.readline()

    assert world.call(client, talk(asyncio.sleep)) == b"last words\n"


def test_a_writer_that_waits_for_room_hears_of_its_peer_s_death(world: Stage) -> None:
    client = world.hosts["client"]

    async def listen(host: Host) -> None:
        async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(1000)

        await asyncio.start_server(ignore, None, 7)
        await forever(host)

    deaf = world.host("deaf")
    deaf.start(listen)
    world.run(0.1)
    _, writer = dial(world, "deaf", 7)

    async def pour() -> None:
        writer.write(bytes(4 << 20))
        await writer.drain()

    waiting = client.spawn(pour())
    world.run(1)
    # Not even reading: the error must come through the writing side.
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    deaf.kill()
    world.run(1)
    with pytest.raises(ConnectionResetError):
        waiting.result()
