"""`logboat verify`: unique records in, all of them back, one verdict."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from .failure import ExitStatus
from .node_api import NodeApi
from .progress import bar, progress
from .sdk.client import Client
from .sdk.errors import OutcomeUnknown
from .sdk.records import RecordMetadata, TopicPartition
from .sdk_work import run_to_the_end, topic_for
from .terminal import Output, emit, say

READ_SECONDS = 60.0


@dataclass(slots=True)
class Ledger:
    """What was promised, and what was found."""

    acknowledged: dict[TopicPartition, dict[int, str]] = field(default_factory=dict)
    unknown: int = 0
    refused: int = 0

    def promise(self, value: str, placed: RecordMetadata) -> None:
        place = TopicPartition(placed.topic, placed.partition)
        self.acknowledged.setdefault(place, {})[placed.offset] = value

    def note_failure(self, error: BaseException) -> None:
        """What may have been written is not what was refused."""
        if isinstance(error, OutcomeUnknown):
            self.unknown += 1
        else:
            self.refused += 1

    @property
    def count(self) -> int:
        return sum(len(offsets) for offsets in self.acknowledged.values())


@dataclass(frozen=True, slots=True)
class Verdict:
    acknowledged: int
    lost: int
    """Acknowledged and not there."""
    replaced: int
    """Another record stands where it was acknowledged."""
    doubled: int
    """Found at more than one offset."""

    @property
    def good(self) -> bool:
        return not (self.lost or self.replaced or self.doubled)


def verify_cluster(
    url: str, topic: str | None, count: int, size: int, output: Output
) -> ExitStatus:
    """Raises Failure."""
    ledger, verdict = run_to_the_end(_verify(NodeApi(url).urls, topic, count, size))
    if ledger.unknown or ledger.refused:
        say(f"{ledger.refused} records were refused, of {ledger.unknown} nobody knows.")
    word = "held" if verdict.good else "violation"
    counts = asdict(verdict)
    match output:
        case Output.JSON:
            emit(json.dumps({"verdict": word, **counts}))
        case Output.PLAIN:
            emit("\t".join([word, *map(str, counts.values())]))
        case Output.TABLE:
            told = " ".join(f"{name}={count}" for name, count in counts.items())
            emit(f"verify: {word} | {told}")
    return ExitStatus.GOOD if verdict.good else ExitStatus.FAILED


async def _verify(
    urls: Sequence[str], topic: str | None, count: int, size: int
) -> tuple[Ledger, Verdict]:
    async with Client(*urls) as client, topic_for(client, topic, "verify") as name:
        ledger = Ledger()
        await _write(client, name, count, size, ledger)
        found = await _read(client, name, ledger)
        return ledger, judged(ledger, found)


async def _write(client: Client, topic: str, count: int, size: int, ledger: Ledger) -> None:
    run = f"{time.time_ns():x}"

    def decided(value: str, done: asyncio.Future[RecordMetadata]) -> None:
        error = done.exception()
        if error is None:
            ledger.promise(value, done.result())
        else:
            ledger.note_failure(error)

    producer = client.producer()
    async with progress(lambda: bar("written", producer.stats.delivered, count)):
        for number in range(count):
            value = f"{run}.{number}".ljust(size, ".")
            placed = await producer.enqueue(topic, value.encode(), key=str(number))
            placed.add_done_callback(lambda done, value=value: decided(value, done))  # type: ignore[misc]
        await producer.close(READ_SECONDS)


async def _read(client: Client, topic: str, ledger: Ledger) -> dict[TopicPartition, dict[int, str]]:
    """Every partition up to behind its last acknowledged record."""
    found: dict[TopicPartition, dict[int, str]] = {}
    open_ends = {place: max(offsets) for place, offsets in ledger.acknowledged.items()}
    if not open_ends:
        return found
    starts = {place: min(offsets) for place, offsets in ledger.acknowledged.items()}
    try:
        async with (
            asyncio.timeout(READ_SECONDS),
            progress(lambda: bar("read", sum(map(len, found.values())), ledger.count)),
        ):
            async for record in client.tail(topic, since="end", positions=starts):
                place = record.place
                value = (record.value or b"").decode("utf-8", "replace")
                found.setdefault(place, {})[record.offset] = value
                if record.offset >= open_ends.get(place, -1):
                    open_ends.pop(place, None)
                if not open_ends:
                    break
    except TimeoutError:
        say(f"{len(open_ends)} partitions could not be read to their end.")
    return found


def judged(ledger: Ledger, found: dict[TopicPartition, dict[int, str]]) -> Verdict:
    lost = replaced = 0
    for place, offsets in ledger.acknowledged.items():
        here = found.get(place, {})
        for offset, value in offsets.items():
            if offset not in here:
                lost += 1
            elif here[offset] != value:
                replaced += 1
    ours = {value for offsets in ledger.acknowledged.values() for value in offsets.values()}
    seen: set[str] = set()
    doubled = 0
    for here in found.values():
        for value in here.values():
            doubled += value in seen and value in ours
            seen.add(value)
    return Verdict(ledger.count, lost, replaced, doubled)
