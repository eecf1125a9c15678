"""The inter-node connection: proven at both ends, framed, in order, closed at anything odd.

Every test here runs without TLS and inside it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import pickle
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from random import Random
from uuid import UUID

import pytest

from logboat.raftlog import (
    Channel,
    ChannelClosed,
    ChannelLimits,
    ChannelTls,
    Credential,
    HandshakeFailed,
    accept_factory,
    dial,
)
from logboat.raftlog.frame_mac import FrameMac
from logboat.seam import accept_no_more
from tests.raftlog.certificates import Authority
from tests.waiting import until

SECRET = b"s" * 32
WITHIN_S = 30.0

protection: dict[int, ChannelTls] = {}
"""TLS of each node in the test under way."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(params=["plain", "tls"], autouse=True)
def protected(request: pytest.FixtureRequest, authority: Authority) -> Iterator[None]:
    if request.param == "tls":
        protection.update({node_id: authority.tls(f"node-{node_id}") for node_id in (1, 2)})
    yield
    protection.clear()


def credential(node_id: int, *, secret: bytes = SECRET, cluster: str = "c") -> Credential:
    return Credential(secret, node_id, UUID(int=node_id), cluster, protection.get(node_id))


async def connection(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Of somebody who speaks the protocol by hand, as node 1 as far as TLS is concerned."""
    tls = protection.get(1)
    if tls is None:
        return await asyncio.open_connection("127.0.0.1", port)
    return await asyncio.open_connection(
        "127.0.0.1", port, ssl=tls.dialing, server_hostname="node-2"
    )


class Inbox:
    """Collects what a channel delivers."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.frames: list[bytes] = []
        self.closed = asyncio.Event()
        self.arrived = asyncio.Event()
        channel.set_receiver(self._on_frame, self.closed.set)

    def _on_frame(self, payload: memoryview) -> None:
        self.frames.append(bytes(payload))
        self.arrived.set()

    async def count(self, wanted: int) -> list[bytes]:
        async with asyncio.timeout(WITHIN_S):
            while len(self.frames) < wanted:
                self.arrived.clear()
                await self.arrived.wait()
        return self.frames


class Listener:
    def __init__(self, port: int) -> None:
        self.port = port
        self.accepted: asyncio.Queue[Channel] = asyncio.Queue()

    async def dial(
        self,
        *,
        secret: bytes = SECRET,
        cluster: str = "c",
        expected_node_id: int = 2,
        max_frame: int = 1 << 26,
    ) -> Channel:
        return await dial(
            "127.0.0.1",
            self.port,
            credential=credential(1, secret=secret, cluster=cluster),
            service="test",
            expected_node_id=expected_node_id,
            rng=Random(1),
            deadline=asyncio.get_running_loop().time() + WITHIN_S,
            max_frame=max_frame,
        )

    async def pair(self, **options: int) -> tuple[Channel, Channel]:
        channel = await self.dial(**options)  # type: ignore[arg-type]
        return channel, await asyncio.wait_for(self.accepted.get(), WITHIN_S)


@asynccontextmanager
async def listening(limits: ChannelLimits | None = None) -> AsyncIterator[Listener]:
    opened: list[Channel] = []

    def on_channel(channel: Channel) -> None:
        opened.append(channel)
        listener.accepted.put_nowait(channel)

    acceptor = accept_factory(credential(2), Random(2), on_channel, limits)
    server = await asyncio.get_running_loop().create_server(acceptor, "127.0.0.1", 0)
    listener = Listener(server.sockets[0].getsockname()[1])
    try:
        yield listener
    finally:
        await accept_no_more(server)
        acceptor.close()
        for channel in opened:
            channel.close()
        await until(lambda: all(channel._lost for channel in opened))


async def test_each_side_learns_the_proven_identity_of_the_other() -> None:
    async with listening() as listener:
        ours, theirs = await listener.pair()
        assert (ours.peer.node_id, ours.peer.directory_id) == (2, UUID(int=2))
        assert (theirs.peer.node_id, theirs.peer.directory_id) == (1, UUID(int=1))
        assert theirs.peer.service == "test"
        ours.close()


async def test_frames_of_all_sizes_arrive_once_and_in_order_in_both_directions() -> None:
    async with listening() as listener:
        ours, theirs = await listener.pair()
        inbox, outbox = Inbox(theirs), Inbox(ours)
        sizes = [0, 1, 100, 65_000, 65_508, 65_509, 70_000, 300_000, 3, 5_000_000, 7]
        payloads = [Random(size).randbytes(size) for size in sizes]
        for payload in payloads:
            ours.send([payload[:10], memoryview(payload)[10:]])
            theirs.send([payload])
        assert await inbox.count(len(sizes)) == payloads
        assert await outbox.count(len(sizes)) == payloads
        ours.close()
        await inbox.closed.wait()
        await outbox.closed.wait()


async def test_nothing_is_delivered_while_reading_is_paused() -> None:
    async with listening() as listener:
        ours, theirs = await listener.pair()
        inbox = Inbox(theirs)
        theirs.pause_reading()
        for number in range(100):
            ours.send([bytes([number])])
        await asyncio.sleep(0.05)
        assert inbox.frames == []
        theirs.resume_reading()
        assert await inbox.count(100) == [bytes([number]) for number in range(100)]
        ours.close()


async def test_frames_sent_before_a_close_still_arrive() -> None:
    async with listening() as listener:
        ours, theirs = await listener.pair()
        inbox = Inbox(theirs)
        ours.send([b"last words"])
        ours.close()
        assert await inbox.count(1) == [b"last words"]
        with pytest.raises(ChannelClosed):
            ours.send([b"too late"])
        await inbox.closed.wait()


async def test_close_is_told_to_a_receiver_that_comes_late() -> None:
    async with listening() as listener:
        ours, theirs = await listener.pair()
        ours.close()
        await asyncio.sleep(0.05)
        inbox = Inbox(theirs)
        async with asyncio.timeout(WITHIN_S):
            await inbox.closed.wait()


@pytest.mark.parametrize(
    "wrong", [{"secret": b"x" * 32}, {"cluster": "other"}, {"expected_node_id": 3}]
)
async def test_wrong_secret_cluster_or_node_is_refused(wrong: dict[str, object]) -> None:
    async with listening() as listener:
        with pytest.raises(HandshakeFailed):
            await listener.dial(**wrong)  # type: ignore[arg-type]
        assert listener.accepted.empty()


async def test_a_listener_without_the_secret_is_refused_by_the_dialer() -> None:
    acceptor = accept_factory(credential(2, secret=b"x" * 32), Random(2), lambda channel: None)
    server = await asyncio.get_running_loop().create_server(acceptor, "127.0.0.1", 0)
    try:
        with pytest.raises(HandshakeFailed, match="does not hold"):
            await Listener(server.sockets[0].getsockname()[1]).dial()
    finally:
        await accept_no_more(server)
        acceptor.close()


async def test_a_refused_connection_is_an_os_error_of_its_own() -> None:
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(ConnectionRefusedError):
        await Listener(port).dial()


@pytest.mark.parametrize(
    "bytes_sent",
    [
        pickle.dumps({"type": "append_entries"}),
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">I", 200) + pickle.dumps(list(range(50))).ljust(200, b"."),
        struct.pack(">I", 700) + bytes(700),
        struct.pack(">I", 0),
        struct.pack(">I", 0xFFFFFFFF),
    ],
)
async def test_strangers_bytes_close_the_connection(bytes_sent: bytes) -> None:
    async with listening() as listener:
        reader, writer = await connection(listener.port)
        writer.write(bytes_sent)
        async with asyncio.timeout(WITHIN_S):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.transport.abort()
        assert listener.accepted.empty()


async def test_a_silent_stranger_is_dropped_at_the_deadline() -> None:
    async with listening(ChannelLimits(handshake_s=0.05)) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        async with asyncio.timeout(WITHIN_S):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.transport.abort()


async def test_a_flood_of_strangers_does_not_keep_a_peer_out() -> None:
    async with listening(ChannelLimits(max_unauthenticated=4)) as listener:
        strangers = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(8)]
        ours, _ = await listener.pair()
        ours.close()

        def dropped() -> int:
            return sum(r.at_eof() or r.exception() is not None for r, _ in strangers)

        await until(lambda: dropped() >= 4)
        for _, writer in strangers:
            writer.transport.abort()


async def _raw_dialer(listener: Listener) -> tuple[asyncio.StreamWriter, FrameMac, Channel]:
    """A peer with the secret that speaks the protocol by hand, so that it can misbehave."""
    from logboat.raftlog.handshake import DialerHandshake

    reader, writer = await connection(listener.port)
    handshake = DialerHandshake(credential(1), Random(1), service="test", expected_node_id=2)
    handshake.certified(["node-2"])
    first = handshake.first_message()
    assert first is not None
    writer.write(struct.pack(">I", len(first)) + first)
    (length,) = struct.unpack(">I", await reader.readexactly(4))
    step = handshake.receive(await reader.readexactly(length))
    assert step.reply is not None
    assert step.session is not None
    writer.write(struct.pack(">I", len(step.reply)) + step.reply)
    channel = await asyncio.wait_for(listener.accepted.get(), WITHIN_S)
    return writer, FrameMac(step.session.send_key), channel


def frame(mac: FrameMac, sequence: int, payload: bytes) -> bytes:
    header = struct.pack(">IQ", len(payload), sequence)
    return header + mac.sign(header, [payload]) + payload


async def test_a_replayed_frame_closes_the_connection() -> None:
    async with listening() as listener:
        writer, mac, channel = await _raw_dialer(listener)
        inbox = Inbox(channel)
        once = frame(mac, 0, b"once")
        writer.write(once + once)
        async with asyncio.timeout(WITHIN_S):
            await inbox.closed.wait()
        assert inbox.frames == [b"once"]
        writer.transport.abort()


async def test_a_skipped_frame_closes_the_connection() -> None:
    async with listening() as listener:
        writer, mac, channel = await _raw_dialer(listener)
        inbox = Inbox(channel)
        writer.write(frame(mac, 1, b"second"))
        async with asyncio.timeout(WITHIN_S):
            await inbox.closed.wait()
        assert inbox.frames == []
        writer.transport.abort()


async def test_an_altered_frame_closes_the_connection() -> None:
    async with listening() as listener:
        writer, mac, channel = await _raw_dialer(listener)
        inbox = Inbox(channel)
        good = frame(mac, 0, b"payload")
        writer.write(good[:-1] + b"X")
        async with asyncio.timeout(WITHIN_S):
            await inbox.closed.wait()
        assert inbox.frames == []
        writer.transport.abort()


async def test_a_frame_beyond_the_limit_closes_the_connection_before_its_bytes_come() -> None:
    async with listening(ChannelLimits(max_frame=1000)) as listener:
        writer, _, channel = await _raw_dialer(listener)
        inbox = Inbox(channel)
        writer.write(struct.pack(">IQ", 1001, 0) + bytes(16))
        async with asyncio.timeout(WITHIN_S):
            await inbox.closed.wait()
        writer.transport.abort()


async def test_a_large_claim_reserves_no_memory() -> None:
    async with listening() as listener:
        writer, _, channel = await _raw_dialer(listener)
        inbox = Inbox(channel)
        writer.write(struct.pack(">IQ", 100_000_000, 0) + bytes(16) + bytes(1000))
        await until(lambda: channel._buffer._large is not None)
        held = channel._buffer._large
        assert held is not None
        assert len(held.buffer) <= 1 << 20
        writer.transport.abort()
        await inbox.closed.wait()


async def test_a_peer_that_reads_nothing_loses_its_channel_at_the_bound() -> None:
    async with listening(ChannelLimits(max_buffered=1_000_000)) as listener:
        ours, theirs = await listener.pair()
        chunk = bytes(100_000)

        async def send_without_end() -> None:
            while True:
                theirs.send([chunk])
                await asyncio.sleep(0)

        with pytest.raises(ChannelClosed):
            await asyncio.wait_for(send_without_end(), WITHIN_S)
        assert theirs.closed
        ours.close()


def test_the_mac_is_hmac_sha256_over_header_and_parts() -> None:
    key = bytes(range(32))
    ours = FrameMac(key).sign(b"head", [b"a", memoryview(b"bc"), bytearray(b"")])
    assert ours == hmac.new(key, b"headabc", hashlib.sha256).digest()[:16]
    assert FrameMac(key).matches(ours, b"head", b"abc")
    assert not FrameMac(key).matches(ours, b"head", b"abd")


async def test_a_slow_handshake_is_given_up_at_the_deadline() -> None:
    class Silent(asyncio.Protocol):
        def __init__(self) -> None:
            self.lost = asyncio.Event()
            connections.append(self)

        def connection_lost(self, exc: Exception | None) -> None:
            self.lost.set()

    connections: list[Silent] = []
    server = await asyncio.get_running_loop().create_server(Silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    try:
        with pytest.raises(TimeoutError):
            await dial(
                "127.0.0.1",
                port,
                credential=credential(1),
                service="test",
                expected_node_id=2,
                rng=Random(1),
                deadline=loop.time() + 0.05,
            )
    finally:
        await accept_no_more(server)
        for connection in connections:
            await asyncio.wait_for(connection.lost.wait(), WITHIN_S)
