"""GET /api/v1/topics/{topic}/tail: a topic's records as they come, from any node.

The answer stays open. It says by itself where it began and, with every event, how to go on after a
broken connection: `Last-Event-ID`, or `last_event_id` for those who cannot send a header. See
`tail_events` for what is said, `tail_position` for ids.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping

from aiohttp import web

from ...metadata.image import TopicImage
from ...seam import frozen
from . import query
from .bodies import worked
from .consume import LARGEST_TAIL, out_encodings
from .errors import ApiError, no_partition
from .keys import ADMISSION, LEASE, NODE, OPEN
from .media import require_accept
from .open_response import OpenResponse
from .records_out import OutEncodings
from .tail_cursor import Cursor
from .tail_events import Form, TailEvents
from .tail_feed import FeedChunk, Feeds
from .tail_position import EventId, Position
from .tail_reader import Chunk, PartitionReader, Reset
from .topics import existing_topic

MAX_PARTITIONS = 100
"""Of one tail: its ids name them all."""

STALLED_AFTER_S = 1.0
"""A change of leader takes less, and is nothing to speak of."""

HEARTBEAT_MS = 15_000
LONGEST_HEARTBEAT_MS = 60_000
SHORTEST_HEARTBEAT_MS = 100

GONE_LOOK_S = 2.0
"""Between looks whether the client is there, while there is nothing to say: its place is another's
then, and so is its feed."""

_LONGEST_FOR_MS = 24 * 3_600_000

FEEDS = web.AppKey("feeds", Feeds)

_INT64_MAX = 2**63 - 1


@frozen
class Wanted:
    partitions: tuple[int, ...] | None
    """None: all, also those that come to be later."""
    start: str
    """latest, earliest, offset, timestamp or tail."""
    number: int
    event_id: EventId | None
    heartbeat_s: float
    limit: int | None
    """Records after which the tail ends."""
    for_s: float | None
    encodings: OutEncodings


async def tail(request: web.Request) -> web.StreamResponse:
    node, feeds, admission = request.app[NODE], request.app[FEEDS], request.app[ADMISSION]
    form = Form(require_accept(request, Form.LINES, Form.SSE))
    wanted = _wanted(request)
    topic = existing_topic(node, request.match_info["topic"])
    follower = Follower(feeds, topic, wanted, form)
    with admission.tail(request[LEASE]), request.app[OPEN].entered(follower.stop):
        await follower.begin()
        answer = OpenResponse(request, form)
        try:
            await answer.start()
            with answer.to_the_end():
                await follower.run(answer, lambda: node.image().topics.get(topic.name))
        finally:
            follower.close()
    return answer.response


class Follower:
    """One open tail."""

    def __init__(self, feeds: Feeds, topic: TopicImage, wanted: Wanted, form: Form) -> None:
        self._feeds = feeds
        self._topic = topic
        self._wanted = wanted
        self._form = form
        self._events = TailEvents(form, topic.topic_id, wanted.encodings)
        self._cursors: dict[int, Cursor] = {}
        self._news = asyncio.Event()
        self._stopping = False
        self._first: list[Reset] = []
        """Resets that the reader's own position makes necessary."""
        self._stalled: dict[int, float] = {}
        """Partition -> when it is said to stall, or was; those that cannot be read just now."""
        self._left = wanted.limit
        """Records still to be said; None: without end."""
        self._end_at: float | None = None

    def stop(self) -> None:
        self._stopping = True
        self._news.set()

    def close(self) -> None:
        for cursor in self._cursors.values():
            cursor.close()

    async def begin(self) -> None:
        """Find the places to read from. Raises ApiError; nothing has been said then."""
        count = len(self._topic.partitions)
        numbers = self._wanted.partitions or tuple(range(count))
        for number in numbers:
            if number >= count:
                raise no_partition(self._topic.name, number, count)
        if len(numbers) > MAX_PARTITIONS:
            raise ApiError(
                422,
                f"a tail reads at most {MAX_PARTITIONS} partitions at once",
                hint="partitions=0,1,2 names those to read",
            )
        positions = await asyncio.gather(*(self._start(number) for number in numbers))
        for number, position in zip(numbers, positions, strict=True):
            self._enter(number, position)

    async def _start(self, partition: int) -> Position:
        wanted, reader = self._wanted, self._reader(partition)
        if wanted.event_id is not None:
            known = wanted.event_id.positions.get(partition)
            if wanted.event_id.topic_id != self._topic.topic_id:
                # Another topic under the same name: of this one nothing has been seen.
                after = await reader.earliest()
                self._first.append(Reset("recreated", partition, known or Position(0), after))
                return after
            # A partition that the id does not name came to be later.
            return await reader.earliest() if known is None else known
        if wanted.start == "offset":
            return Position(wanted.number)
        if wanted.start == "timestamp":
            return await reader.at_time(wanted.number)
        if wanted.start == "latest":
            return await reader.end()
        earliest = await reader.earliest()
        if wanted.start == "earliest":
            return earliest
        return max(earliest, Position((await reader.end()).next_offset - wanted.number))

    async def run(self, answer: OpenResponse, topic_now: Callable[[], TopicImage | None]) -> None:
        """Until it is over, and says why, or the client has gone."""
        await answer.send(self._events.opened(self._topic.name, self._positions()))
        for reset in self._first:
            await answer.send(self._events.reset(self._topic.name, reset, self._positions()))
        if self._wanted.for_s is not None:
            self._end_at = asyncio.get_running_loop().time() + self._wanted.for_s
        while (why := self._why_over(topic_now())) is None:
            self._news.clear()
            said = False
            for number in list(self._cursors):
                said |= await self._read(number, answer)
            now = topic_now()
            if now is None:
                continue
            if now.topic_id != self._topic.topic_id:
                await self._begin_anew(now, answer)
            elif new := self._new_partitions(now):
                for number in new:
                    self._enter(number, Position(0))
            elif not said:
                await self._wait(answer)
            else:
                # What comes from a feed and fits the socket waits for nobody (F1).
                await asyncio.sleep(0)
        await answer.send(self._events.end(why, self._positions()))
        await answer.finish()

    def _new_partitions(self, now: TopicImage) -> range:
        """Those that came to be since, and have room in an id."""
        if self._wanted.partitions is not None:
            return range(0)
        return range(len(self._cursors), min(len(now.partitions), MAX_PARTITIONS))

    def _why_over(self, topic_now: TopicImage | None) -> str | None:
        if self._stopping:
            return "stopping"
        if topic_now is None:
            return "deleted"
        if self._left == 0:
            return "limit"
        if self._end_at is not None and asyncio.get_running_loop().time() >= self._end_at:
            return "time"
        return None

    async def _read(self, number: int, answer: OpenResponse) -> bool:
        """Say the next of one partition; False when there is nothing."""
        cursor = self._cursors[number]
        if self._left == 0:
            return False
        found = await cursor.next()
        if cursor.trouble is None:
            self._stalled.pop(number, None)
        if found is None:
            return False
        if isinstance(found, Reset):
            await answer.send(self._events.reset(self._topic.name, found, self._positions()))
        elif found.chunk.records:
            if self._left is not None:
                found = self._within_limit(found, cursor)
            await answer.send(await self._rendered(found, number))
        return True

    def _within_limit(self, held: FeedChunk, cursor: Cursor) -> FeedChunk:
        assert self._left is not None
        records = held.chunk.records[: self._left]
        self._left -= len(records)
        if len(records) == len(held.chunk.records):
            return held
        last = records[-1]
        cursor.position = Position(last.record.offset + 1, last.leader_epoch)
        return FeedChunk(Chunk(held.chunk.begin, cursor.position, records))

    async def _rendered(self, held: FeedChunk, number: int) -> bytes:
        if len(self._cursors) == 1:
            return await worked(
                held.size,
                lambda: held.form(
                    self._events.name, lambda chunk: self._events.records(chunk, number, {})
                ),
            )
        others = {n: c.position for n, c in self._cursors.items() if n != number}
        return await worked(held.size, lambda: self._events.records(held.chunk, number, others))

    async def _wait(self, answer: OpenResponse) -> None:
        """For news, saying now and then that one is still there. Raises ClientGone."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._wanted.heartbeat_s
        if self._end_at is not None:
            until = min(until, self._end_at)
        while not self._news.is_set():
            try:
                async with asyncio.timeout_at(min(until, loop.time() + GONE_LOOK_S)):
                    await self._news.wait()
            except TimeoutError:
                answer.check_client()
                if loop.time() < until:
                    continue
                if until != self._end_at:
                    await answer.send(self._events.heartbeat())
                break
        for number, cursor in self._cursors.items():
            if cursor.trouble is None:
                continue
            if loop.time() >= self._stalled.setdefault(number, loop.time() + STALLED_AFTER_S):
                self._stalled[number] = math.inf
                await answer.send(self._events.stalled(number, cursor.trouble))

    async def _begin_anew(self, topic: TopicImage, answer: OpenResponse) -> None:
        """The topic was deleted and created again under its name."""
        before = self._positions()
        self.close()
        self._cursors.clear()
        self._topic = topic
        self._events = TailEvents(self._form, topic.topic_id, self._wanted.encodings)
        numbers = self._wanted.partitions or range(min(len(topic.partitions), MAX_PARTITIONS))
        for number in numbers:
            if number < len(topic.partitions):
                self._enter(number, Position(0))
        for number, cursor in self._cursors.items():
            reset = Reset("recreated", number, before.get(number, Position(0)), cursor.position)
            await answer.send(self._events.reset(topic.name, reset, self._positions()))

    def _enter(self, number: int, position: Position) -> None:
        self._cursors[number] = Cursor(
            self._feeds,
            self._topic.name,
            self._topic.topic_id,
            number,
            position,
            self._news.set,
        )

    def _reader(self, partition: int) -> PartitionReader:
        return self._feeds.reader(self._topic.name, self._topic.topic_id, partition)

    def _positions(self) -> dict[int, Position]:
        return {number: cursor.position for number, cursor in self._cursors.items()}


def _wanted(request: web.Request) -> Wanted:
    parameters = request.query
    given = [n for n in ("from", "offset", "timestamp", "tail") if n in parameters]
    if len(given) > 1:
        raise ApiError(400, "from, offset, timestamp and tail exclude each other")
    partitions = _partitions(parameters)
    start, number = "latest", 0
    if given == ["from"]:
        start = parameters["from"]
        if start not in ("earliest", "latest"):
            raise ApiError(400, f"from is {start[:40]!r}; it takes earliest or latest")
    elif given:
        start = given[0]
        largest = LARGEST_TAIL if start == "tail" else _INT64_MAX
        number = query.whole_number(parameters, start, largest=largest) or 0
        if start == "offset" and (partitions is None or len(partitions) != 1):
            raise ApiError(400, "an offset is of one partition: partitions=0&offset=5")
    last_id = request.headers.get("Last-Event-ID", parameters.get("last_event_id", ""))
    heartbeat_ms = query.duration_ms(parameters, "heartbeat", largest_ms=LONGEST_HEARTBEAT_MS)
    for_ms = query.duration_ms(parameters, "for", largest_ms=_LONGEST_FOR_MS)
    return Wanted(
        partitions=partitions,
        start=start,
        number=number,
        event_id=EventId.parse(last_id) if last_id else None,
        heartbeat_s=max(heartbeat_ms or HEARTBEAT_MS, SHORTEST_HEARTBEAT_MS) / 1000,
        limit=query.whole_number(parameters, "limit", largest=_INT64_MAX),
        for_s=for_ms / 1000 if "for" in parameters else None,
        encodings=out_encodings(parameters),
    )


def _partitions(parameters: Mapping[str, str]) -> tuple[int, ...] | None:
    text = parameters.get("partitions")
    if text is None:
        return None
    numbers = text.split(",")
    if not all(n.isascii() and n.isdigit() and len(n) <= 9 for n in numbers):
        raise ApiError(400, f"partitions is {text[:80]!r}; it takes numbers like 0,1,2")
    return tuple(dict.fromkeys(map(int, numbers)))
