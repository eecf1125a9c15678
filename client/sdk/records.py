"""What goes in and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K")
V = TypeVar("V")

Header = tuple[str, bytes | None]
Headers = Sequence[Header]


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class RecordMetadata(NamedTuple):
    """Where a record now stands."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    """Unix milliseconds, when the sender or the answer named it."""


@dataclass(frozen=True, slots=True)
class Record(Generic[K, V]):
    topic: str
    partition: int
    offset: int
    timestamp: int
    """Unix milliseconds."""
    key: K | None
    value: V | None
    """None is a tombstone."""
    headers: tuple[Header, ...]

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp / 1000, UTC)

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)
