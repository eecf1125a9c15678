"""`async for record in client.tail(topic)`: a topic's records as they come, without a group.

Each partition is read by requests that wait for what is new. Where to go on is an offset, so a tail
that lost its node goes on at any other one, without a gap and without repeating anything.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .ago import ago_ms
from .codecs import Codec, Coded
from .deadline import Deadline
from .errors import ClientError, DecodeFailed, Refused
from .records import Record, TopicPartition
from .topics import Topics, topic_path
from .transport import Repeat, Transport

K = TypeVar("K")
V = TypeVar("V")

logger = logging.getLogger(__name__)

QUEUE_RECORDS = 2_000
"""Read ahead of whoever takes them, over all partitions."""
MOST_PARTITIONS = 90
"""Each holds a connection while it waits."""
WAIT_MS = 10_000
MAX_BYTES = 1 << 20
OFFSET_OUT_OF_RANGE = 416


@dataclass(frozen=True, slots=True)
class Gap:
    """Records that a tail could not read: deleted before it came to them, or cut off by an
    unclean election."""

    place: TopicPartition
    expected_offset: int
    next_offset: int


def first_query(since: str | int | None) -> dict[str, str]:
    """`"start"`, `"end"`, `"-5m"`, Unix milliseconds, or None for the end. Raises ValueError."""
    if since is None or since == "end":
        return {"tail": "0"}
    if since == "start":
        return {}
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
        patience: float = 60.0,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> None:
        self.topic = topic
        self.positions: dict[TopicPartition, int] = dict(positions or {})
        """The next offset of each partition: of what was handed out, not of what was read ahead."""
        self.gaps: list[Gap] = []
        self._transport = transport
        self._key = Coded(key)
        self._value = Coded(value)
        self._first = first_query(since)
        self._patience = patience
        self._on_gap = on_gap
        self._queue: asyncio.Queue[Record[K, V] | Exception] = asyncio.Queue(QUEUE_RECORDS)

    async def __aiter__(self) -> AsyncIterator[Record[K, V]]:
        """For ever. Raises TopicNotFound, DecodeFailed, and Unreachable or Refused once a partition
        could not be read for `patience` seconds."""
        deadline = Deadline.after(self._patience)
        count = await Topics(self._transport).partitions(self.topic, deadline)
        if count > MOST_PARTITIONS:
            raise ClientError(
                f"{self.topic} has {count} partitions; a tail reads {MOST_PARTITIONS} at most",
                hint="a consumer group shares them",
            )
        reading = [
            asyncio.create_task(self._read(TopicPartition(self.topic, number)))
            for number in range(count)
        ]
        try:
            while True:
                found = await self._queue.get()
                if isinstance(found, Exception):
                    raise found
                self.positions[found.place] = found.offset + 1
                yield found
        finally:
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)

    async def _read(self, place: TopicPartition) -> None:
        offset = self.positions.get(place)
        path = f"{topic_path(place.topic)}/partitions/{place.partition}/records"
        try:
            while True:
                query = self._first if offset is None else {"offset": str(offset)}
                document = await self._poll(place, path, query)
                if document is None:
                    offset = await self._start_after(place, path, offset)
                    continue
                for one in document["records"]:
                    await self._queue.put(record_of(one, place, self._key, self._value))
                offset = document["next_offset"]
        except Exception as error:
            await self._queue.put(error)

    async def _poll(
        self, place: TopicPartition, path: str, query: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """None when the offset is not there any more, or not yet."""
        try:
            answer = await self._transport.call(
                "GET",
                path,
                params={
                    **query,
                    "format": "base64",
                    "wait": str(WAIT_MS),
                    "max_bytes": str(MAX_BYTES),
                },
                deadline=Deadline.after(WAIT_MS / 1000 + self._patience),
                repeat=Repeat.SAFELY,
                attempt_seconds=WAIT_MS / 1000 + 5.0,
            )
        except Refused as error:
            if error.status == OFFSET_OUT_OF_RANGE:
                return None
            raise
        document: dict[str, Any] = answer.document
        return document

    async def _start_after(self, place: TopicPartition, path: str, offset: int | None) -> int:
        """What was expected is gone: go on with the first record that is there."""
        answer = await self._transport.call(
            "GET",
            path,
            params={"format": "base64", "max_bytes": "1"},
            deadline=Deadline.after(self._patience),
            repeat=Repeat.SAFELY,
        )
        document = answer.document
        start, end = document["log_start_offset"], document["high_watermark"]
        expected = start if offset is None else offset
        gap = Gap(place, expected, start if expected < start else end)
        logger.warning(
            "%s: offset %d is not there, going on at %d", place, expected, gap.next_offset
        )
        self.gaps.append(gap)
        if self._on_gap is not None:
            self._on_gap(gap)
        return gap.next_offset
