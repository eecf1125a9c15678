"""The proxy of the executor on processes, on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from uuid import UUID

import pytest

from logboat.jepsen_style.processes.links import CLIENTS, Links, party
from logboat.jepsen_style.processes.proxy import Proxy, dialer_of
from logboat.jepsen_style.schedule import sealed_frames
from logboat.node.internode_frame import KAFKA_SERVICE
from logboat.raftlog import Channel, Credential, accept_factory, dial
from logboat.raftlog.handshake import DialerHandshake
from logboat.seam import accept_no_more

PRODUCE, FETCH, METADATA = 0, 1, 3
SOON = 0.05
"""How long a test looks for what must not come."""
PATIENCE = 30.0


def request(api: int, correlation: int, body: bytes = b"body") -> bytes:
    data = api.to_bytes(2, "big") + b"\0\1" + correlation.to_bytes(4, "big") + body
    return len(data).to_bytes(4, "big") + data


def answer(correlation: int, body: bytes = b"answer") -> bytes:
    data = correlation.to_bytes(4, "big") + body
    return len(data).to_bytes(4, "big") + data


class Scene:
    """A node that answers every request and remembers what it got, behind a proxy."""

    def __init__(self) -> None:
        self.links = Links()
        self.there = self.links.link(CLIENTS, party(1))
        self.back = self.links.link(party(1), CLIENTS)
        self.got = bytearray()
        self.news = asyncio.Condition()
        self.ended = asyncio.Event()
        self._served: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._served[task] = writer

    async def close(self) -> None:
        for writer in self._served.values():
            writer.transport.abort()
        await asyncio.gather(*self._served)

    async def has_got(self, expected: bytes) -> None:
        async with self.news:
            await self.news.wait_for(lambda: self.got == expected)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                prefix = await reader.readexactly(4)
                self.got += prefix
                data = await reader.readexactly(int.from_bytes(prefix, "big"))
                self.got += data
                async with self.news:
                    self.news.notify_all()
                writer.write(answer(int.from_bytes(data[4:8], "big"), data[8:]))
                await writer.drain()
        except asyncio.IncompleteReadError as error:
            self.got += error.partial
        except OSError:
            pass
        finally:
            self.ended.set()
            writer.close()


@asynccontextmanager
async def scene() -> AsyncIterator[tuple[Scene, Proxy, asyncio.StreamReader, asyncio.StreamWriter]]:
    made = Scene()
    server = await asyncio.start_server(made.accept, "127.0.0.1", 0)
    proxy = Proxy(made.links, 1, server.sockets[0].getsockname()[:2], Random(1))
    reader, writer = await asyncio.open_connection(*await proxy.start())
    try:
        async with asyncio.timeout(PATIENCE):
            yield made, proxy, reader, writer
    finally:
        writer.close()
        await proxy.close()
        await accept_no_more(server)
        await made.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def go() -> None:
        await test()

    asyncio.run(go())


async def frame(reader: asyncio.StreamReader) -> bytes:
    prefix = await reader.readexactly(4)
    return prefix + await reader.readexactly(int.from_bytes(prefix, "big"))


async def silent(reader: asyncio.StreamReader) -> bool:
    try:
        await asyncio.wait_for(reader.readexactly(1), SOON)
    except TimeoutError:
        return True
    return False


def test_frames_pass_unchanged_whatever_their_size() -> None:
    async def test() -> None:
        async with scene() as (made, _, reader, writer):
            for number, size in enumerate((0, 1, 100, 65_536, 300_000)):
                body = bytes([number]) * size
                sent = request(PRODUCE, number, body)
                writer.write(sent)
                assert await frame(reader) == answer(number, body)
                assert made.got.endswith(sent)

    run(test)


def test_only_answers_to_the_named_api_are_lost() -> None:
    async def test() -> None:
        async with scene() as (made, proxy, reader, writer):
            made.back.lost_apis[PRODUCE] = True
            asked = [request(PRODUCE, 1), request(METADATA, 2), request(FETCH, 3)]
            writer.write(b"".join(asked))
            assert await frame(reader) == answer(2, b"body")
            assert await frame(reader) == answer(3, b"body")
            assert bytes(made.got) == b"".join(asked)
            assert proxy.lost_frames == 1

    run(test)


def test_a_lost_answer_that_is_not_silent_ends_the_connection() -> None:
    async def test() -> None:
        async with scene() as (made, _, reader, writer):
            made.back.lost_apis[PRODUCE] = False
            writer.write(request(PRODUCE, 1))
            with pytest.raises((EOFError, OSError)):
                await frame(reader)
            assert bytes(made.got) == request(PRODUCE, 1)

    run(test)


def test_only_requests_of_the_named_api_are_lost() -> None:
    async def test() -> None:
        async with scene() as (made, _, reader, writer):
            made.there.lost_apis[PRODUCE] = True
            writer.write(request(PRODUCE, 1, b"x" * 200_000) + request(METADATA, 2))
            assert await frame(reader) == answer(2, b"body")
            assert bytes(made.got) == request(METADATA, 2)

    run(test)


def test_a_one_way_cut_lets_the_request_through_and_holds_the_answer() -> None:
    async def test() -> None:
        async with scene() as (made, _, reader, writer):
            made.back.cut()
            writer.write(request(PRODUCE, 1))
            await made.has_got(request(PRODUCE, 1))
            assert await silent(reader)
            made.back.join()
            assert await frame(reader) == answer(1, b"body")

    run(test)


def test_a_link_is_open_again_when_its_last_cut_is_healed() -> None:
    async def test() -> None:
        async with scene() as (made, _, reader, writer):
            made.there.cut()
            made.there.cut()
            writer.write(request(PRODUCE, 1))
            made.there.join()
            assert await silent(reader)
            assert not made.got
            made.there.join()
            assert await frame(reader) == answer(1, b"body")

    run(test)


def test_the_end_of_a_connection_does_not_pass_a_cut_link() -> None:
    async def test() -> None:
        async with scene() as (made, _, reader, writer):
            writer.write(request(PRODUCE, 1))
            await frame(reader)
            made.there.cut()
            writer.close()
            await asyncio.sleep(SOON)
            assert not made.ended.is_set()
            made.there.join()
            await made.ended.wait()

    run(test)


def test_a_torn_frame_breaks_off_in_its_middle() -> None:
    async def test() -> None:
        async with scene() as (made, proxy, reader, writer):
            made.there.loss = 1.0
            sent = request(PRODUCE, 1, b"x" * 1000)
            writer.write(sent)
            with pytest.raises((EOFError, OSError)):
                await frame(reader)
            await made.ended.wait()
            assert 0 < len(made.got) < len(sent)
            assert sent.startswith(bytes(made.got))
            assert proxy.torn_frames == 1

    run(test)


def test_frames_are_delayed_side_by_side_not_one_after_the_other() -> None:
    async def test() -> None:
        async with scene() as (made, _, reader, writer):
            made.there.latency_s = 0.2
            clock = asyncio.get_running_loop().time
            began = clock()
            writer.write(b"".join(request(PRODUCE, number) for number in range(60)))
            for number in range(60):
                assert await frame(reader) == answer(number, b"body")
            # One after the other they would need 12 s.
            assert 0.2 <= clock() - began < 10.0

    run(test)


def test_a_reset_ends_every_connection() -> None:
    async def test() -> None:
        async with scene() as (made, proxy, reader, writer):
            writer.write(request(PRODUCE, 1))
            await frame(reader)
            proxy.reset()
            with pytest.raises((EOFError, OSError)):
                await frame(reader)
            await made.ended.wait()

    run(test)


def credential(node_id: int) -> Credential:
    return Credential(
        node_id=node_id, directory_id=UUID(int=node_id), cluster_id="a cluster", secret=b"s" * 32
    )


def hello_of(node_id: int, service: str) -> bytes:
    dialer = DialerHandshake(credential(node_id), Random(1), service=service, expected_node_id=2)
    hello = dialer.first_message()
    assert hello is not None
    return len(hello).to_bytes(4, "big") + hello


def test_the_proxy_reads_who_dials_and_for_what_from_the_hello_of_the_real_handshake() -> None:
    hello = hello_of(7, KAFKA_SERVICE)
    assert dialer_of(hello) == party(7)
    assert sealed_frames.service_of(hello[4:]) == sealed_frames.KAFKA
    assert sealed_frames.service_of(hello_of(7, "quorum")[4:]) == b"quorum"


class Nodes:
    """Node 1 asks node 2 by real channels, through a proxy; node 2 echoes."""

    def __init__(self, proxy: Proxy, host: str, port: int) -> None:
        self.proxy = proxy
        self.there = proxy._links.link(party(1), party(2))
        self.back = proxy._links.link(party(2), party(1))
        self.got: list[bytes] = []
        self._address = host, port
        self._channels: list[Channel] = []

    def on_channel(self, channel: Channel) -> None:
        self._channels.append(channel)

        def on_frame(payload: memoryview) -> None:
            self.got.append(bytes(payload))
            channel.send([bytes(8), bytes(payload)])

        channel.set_receiver(on_frame, lambda: None)

    async def dial(self, service: str) -> tuple[Channel, asyncio.Queue[bytes | None]]:
        """A channel, and what comes over it; None at its end."""
        host, port = self._address
        channel = await dial(
            host,
            port,
            credential=credential(1),
            service=service,
            expected_node_id=2,
            rng=Random(2),
            deadline=asyncio.get_running_loop().time() + PATIENCE,
        )
        came: asyncio.Queue[bytes | None] = asyncio.Queue(16)
        channel.set_receiver(
            lambda payload: came.put_nowait(bytes(payload)), lambda: came.put_nowait(None)
        )
        self._channels.append(channel)
        return channel, came

    def close(self) -> None:
        for channel in self._channels:
            channel.close()


@asynccontextmanager
async def nodes() -> AsyncIterator[Nodes]:
    loop = asyncio.get_running_loop()
    acceptor = accept_factory(credential(2), Random(3), lambda channel: made.on_channel(channel))
    server = await loop.create_server(acceptor, "127.0.0.1", 0)
    links = Links()
    proxy = Proxy(links, 2, server.sockets[0].getsockname()[:2], Random(1), between_nodes=True)
    made = Nodes(proxy, *await proxy.start())
    try:
        async with asyncio.timeout(PATIENCE):
            yield made
    finally:
        made.close()
        await proxy.close()
        await accept_no_more(server)


ALTER_PARTITION, HEARTBEAT = 56, 63


def sealed_request(api: int, body: bytes = b"body") -> list[bytes]:
    """As one node sends it to another."""
    return [bytes(sealed_frames.ORIGIN_BYTES), request(api, 1, body)[4:]]


def test_between_nodes_all_passes_unchanged_whatever_the_service() -> None:
    async def test() -> None:
        async with nodes() as made:
            for service in (KAFKA_SERVICE, "quorum"):
                made.got.clear()
                channel, came = await made.dial(service)
                for size in (0, 1, 70_000, 300_000):
                    sent = sealed_request(HEARTBEAT, bytes(size))
                    channel.send(sent)
                    assert await came.get() == bytes(8) + b"".join(sent)

    run(test)


def test_between_nodes_too_only_answers_to_the_named_api_are_lost() -> None:
    async def test() -> None:
        async with nodes() as made:
            made.back.lost_apis[ALTER_PARTITION] = False
            channel, came = await made.dial(KAFKA_SERVICE)
            channel.send(sealed_request(HEARTBEAT))
            assert await came.get() is not None
            channel.send(sealed_request(ALTER_PARTITION))
            assert await came.get() is None
            assert len(made.got) == 2
            assert made.proxy.lost_frames == 1

    run(test)


def test_what_comes_after_a_lost_frame_between_nodes_is_lost_with_it() -> None:
    """Its sequence would have a gap, which tells the other side."""

    async def test() -> None:
        async with nodes() as made:
            made.there.lost_apis[ALTER_PARTITION] = True
            channel, came = await made.dial(KAFKA_SERVICE)
            channel.send(sealed_request(ALTER_PARTITION))
            channel.send(sealed_request(HEARTBEAT))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(came.get(), SOON)
            assert made.got == []
            other, answered = await made.dial(KAFKA_SERVICE)
            other.send(sealed_request(HEARTBEAT))
            assert await answered.get() is not None

    run(test)


def test_the_quorums_frames_are_not_taken_for_kafkas() -> None:
    async def test() -> None:
        async with nodes() as made:
            made.there.lost_apis[ALTER_PARTITION] = False
            channel, came = await made.dial("quorum")
            channel.send(sealed_request(ALTER_PARTITION))
            assert await came.get() is not None

    run(test)
