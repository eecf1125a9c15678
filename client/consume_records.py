"""Topics to standard output without a group: up to their ends, or for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .failure import Failure
from .following import Following
from .node_api import NodeApi
from .read_from import Place, ReadFrom
from .record_printer import RecordPrinter
from .sdk.client import Client
from .sdk.codecs import Bytes
from .sdk.deadline import Deadline
from .sdk.reader import Extent, Reader
from .sdk.records import TopicPartition
from .sdk_work import run_to_the_end
from .terminal import say

ASKED_AT_ONCE = 32
WAIT_SECONDS = 1.0
PATIENCE_SECONDS = 30.0
"""For records that were there a moment ago, and that their next leader will have."""


@dataclass(frozen=True, slots=True)
class Reading:
    topics: tuple[str, ...]
    begin: ReadFrom
    partition: int | None
    exit_at_end: bool
    url: str


@dataclass(frozen=True, slots=True)
class _Span:
    """Of one partition: what is to be printed when the end is where to stop."""

    begin: int
    end: int


def consume_records(reading: Reading, printer: RecordPrinter) -> None:
    """Raises Failure, BrokenPipeError."""
    run_to_the_end(_consume(reading, printer))


async def _consume(reading: Reading, printer: RecordPrinter) -> None:
    async with Client(*NodeApi(reading.url).urls) as client:
        reader = client.reader(key=Bytes(), value=Bytes())
        places = await _places(reader, dict.fromkeys(reading.topics), reading.partition)
        spans = await _spans(reader, places, reading.begin)
        if not reading.exit_at_end:
            begins = {place: span.begin for place, span in spans.items()}
            await _follow(client, begins, reading, printer)
            return
        for place, span in spans.items():
            await _print_span(reader, place, span, printer)
            if printer.full:
                return


async def _places(
    reader: Reader[bytes, bytes], topics: Iterable[str], wanted: int | None
) -> list[TopicPartition]:
    places = []
    for topic in topics:
        count = await reader.partitions(topic)
        if wanted is not None and wanted >= count:
            raise Failure(f"{topic} has no partition {wanted}, its partitions are 0 to {count - 1}")
        numbers = range(count) if wanted is None else [wanted]
        places += [TopicPartition(topic, number) for number in numbers]
    return places


async def _spans(
    reader: Reader[bytes, bytes], places: Sequence[TopicPartition], begin: ReadFrom
) -> dict[TopicPartition, _Span]:
    room = asyncio.Semaphore(ASKED_AT_ONCE)

    async def span(place: TopicPartition) -> _Span:
        async with room:
            extent = await reader.extent(place)
            at = await _begin(reader, place, begin, extent)
        return _Span(at, extent.end)

    return dict(zip(places, await asyncio.gather(*map(span, places)), strict=True))


async def _begin(
    reader: Reader[bytes, bytes], place: TopicPartition, begin: ReadFrom, extent: Extent
) -> int:
    match begin.place:
        case Place.START:
            return extent.start
        case Place.END:
            return extent.end
        case Place.AFTER_START:
            return min(extent.start + begin.number, extent.end)
        case Place.BEFORE_END:
            return max(extent.end - begin.number, extent.start)
        case Place.TIME:
            return await reader.offset_at(place, begin.number)
        case Place.OFFSET:
            at = min(max(begin.number, extent.start), extent.end)
            if at != begin.number:
                has = f"records {extent.start} to {extent.end - 1}"
                has = has if extent.start < extent.end else "no records"
                say(f"{place.topic}-{place.partition} has {has}; beginning at {at}.")
            return at


async def _print_span(
    reader: Reader[bytes, bytes], place: TopicPartition, span: _Span, printer: RecordPrinter
) -> None:
    """Raises Failure when records that were there are not any more."""
    at, patience = span.begin, Deadline.after(PATIENCE_SECONDS)
    while at < span.end:
        # They are committed: a leader that does not show them yet will.
        page = await reader.page(place, at, wait=WAIT_SECONDS)
        for record in page.records:
            if record.offset >= span.end:
                break
            printer.print(record)
            if printer.full:
                printer.flush()
                return
        printer.flush()
        if page.next_offset > at:
            at, patience = page.next_offset, Deadline.after(PATIENCE_SECONDS)
        elif patience.passed:
            raise Failure(
                f"{place.topic}-{place.partition} ends at {at} now, {span.end} was its end before"
            )


async def _follow(
    client: Client,
    begins: Mapping[TopicPartition, int],
    reading: Reading,
    printer: RecordPrinter,
) -> None:
    async with Following(client) as following:
        for topic in dict.fromkeys(reading.topics):
            following.begin(
                topic,
                {place: at for place, at in begins.items() if place.topic == topic},
                only=None if reading.partition is None else [reading.partition],
            )
        async for record in following:
            printer.print(record)
            if printer.full:
                break
            if not following.has_more:
                printer.flush()
        printer.flush()
