"""Topics to standard output, by stateless reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .failure import ExitStatus, Failure
from .node_api import NodeApi, topic_path
from .record_format import RecordFormat
from .sdk.ago import ago_ms

LOOK_MS = 250
"""How long a node is asked to wait for a record when there are none."""


@dataclass(frozen=True, slots=True)
class Reading:
    topics: tuple[str, ...]
    offset: str
    partition: int | None
    count: int | None
    exit_at_end: bool
    meta_only: bool
    url: str


def consume_records(reading: Reading, printer: RecordFormat) -> None:
    api = NodeApi(reading.url)
    first_query(reading.offset)  # A mistake in it is told before anything is asked.
    positions = {
        (topic, number): ""
        for topic in reading.topics
        for number in _partitions(api, topic, reading.partition)
    }
    for topic, number in positions:
        positions[topic, number] = _begin(api, topic, number, reading.offset)
    left = reading.count
    for record in _records(api, positions, exit_at_end=reading.exit_at_end):
        shown = _without_content(record) if reading.meta_only else record
        sys.stdout.write(printer.line(shown))
        left = None if left is None else left - 1
        if left == 0:
            break
    sys.stdout.flush()


_CONTENT = frozenset({"key", "value", "headers", "key_encoding", "value_encoding"})


def _without_content(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: said for name, said in record.items() if name not in _CONTENT}


def _partitions(api: NodeApi, topic: str, wanted: int | None) -> list[int]:
    count = api.call("GET", topic_path(topic))["partition_count"]
    if wanted is None:
        return list(range(count))
    if wanted >= count:
        raise Failure(f"{topic} has no partition {wanted}, its partitions are 0 to {count - 1}")
    return [wanted]


def _records(
    api: NodeApi, positions: dict[tuple[str, int], str], *, exit_at_end: bool
) -> Iterator[dict[str, Any]]:
    """Partition by partition, round and round; flushed when there is nothing new."""
    while True:
        quiet = True
        for place in positions:
            topic, number = place
            answer = _read(api, topic, number, positions[place])
            positions[place] = f"offset={answer['next_offset']}"
            for record in answer["records"]:
                quiet = False
                yield {"topic": topic, "partition": number, **record}
        if not quiet:
            continue
        if exit_at_end:
            return
        sys.stdout.flush()
        last = next(reversed(positions))
        _read(api, *last, f"{positions[last]}&wait={LOOK_MS}")


def _read(api: NodeApi, topic: str, partition: int, query: str) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = api.call(
        "GET", f"{topic_path(topic)}/partitions/{partition}/records?{query}"
    )
    return answer


def _begin(api: NodeApi, topic: str, partition: int, offset: str) -> str:
    if not offset.startswith("+"):
        return first_query(offset)
    start = _read(api, topic, partition, "max_bytes=1")["log_start_offset"]
    return f"offset={start + int(offset[1:])}"


def first_query(offset: str) -> str:
    """Raises Failure, status 2."""
    if offset == "start":
        return ""
    if offset == "end":
        return "tail=0"
    if offset.isdecimal():
        return f"offset={offset}"
    if offset[:1] in "+-" and offset[1:].isdecimal():
        return f"tail={offset[1:]}" if offset.startswith("-") else ""
    if offset.startswith("@"):
        return f"timestamp={_time_ms(offset)}"
    raise Failure(f"{offset!r} is neither start, end, a number, +N, -N nor @TIME", ExitStatus.USAGE)


def _time_ms(offset: str) -> int:
    text = offset[1:]
    moment_ms = ago_ms(text)
    if moment_ms is not None:
        return moment_ms
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(
            f"{text!r} is neither Unix milliseconds, an ISO date, nor -5m", ExitStatus.USAGE
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
