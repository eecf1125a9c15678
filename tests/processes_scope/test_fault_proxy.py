"""The proxy of the executor on processes, on real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from uuid import UUID

import pytest

from logboat.jepsen_style.processes.links import CLIENTS, Links, party
from logboat.jepsen_style.processes.proxy import HELLO_BYTES, Proxy, dialer_of
from logboat.raftlog.handshake import Credential, DialerHandshake
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


def test_the_proxy_reads_who_dials_from_the_hello_of_the_real_handshake() -> None:
    credential = Credential(
        node_id=7, directory_id=UUID(int=3), cluster_id="a cluster", secret=b"s" * 32
    )
    dialer = DialerHandshake(credential, Random(1), service="quorum", expected_node_id=2)
    hello = dialer.first_message()
    assert hello is not None
    framed = len(hello).to_bytes(4, "big") + hello
    assert dialer_of(framed[:HELLO_BYTES]) == party(7)


@pytest.mark.parametrize("turns", range(6))
def test_a_connection_that_was_just_accepted_ends_with_the_proxy(turns: int) -> None:
    """However far the loop has come with it when the proxy is closed."""

    async def test() -> None:
        proxy = Proxy(Links(), 1, ("127.0.0.1", 1), Random(1))
        with socket.create_connection(await proxy.start(), PATIENCE) as dialer:
            for _ in range(turns):
                await asyncio.sleep(0)
            await proxy.close()
            for _ in range(6):
                await asyncio.sleep(0)
            with suppress(ConnectionResetError):
                assert dialer.recv(1) == b""

    run(test)
