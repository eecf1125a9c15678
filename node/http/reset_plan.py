"""POST /api/v1/groups/{group}/offsets:reset: what is asked, and where it leads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...metadata.image import ClusterImage
from ...seam import frozen
from .errors import ApiError, from_kafka, no_partition
from .group_views import Committed
from .partition_ends import Ends, Place

_KEYS = frozenset({"to", "topics", "execute"})
_TO_HINT = '"earliest", "latest", {"offset": N}, {"shift": N} or {"timestamp": milliseconds}'


@frozen
class Reset:
    to: str
    """earliest, latest, offset, shift or timestamp."""
    number: int
    topics: tuple[tuple[str, int | None], ...]
    """(topic, partition or all); empty: whatever the group has committed."""
    execute: bool

    @property
    def timestamp_ms(self) -> int | None:
        return self.number if self.to == "timestamp" else None

    def places(self, image: ClusterImage, committed: Mapping[Place, Committed]) -> list[Place]:
        """Raises ApiError for what does not exist."""
        if not self.topics:
            return sorted(place for place in committed if image.partition(*place) is not None)
        places: dict[Place, None] = {}
        for name, partition in self.topics:
            topic = image.topics.get(name)
            if topic is None:
                raise from_kafka(3, f"there is no topic {name[:249]!r}")
            count = len(topic.partitions)
            if partition is not None and partition >= count:
                raise no_partition(name, partition, count)
            numbers = range(count) if partition is None else (partition,)
            places.update(dict.fromkeys((name, number) for number in numbers))
        return list(places)

    def target(self, committed: Committed | None, ends: Ends) -> int:
        """Always within the log: what lies outside is moved to its nearer end, as Kafka does."""
        wanted = {
            "earliest": ends.log_start_offset,
            "latest": ends.end_offset,
            "offset": self.number,
            "shift": (committed.offset if committed else ends.log_start_offset) + self.number,
            "timestamp": ends.end_offset if ends.at_timestamp is None else ends.at_timestamp,
        }[self.to]
        return min(max(wanted, ends.log_start_offset), ends.end_offset)


def parse_reset(document: Mapping[str, Any]) -> Reset:
    """Raises ApiError 422."""
    unknown = sorted(document.keys() - _KEYS)
    if unknown:
        raise ApiError(422, f"unknown key {unknown[0]!r}", hint=", ".join(sorted(_KEYS)))
    execute = document.get("execute", False)
    if not isinstance(execute, bool):
        raise ApiError(422, '"execute" is neither true nor false')
    topics = document.get("topics", [])
    if not isinstance(topics, list):
        raise ApiError(422, '"topics" is no list of names')
    to, number = _destination(document.get("to"))
    return Reset(to, number, tuple(_place(topic) for topic in topics), execute)


def _destination(to: Any) -> tuple[str, int]:
    if to in ("earliest", "latest"):
        return str(to), 0
    if isinstance(to, dict) and len(to) == 1:
        ((kind, number),) = to.items()
        signed = kind == "shift"
        if kind in ("offset", "shift", "timestamp") and _is_int64(number, signed=signed):
            return kind, number
    raise ApiError(422, '"to" says no place', hint=_TO_HINT)


def _is_int64(number: Any, *, signed: bool) -> bool:
    lowest = -(2**63) if signed else 0
    return isinstance(number, int) and not isinstance(number, bool) and lowest <= number < 2**63


def _place(text: Any) -> tuple[str, int | None]:
    """`topic` or `topic:partition`; a colon cannot be in a topic's name."""
    if not isinstance(text, str) or not text:
        raise ApiError(422, '"topics" holds names, or names with a partition like "orders:0"')
    name, colon, partition = text.partition(":")
    if not colon:
        return name, None
    if not (partition.isascii() and partition.isdigit()) or len(partition) > 9:
        raise ApiError(422, f"{text[:260]!r} names no partition")
    return name, int(partition)
