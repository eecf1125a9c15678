"""What `logboat bench` does: a topic, a run, its figures."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

from .node_api import NodeApi
from .progress import bar, progress
from .sdk.client import Client
from .sdk.records import Record
from .sdk_work import run_to_the_end, topic_for
from .terminal import Output, emit, table


@dataclass(frozen=True, slots=True)
class Figures:
    what: str
    records: int
    seconds: float
    records_per_second: float
    megabytes_per_second: float
    p50_ms: float | None = None
    p99_ms: float | None = None


class Bench:
    def __init__(self, url: str, topic: str | None, count: int, size: int) -> None:
        self._urls = NodeApi(url).urls
        self._topic = topic
        self._count = count
        self._size = size

    def run(self, what: str, output: Output) -> None:
        """Print the figures. Raises Failure."""
        works: dict[str, Callable[[Client, str], Awaitable[Figures]]] = {
            "produce": self._produce,
            "consume": self._consume,
            "e2e": self._end_to_end,
        }
        _tell(run_to_the_end(self._with_topic(works[what])), output)

    async def _with_topic(self, work: Callable[[Client, str], Awaitable[Figures]]) -> Figures:
        async with (
            Client(*self._urls) as client,
            topic_for(client, self._topic, "bench") as topic,
        ):
            return await work(client, topic)

    async def _produce(self, client: Client, topic: str) -> Figures:
        value = bytes(self._size)
        started = time.perf_counter()
        async with (
            client.producer() as producer,
            progress(lambda: bar("written", producer.stats.delivered, self._count)),
        ):
            for _ in range(self._count):
                await producer.enqueue(topic, value)
            await producer.flush()
        return self._figures("produce", time.perf_counter() - started)

    async def _consume(self, client: Client, topic: str) -> Figures:
        if self._topic is None:
            await self._produce(client, topic)
        started = time.perf_counter()
        read = 0
        async with progress(lambda: bar("read", read, self._count)):
            async for _ in client.tail(topic, since="start"):
                read += 1
                if read == self._count:
                    break
        return self._figures("consume", time.perf_counter() - started)

    async def _end_to_end(self, client: Client, topic: str) -> Figures:
        arrived: asyncio.Queue[Record[str, bytes]] = asyncio.Queue()

        async def follow() -> None:
            async for record in client.tail(topic, since="end"):
                arrived.put_nowait(record)

        following = asyncio.create_task(follow())
        took: list[float] = []
        started = time.perf_counter()
        try:
            async with (
                client.producer(linger=0.0) as producer,
                progress(lambda: bar("there and back", len(took), self._count)),
            ):
                await self._first_arrival(producer.send, topic, arrived)
                for number in range(self._count):
                    value = b"%d" % number
                    sent_at = time.perf_counter()
                    await producer.send(topic, value.ljust(self._size), partition=0)
                    while (await arrived.get()).value != value.ljust(self._size):
                        pass
                    took.append(time.perf_counter() - sent_at)
        finally:
            following.cancel()
        took.sort()
        return self._figures(
            "e2e",
            time.perf_counter() - started,
            p50=took[len(took) // 2],
            p99=took[min(len(took) - 1, len(took) * 99 // 100)],
        )

    @staticmethod
    async def _first_arrival(
        send: Callable[..., Awaitable[object]],
        topic: str,
        arrived: asyncio.Queue[Record[str, bytes]],
    ) -> None:
        """A tail from the end sees what comes once it is there: send until it sees something."""
        while arrived.empty():
            await send(topic, b"is anybody there?", partition=0)
            try:
                async with asyncio.timeout(0.2):
                    await arrived.get()
                    return
            except TimeoutError:
                continue

    def _figures(
        self, what: str, seconds: float, *, p50: float | None = None, p99: float | None = None
    ) -> Figures:
        rate = self._count / seconds
        return Figures(
            what,
            self._count,
            round(seconds, 3),
            round(rate, 1),
            round(rate * self._size / 1e6, 2),
            None if p50 is None else round(p50 * 1000, 2),
            None if p99 is None else round(p99 * 1000, 2),
        )


def _tell(figures: Figures, output: Output) -> None:
    document = asdict(figures)
    if output is Output.JSON:
        emit(json.dumps(document))
        return
    shown = {name: value for name, value in document.items() if value is not None}
    header = [name.upper().replace("_", "-") for name in shown]
    emit(table(header, [[str(value) for value in shown.values()]], output))
