"""A node as a client sees it, whose answers a test chooses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

REFUSED = {"error_code": 50302, "retriable": True, "kafka_error": "NOT_ENOUGH_REPLICAS"}


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[str]:
    """Its URL, on a free port of this machine."""
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class StubNode:
    """Keeps the batches that it takes, recognises repetitions as a log does, and does what `before`
    says first: return an answer, raise, wait, or None to go on."""

    def __init__(self) -> None:
        self.url = ""
        self.partitions = 1
        self.log: dict[int, list[dict[str, Any]]] = {}
        self.lines: list[dict[str, Any]] = []
        """Every batch that came, also those refused or repeated."""
        self.before: Callable[[dict[str, Any]], Awaitable[web.StreamResponse | None]] | None = None
        self.after: Callable[[dict[str, Any]], Awaitable[web.StreamResponse | None]] | None = None
        self.ids = 0
        self.calls: list[str] = []
        self._sequences: dict[tuple[int, int, int], int] = {}

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[StubNode]:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_get("/api/v1/cluster", self._cluster)
        app.router.add_get("/api/v1/topics", self._topics)
        app.router.add_get("/api/v1/topics/{topic}", self._topic)
        app.router.add_post("/api/v1/producers", self._producer)
        app.router.add_post("/api/v1/topics/{topic}/records", self._records)
        async with served(app) as self.url:
            yield self

    async def _cluster(self, _: web.Request) -> web.Response:
        return web.json_response({"nodes": [{"http": self.url.removeprefix("http://")}]})

    async def _topics(self, _: web.Request) -> web.Response:
        return web.json_response({"topics": [{"name": "orders", "internal": False}]})

    async def _topic(self, request: web.Request) -> web.Response:
        name = request.match_info["topic"]
        if name != "orders":
            document = {
                "error_code": 40403,
                "message": f"there is no topic {name!r}",
                "kafka_error": "UNKNOWN_TOPIC_OR_PARTITION",
                "retriable": False,
            }
            return web.json_response(document, status=404)
        return web.json_response({"name": name, "partition_count": self.partitions})

    async def _producer(self, _: web.Request) -> web.Response:
        self.ids += 1
        return web.json_response({"producer_id": self.ids, "producer_epoch": 0})

    async def _records(self, request: web.Request) -> web.StreamResponse:
        line = orjson.loads(await request.read())
        self.lines.append(line)
        answer = None if self.before is None else await self.before(line)
        if answer is None:
            answer = self._take(line)
            try:
                after = None if self.after is None else await self.after(line)
            except ConnectionResetError:
                if request.transport is not None:
                    request.transport.abort()
                raise
            answer = after or answer
        return answer

    def _take(self, line: dict[str, Any]) -> web.Response:
        partition, count = line["partition"], len(line["records"])
        held = self.log.setdefault(partition, [])
        if "producer_id" in line:
            key = (line["producer_id"], line["producer_epoch"], partition)
            expected = self._sequences.get(key, 0)
            if line["base_sequence"] + count == expected:
                return applied(partition, len(held) - count, count)
            assert line["base_sequence"] == expected, "out of order"
            self._sequences[key] = expected + count
        held += line["records"]
        return applied(partition, len(held) - count, count)

    def values(self, partition: int = 0) -> list[str]:
        return [record["value"] for record in self.log.get(partition, ())]


def applied(partition: int, base_offset: int, count: int) -> web.Response:
    return verdict(
        {"outcome": "applied", "partition": partition, "base_offset": base_offset, "count": count}
    )


def verdict(document: dict[str, Any]) -> web.Response:
    return web.Response(body=orjson.dumps(document) + b"\n", content_type="application/x-ndjson")


async def hang(_: dict[str, Any]) -> web.StreamResponse | None:
    """Never answers."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError
