"""The stream of records by itself: bounds, order, batches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.node.http import record_stream
from logboat.node.http.admission import Room
from logboat.node.http.errors import ApiError
from logboat.node.http.record_stream import Chunk, RecordStream
from logboat.node.http.records_in import RecordIn
from logboat.node.http.writing import Batch, Outcome, Written
from logboat.wire.records import decode_records


class Log:
    """Partitions in memory that answer when they are told to."""

    def __init__(self, *, held: bool = False) -> None:
        self.values: dict[int, list[bytes | None]] = {}
        self.batches: list[tuple[int, int]] = []
        """(partition, records)."""
        self.open = asyncio.Event()
        if not held:
            self.open.set()
        self.under_way: set[int] = set()
        self.errors: dict[int, ApiError] = {}

    async def write(self, batch: Batch) -> Outcome:
        assert batch.partition not in self.under_way, "one batch at a time in each partition"
        self.under_way.add(batch.partition)
        await asyncio.sleep(0)
        await self.open.wait()
        self.under_way.remove(batch.partition)
        if batch.partition in self.errors:
            return self.errors[batch.partition]
        records = decode_records(batch.encoded)
        log = self.values.setdefault(batch.partition, [])
        base = len(log)
        log += [record.value for record in records]
        self.batches.append((batch.partition, len(records)))
        return Written(base, -1)


def chunk_of(places: Sequence[tuple[int, bytes]], size: int = 10) -> Chunk:
    chunk = Chunk(size)
    for partition, value in places:
        chunk.add(RecordIn(None, value, (), 0), partition)
    return chunk


async def test_reading_stops_while_answers_are_not_taken() -> None:
    log, room = Log(), Room(1 << 30)
    async with asyncio.TaskGroup() as tasks:
        stream = RecordStream[Chunk](log.write, room, tasks, max_batch_bytes=1 << 20)
        added = 0

        async def add() -> None:
            nonlocal added
            for _ in range(10):
                await stream.add(chunk_of([(0, b"v")], size=record_stream.STREAM_BYTES // 4))
                added += 1
            stream.end()

        adding = tasks.create_task(add())
        for _ in range(100):
            await asyncio.sleep(0)
        assert added == 3
        assert room.used == record_stream.STREAM_BYTES
        taken = [chunk async for chunk in stream.decided()]
        await adding
    assert len(taken) == 10
    assert room.used == 0


async def test_what_waits_behind_a_batch_is_the_next_one() -> None:
    log = Log(held=True)
    async with asyncio.TaskGroup() as tasks:
        stream = RecordStream[Chunk](log.write, Room(1 << 30), tasks, max_batch_bytes=1 << 20)
        await stream.add(chunk_of([(0, b"first")] * 10))
        while not log.under_way:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for number in range(29):
            await stream.add(chunk_of([(0, b"%d" % number)] * 10))
            await asyncio.sleep(0)
        log.open.set()
        stream.end()
        async for _ in stream.decided():
            pass
    assert log.batches == [(0, 10), (0, 290)]


async def test_a_batch_is_bounded_in_records_and_bytes() -> None:
    log = Log(held=True)
    async with asyncio.TaskGroup() as tasks:
        stream = RecordStream[Chunk](log.write, Room(1 << 30), tasks, max_batch_bytes=2_000)
        for _ in range(5):
            await stream.add(chunk_of([(0, b"v")] * 2, size=400))
        for _ in range(5):
            await stream.add(chunk_of([(1, b"v")] * 400, size=1))
        log.open.set()
        stream.end()
        async for _ in stream.decided():
            pass
    assert [count for partition, count in log.batches if partition == 0] == [4, 4, 2]
    assert [count for partition, count in log.batches if partition == 1] == [800, 800, 400]


async def test_streams_share_one_room_and_wait_for_their_turn() -> None:
    room = Room(100)
    await room.take(60)
    second = asyncio.create_task(room.take(60))
    third = asyncio.create_task(room.take(10))
    await asyncio.sleep(0)
    assert not second.done()
    # First come, first served: or the large ones would starve.
    assert not third.done()
    second.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert third.done()
    room.give_back(70)
    assert room.used == 0
    await room.take(1_000)
    assert room.used == 1_000


@given(
    chunks=st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6), max_size=12
    ),
    failing=st.sets(st.integers(0, 3), max_size=2),
)
def test_every_record_has_one_verdict_that_is_true(
    chunks: list[list[tuple[int, bool]]], failing: set[int]
) -> None:
    async def run() -> None:
        log = Log()
        log.errors = {partition: ApiError(503, "no") for partition in failing}
        taken: list[Chunk] = []
        async with asyncio.TaskGroup() as tasks:
            stream = RecordStream[Chunk](log.write, Room(50), tasks, max_batch_bytes=1 << 20)

            async def add() -> None:
                for number, places in enumerate(chunks):
                    chunk = Chunk(10)
                    for position, (partition, good) in enumerate(places):
                        value = b"%d.%d" % (number, position)
                        if good:
                            chunk.add(RecordIn(None, value, (), 0), partition)
                        else:
                            chunk.refuse(ApiError(422, "bad"))
                    await stream.add(chunk)
                stream.end()

            tasks.create_task(add())
            async for chunk in stream.decided():
                taken.append(chunk)
        assert len(taken) == len(chunks)
        for number, (chunk, places) in enumerate(zip(taken, chunks, strict=True)):
            assert [position for position, _ in chunk.refused] == [
                position for position, (_, good) in enumerate(places) if not good
            ]
            for part in chunk.parts.values():
                if isinstance(part.outcome, ApiError):
                    assert part.partition in failing
                    continue
                assert part.outcome is not None
                for place, position in enumerate(part.positions):
                    offset = part.outcome.base_offset + part.first + place
                    assert log.values[part.partition][offset] == b"%d.%d" % (number, position)
        for values in log.values.values():
            order = [tuple(map(int, (value or b"").split(b"."))) for value in values]
            assert order == sorted(order)

    asyncio.run(run())


async def test_a_failing_writer_ends_the_stream_and_gives_its_room_back() -> None:
    async def fails(batch: Batch) -> Outcome:
        raise RuntimeError("our mistake")

    room = Room(100)

    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            stream = RecordStream[Chunk](fails, room, tasks, max_batch_bytes=1 << 20)
            try:
                await stream.add(chunk_of([(0, b"v")]))
                async for _ in stream.decided():
                    pass
            finally:
                stream.close()

    with pytest.raises(ExceptionGroup):
        await run()
    assert room.used == 0
