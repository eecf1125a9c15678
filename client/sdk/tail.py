"""`async for record in client.tail(topic)`: a topic's records as they come, without a group.

One answer of a node that stays open brings the records of all partitions. Each event has an id to
go on from at any other node, so a tail that lost its node leaves nothing out and repeats nothing;
where its position is void, the node says so with a reset, and the tail with a `Gap`.
"""

from __future__ import annotations

import base64
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from .ago import ago_ms
from .codecs import Codec, Coded
from .deadline import Deadline
from .errors import DecodeFailed
from .records import Record, TopicPartition
from .tail_stream import TailStream
from .topics import Topics, topic_path
from .transport import Repeat, Transport

K = TypeVar("K")
V = TypeVar("V")

logger = logging.getLogger(__name__)

GAPS_KEPT = 1_000
PROBE_SECONDS = 5.0
UNKNOWN_EPOCH = -1


@dataclass(frozen=True, slots=True)
class Gap:
    """A tail's position was void; it went on at `next_offset`."""

    place: TopicPartition
    expected_offset: int
    next_offset: int
    reason: Literal["retention", "truncated", "recreated"]
    """The records were deleted before the tail came to them; cut off by an unclean election; or
    the topic is another one that was created under the name."""


def first_query(since: str | int | None) -> dict[str, str]:
    """`"start"`, `"end"`, `"-5m"`, Unix milliseconds, or None for the end. Raises ValueError."""
    if since is None or since == "end":
        return {"from": "latest"}
    if since == "start":
        return {"from": "earliest"}
    if isinstance(since, int):
        return {"timestamp": str(since)}
    moment_ms = ago_ms(since)
    if moment_ms is None:
        raise ValueError(f"{since!r} is neither 'start', 'end', '-5m' nor a time in milliseconds")
    return {"timestamp": str(moment_ms)}


def record_of(
    document: Mapping[str, Any], place: TopicPartition, key: Coded[K], value: Coded[V]
) -> Record[K, V]:
    """From JSON whose keys, values and headers are base64. Raises DecodeFailed."""
    raw_key, raw_value = _data(document.get("key")), _data(document.get("value"))
    headers = tuple((one["key"], _data(one["value"])) for one in document.get("headers") or ())
    topic, partition = place
    offset, timestamp = document["offset"], document["timestamp"]
    try:
        decoded_key, decoded_value = key.decode(raw_key), value.decode(raw_value)
    except ValueError as error:
        raw = Record(topic, partition, offset, timestamp, raw_key, raw_value, headers)
        raise DecodeFailed(
            f"{topic}-{partition} at {offset} cannot be decoded: {error}", raw
        ) from error
    return Record(topic, partition, offset, timestamp, decoded_key, decoded_value, headers)


def _data(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


class Tail(Generic[K, V]):
    """Of one `client.tail`; `positions` says where it stands, `gaps` what it had to leave out."""

    def __init__(
        self,
        transport: Transport,
        topic: str,
        *,
        key: Codec[K],
        value: Codec[V],
        since: str | int | None = None,
        positions: Mapping[TopicPartition, int] | None = None,
        partitions: Sequence[int] | None = None,
        patience: float = 60.0,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> None:
        self.topic = topic
        self.positions: dict[TopicPartition, int] = dict(positions or {})
        """The next offset of each partition, behind what was handed out."""
        self.gaps: deque[Gap] = deque(maxlen=GAPS_KEPT)
        """The newest."""
        self._transport = transport
        self._key = Coded(key)
        self._value = Coded(value)
        self._first = first_query(since)
        self._only: Mapping[str, str] = (
            {} if partitions is None else {"partitions": ",".join(map(str, partitions))}
        )
        self._places_are_given = bool(positions)
        self._event_id = ""
        self._patience = patience
        self._on_gap = on_gap
        self._stalled: dict[int, Deadline] = {}
        """Partition -> when it is looked at that the node could not read."""

    async def __aiter__(self) -> AsyncIterator[Record[K, V]]:
        """For ever. Raises TopicNotFound, DecodeFailed, and Unreachable or Refused once nothing, or
        a partition, could be read for `patience` seconds."""
        # Says by itself which name was meant, or why no node can be asked.
        await Topics(self._transport).partitions(self.topic, Deadline.after(self._patience))
        stream = TailStream(
            self._transport, f"{topic_path(self.topic)}/tail", self._query, self._patience
        )
        try:
            while True:
                event = await stream.next_event()
                if event["event"] == "record":
                    yield self._record(event)
                elif event["event"] == "open" and self._go_to_given_places(event):
                    stream.close()
                else:
                    self._on_event(event)
                    await self._look_at_stalled()
        finally:
            stream.close()

    def _query(self) -> dict[str, str]:
        where = {"last_event_id": self._event_id} if self._event_id else self._first
        # Of the answer that teaches ids only the first event is wanted.
        none = {"limit": "0"} if self._places_are_given else {}
        return {**where, **self._only, **none, "format": "base64"}

    def _record(self, event: Mapping[str, Any]) -> Record[K, V]:
        """Raises DecodeFailed; whoever iterates again goes on behind it."""
        place = TopicPartition(self.topic, event["partition"])
        self.positions[place] = event["offset"] + 1
        self._event_id = event["id"]
        if self._stalled:
            self._stalled.pop(place.partition, None)
        return record_of(event, place, self._key, self._value)

    def _on_event(self, event: Mapping[str, Any]) -> None:
        match event["event"]:
            case "open":
                self._on_open(event)
            case "reset":
                self._on_reset(event)
            case "stalled":
                partition = event["partition"]
                logger.warning("%s-%d stalls: %s", self.topic, partition, event.get("message"))
                self._stalled.setdefault(partition, Deadline.after(self._patience))

    def _on_open(self, event: Mapping[str, Any]) -> None:
        self._stalled.clear()
        if not self._event_id:
            self._event_id = event["id"]
            for place, offset in self._places(event):
                self.positions.setdefault(place, offset)

    def _go_to_given_places(self, event: Mapping[str, Any]) -> bool:
        """Whether to ask anew: only an id, which the first answer has taught how to make, can name
        several places."""
        if not self._places_are_given:
            return False
        self._places_are_given = False
        self._on_open(event)
        topic_id, _, _ = self._event_id.partition(":")
        places = (
            f"{place.partition}:{UNKNOWN_EPOCH}:{self.positions[place] - 1}"
            for place, _ in self._places(event)
        )
        self._event_id = f"{topic_id}:{','.join(places)}"
        return True

    def _places(self, opened: Mapping[str, Any]) -> Iterator[tuple[TopicPartition, int]]:
        for one in opened["partitions"]:
            yield TopicPartition(self.topic, one["partition"]), one["offset"]

    def _on_reset(self, event: Mapping[str, Any]) -> None:
        place = TopicPartition(self.topic, event["partition"])
        gap = Gap(place, event["from_offset"], event["to_offset"], event["reason"])
        self.positions[place] = gap.next_offset
        self._event_id = event["id"]
        logger.warning(
            "%s-%d: offset %d is void (%s), going on at %d",
            *place,
            gap.expected_offset,
            gap.reason,
            gap.next_offset,
        )
        self.gaps.append(gap)
        if self._on_gap is not None:
            self._on_gap(gap)

    async def _look_at_stalled(self) -> None:
        """A node does not say when a partition that stalled is well again and only has nothing new.
        Raises Unreachable, Refused when it is not."""
        for partition, patience in list(self._stalled.items()):
            if patience.passed:
                await self._transport.call(
                    "GET",
                    f"{topic_path(self.topic)}/partitions/{partition}/records",
                    params={"tail": "0", "max_bytes": "1"},
                    deadline=Deadline.after(PROBE_SECONDS),
                    repeat=Repeat.SAFELY,
                )
                del self._stalled[partition]
