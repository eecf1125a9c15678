"""What was promised of each topic's records: how they are kept, and by how many at the least.

A history says it in observations `durability`, one for each topic, or one for all when it names
none. The mode is settled when a topic is made (RULES C1); the least number of replicas may be
changed later, and then the smallest one said counts.

| mode | who acknowledged | survives |
| --- | --- | --- |
| `synced` | has the record on its device | any loss of power, of all nodes at once |
| `page-cache` | has written the record | kills and pauses; loss of power while another holds it |

A topic that is `compacted` promises the last record of each key, and no other.

A disk that is damaged or gone takes records in either mode. Of a topic that nothing is said of,
records are synced, as the product does it, by replicas that nobody has counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Self

from ...history import History, HistoryError
from .observations import observed


class Mode(Enum):
    """What makes a replica count a record as its own."""

    SYNCED = "synced"
    PAGE_CACHE = "page-cache"


@dataclass(frozen=True, slots=True)
class Promise:
    """Of one topic; None: it was not said."""

    mode: Mode = Mode.SYNCED
    replication_factor: int | None = None
    min_insync_replicas: int | None = None
    compacted: bool = False
    """Values are `[record key, ...]`, and of each key the last record stays; others may go."""

    @property
    def least_holders(self) -> int | None:
        """So many replicas held a record when it was acknowledged, or more (RULES D1)."""
        if self.replication_factor is None or self.min_insync_replicas is None:
            return None
        return min(self.replication_factor, self.min_insync_replicas)

    def __str__(self) -> str:
        if self.least_holders is None:
            return self.mode.value
        return (
            f"{self.mode.value}, {self.replication_factor} replicas, acknowledged by "
            f"{self.least_holders} or more"
        )

    def weakened(self, other: Promise) -> Promise:
        """When both were said of one topic: what holds all the time."""
        return replace(
            self,
            replication_factor=smaller(self.replication_factor, other.replication_factor),
            min_insync_replicas=smaller(self.min_insync_replicas, other.min_insync_replicas),
            compacted=self.compacted or other.compacted,
        )


class Promises:
    """By topic."""

    def __init__(
        self, by_topic: Mapping[str, Promise] | None = None, otherwise: Promise | None = None
    ) -> None:
        """`otherwise`: of topics that are not named."""
        self.by_topic = dict(by_topic or {})
        self._otherwise = otherwise or Promise()

    @classmethod
    def of(cls, history: History) -> Self:
        """From the observations `durability`. Raises HistoryError for what cannot be one."""
        said: dict[str | None, Promise] = {}
        for _, seen in observed(history, "durability"):
            topic, promise = seen.get("topic"), promised(seen)
            before = said.setdefault(topic, promise)
            if before.mode is not promise.mode:
                raise HistoryError(f"durability: {topic or 'every topic'} cannot change its mode")
            said[topic] = before.weakened(promise)
        otherwise = said.pop(None, None)
        return cls({str(topic): promise for topic, promise in said.items()}, otherwise)

    def of_key(self, key: str) -> Promise:
        """A key is a topic and the number of its partition; or just a name, in other histories."""
        topic, _, number = key.rpartition("-")
        name = topic if number.isdecimal() and topic in self.by_topic else key
        return self.by_topic.get(name, self._otherwise)


def promised(seen: Mapping[str, Any]) -> Promise:
    try:
        mode = Mode(seen["mode"])
    except (KeyError, ValueError):
        known = ", ".join(mode.value for mode in Mode)
        raise HistoryError(
            f"durability: mode is one of {known}, not {seen.get('mode')!r}"
        ) from None
    return Promise(
        mode,
        count_in(seen, "replication_factor"),
        count_in(seen, "min_insync_replicas"),
        compacted=seen.get("compacted") is True,
    )


def count_in(seen: Mapping[str, Any], name: str) -> int | None:
    count = seen.get(name)
    if count is not None and (type(count) is not int or count < 1):
        raise HistoryError(f"durability: {name} is a number of replicas, not {count!r}")
    return count


def smaller(one: int | None, other: int | None) -> int | None:
    return min((count for count in (one, other) if count is not None), default=None)
