"""Several topics followed at once, in one bounded queue: `consume` without a group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from .record_format import RawRecord
from .record_printer import until_nobody_reads
from .sdk.client import Client
from .sdk.codecs import Bytes
from .sdk.errors import ClientError
from .sdk.records import TopicPartition

QUEUED = 1_000
"""Records that wait to be printed; whoever brings more waits, and at last the node that sends."""
TAIL_PARTITIONS = 100
"""Of one tail at most; it finds partitions that come to be by itself as far as that."""
LOOK_SECONDS = 10.0
"""Between looks whether a topic has grown beyond that."""


class Following:
    """`async with`: the tasks that bring records end with it. Iterating raises what ends a tail
    (ClientError), and BrokenPipeError when nobody reads standard output any more."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._queue: asyncio.Queue[RawRecord | Exception] = asyncio.Queue(QUEUED)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._own(self._watch_output())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def begin(
        self, topic: str, positions: Mapping[TopicPartition, int], *, only: Sequence[int] | None
    ) -> None:
        """`only`: these partitions; None: all of them, also those that come to be."""
        if only is not None:
            self._own(self._bring(topic, positions, only))
            return
        count = len(positions)
        if count <= TAIL_PARTITIONS:
            self._own(self._bring(topic, positions, None))
        else:
            self._bring_all(topic, positions, range(count))
        self._own(self._watch_growth(topic, max(count, TAIL_PARTITIONS)))

    async def __aiter__(self) -> AsyncIterator[RawRecord]:
        while True:
            found = await self._queue.get()
            if isinstance(found, Exception):
                raise found
            yield found

    @property
    def has_more(self) -> bool:
        """Another record is there without waiting."""
        return not self._queue.empty()

    def _own(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    def _bring_all(
        self, topic: str, positions: Mapping[TopicPartition, int], numbers: range
    ) -> None:
        for first in range(numbers.start, numbers.stop, TAIL_PARTITIONS):
            some = range(first, min(first + TAIL_PARTITIONS, numbers.stop))
            self._own(self._bring(topic, positions, some))

    async def _bring(
        self,
        topic: str,
        positions: Mapping[TopicPartition, int],
        only: Sequence[int] | None,
    ) -> None:
        if only is not None:
            positions = {p: at for p, at in positions.items() if p.partition in only}
        # What is not among the positions was made a moment ago.
        tail = self._client.tail(
            topic,
            since="start",
            positions=positions,
            partitions=only,
            key=Bytes(),
            value=Bytes(),
        )
        try:
            async for record in tail:
                await self._queue.put(record)
        except ClientError as error:
            await self._queue.put(error)

    async def _watch_growth(self, topic: str, covered: int) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                count = (await self._client.admin.topics.describe(topic)).partition_count
            except ClientError:
                continue  # The tails say it if it matters.
            if count > covered:
                self._bring_all(topic, {}, range(covered, count))
                covered = count

    async def _watch_output(self) -> None:
        await until_nobody_reads()
        await self._queue.put(BrokenPipeError())
