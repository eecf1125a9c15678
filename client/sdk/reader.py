"""Single partitions read by offset: no group, and nothing that stays open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from .codecs import Codec, Coded
from .deadline import Deadline
from .records import Record, TopicPartition
from .tail import record_of
from .topics import Topics, topic_path
from .transport import Repeat, Transport

K = TypeVar("K")
V = TypeVar("V")


class Extent(NamedTuple):
    """The records that a partition has now: from `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Page(Generic[K, V]):
    records: tuple[Record[K, V], ...]
    next_offset: int
    """Where to go on: behind what holds no records to show, too."""


class Reader(Generic[K, V]):
    """Of one `client.reader`. Every call asks whichever node answers, for `request_timeout` seconds
    at most, and raises TopicNotFound, Refused, Unreachable."""

    def __init__(
        self, transport: Transport, *, key: Codec[K], value: Codec[V], request_timeout: float
    ) -> None:
        self._transport = transport
        self._topics = Topics(transport)
        self._key = Coded(key)
        self._value = Coded(value)
        self._request_timeout = request_timeout

    async def partitions(self, topic: str) -> int:
        """How many the topic has."""
        return await self._topics.partitions(topic, Deadline.after(self._request_timeout))

    async def extent(self, place: TopicPartition) -> Extent:
        answer = await self._ask(place, {"tail": "0", "max_bytes": "1"})
        return Extent(answer["log_start_offset"], answer["next_offset"])

    async def offset_at(self, place: TopicPartition, timestamp: int) -> int:
        """Of the first record at or after that time in Unix milliseconds; else the end."""
        answer = await self._ask(place, {"timestamp": str(timestamp), "max_bytes": "1"})
        records = answer["records"]
        return int(records[0]["offset"] if records else answer["next_offset"])

    async def page(self, place: TopicPartition, offset: int, *, wait: float = 0.0) -> Page[K, V]:
        """What comes at `offset`, about a megabyte of it; where there is nothing, a node is asked
        to wait so many seconds. Raises DecodeFailed, too."""
        query = {"offset": str(offset), "wait": f"{int(wait * 1000)}ms", "format": "base64"}
        answer = await self._ask(place, query)
        records = (record_of(one, place, self._key, self._value) for one in answer["records"])
        return Page(tuple(records), answer["next_offset"])

    async def _ask(self, place: TopicPartition, query: Mapping[str, str]) -> Mapping[str, Any]:
        answer = await self._transport.call(
            "GET",
            f"{topic_path(place.topic)}/partitions/{place.partition}/records",
            params=query,
            deadline=Deadline.after(self._request_timeout),
            repeat=Repeat.SAFELY,
        )
        document: Mapping[str, Any] = answer.document
        return document
