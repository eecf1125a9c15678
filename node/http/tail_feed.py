"""New records of a partition, read once for all who follow it from this node.

A feed reads at the partition's end and keeps the last `FEED_BYTES` of what it read. Readers have no
queues: each asks for the chunk at its own position, and one that has fallen behind what the feed
keeps reads from the log by itself until it has caught up. So a slow reader costs nobody anything,
and five hundred readers of a partition cost one fetch and, if they want the same, one rendering.

A feed reads from this node's own replica while that is in sync, else from the leader. It ends when
its position is void; every reader then checks its own against the leader.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from uuid import UUID

from ...metadata.image import NO_LEADER
from ...wire import ErrorCode
from .batches import size_of
from .errors import ApiError, from_kafka
from .leaders import NOT_THERE_YET, Leaders
from .ports import AnswerLost, HttpNode, Unreachable
from .tail_position import Position
from .tail_reader import Chunk, PartitionReader, Reset

log = logging.getLogger(__name__)

FEED_BYTES = 1 << 20
"""Of records, kept by each feed."""

REMOTE_AT_ONCE = 16
"""Feeds that wait at other nodes at the same time; more take turns."""

LOCAL_WAIT_MS = 1_000
REMOTE_WAIT_MS = 500
"""Then the image is asked again who is to be read from."""

PAUSE_S = 0.05
PAUSE_MAX_S = 1.0


class FeedChunk:
    """A chunk with the forms in which it was sent."""

    __slots__ = ("chunk", "forms", "size")

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.size = sum(map(size_of, chunk.records))
        self.forms: dict[Hashable, bytes] = {}

    def form(self, name: Hashable, render: Callable[[Chunk], bytes]) -> bytes:
        """`render` is asked once for each name."""
        found = self.forms.get(name)
        if found is None:
            found = self.forms[name] = render(self.chunk)
        return found


class Feed:
    """One partition's newest records, for as long as somebody follows them."""

    def __init__(
        self, node: HttpNode, reader: PartitionReader, topic: str, remote: asyncio.Semaphore
    ) -> None:
        self._node = node
        self._reader = reader
        self._topic = topic
        self._remote = remote
        self._chunks: deque[FeedChunk] = deque()
        self._size = 0
        self._end: Position | None = None
        self.listeners: dict[object, Callable[[], None]] = {}
        self.over = False
        self.trouble: ApiError | None = None
        """Why nothing can be read just now."""

    def covers(self, position: Position) -> bool:
        """Whether the record at this position is here, or will be."""
        if self.over or self._end is None:
            return False
        start = self._chunks[0].chunk.begin if self._chunks else self._end
        return position.next_offset >= start.next_offset

    def at(self, position: Position) -> FeedChunk | None:
        """The chunk that goes on behind `position`, of a feed that covers it; None: not yet."""
        for held in reversed(self._chunks):
            if held.chunk.begin.next_offset <= position.next_offset:
                return held if held.chunk.end.next_offset > position.next_offset else None
        return None

    async def run(self) -> None:
        try:
            await self._follow()
        except ApiError as error:
            log.debug("the feed of %s-%d ends: %s", self._topic, self._reader.partition, error)
        except Exception:
            log.exception("the feed of %s-%d failed", self._topic, self._reader.partition)
        finally:
            self.over = True
            self._tell()

    async def _follow(self) -> None:
        self._end = await self._reader.end()
        self._tell()
        pause = PAUSE_S
        while True:
            try:
                found = await self._read(self._end)
            except (ApiError, Unreachable, AnswerLost) as error:
                self.trouble = _as_api_error(error)
                if isinstance(error, ApiError) and error.kafka_error not in NOT_THERE_YET:
                    raise
                if self._is_gone():
                    raise self.trouble from None
                await asyncio.sleep(pause)
                pause = min(PAUSE_MAX_S, 2 * pause)
                # Readers look at the trouble.
                self._tell()
                continue
            self.trouble, pause = None, PAUSE_S
            if isinstance(found, Reset):
                return
            for chunk in found:
                self._keep(FeedChunk(chunk))
                self._end = chunk.end
            if found:
                self._tell()

    async def _read(self, position: Position) -> list[Chunk] | Reset:
        image = self._node.image().partition(self._topic, self._reader.partition)
        own = self._node.node_id
        if (
            image is not None
            and own in image.isr
            and self._node.local_replica(self._topic, self._reader.partition)
        ):
            return await self._reader.read_from(own, position, wait_ms=LOCAL_WAIT_MS)
        if image is None or image.leader == NO_LEADER:
            raise from_kafka(ErrorCode.LEADER_NOT_AVAILABLE)
        async with self._remote:
            return await self._reader.read_from(image.leader, position, wait_ms=REMOTE_WAIT_MS)

    def _is_gone(self) -> bool:
        found = self._node.image().topics.get(self._topic)
        return found is None or found.topic_id != self._reader.topic_id

    def _keep(self, held: FeedChunk) -> None:
        self._chunks.append(held)
        self._size += held.size
        while self._size > FEED_BYTES and len(self._chunks) > 1:
            self._size -= self._chunks.popleft().size

    def _tell(self) -> None:
        for wake in list(self.listeners.values()):
            wake()


class Feeds:
    """The feeds of one node, each with its task. `close` ends them all."""

    def __init__(self, node: HttpNode, leaders: Leaders) -> None:
        self._node = node
        self._leaders = leaders
        self._feeds: dict[tuple[UUID, int], tuple[Feed, asyncio.Task[None]]] = {}
        self._remote = asyncio.Semaphore(REMOTE_AT_ONCE)

    def __len__(self) -> int:
        return len(self._feeds)

    def reader(self, topic: str, topic_id: UUID, partition: int) -> PartitionReader:
        return PartitionReader(self._node, self._leaders, topic, topic_id, partition)

    @contextmanager
    def followed(
        self, topic: str, topic_id: UUID, partition: int, wake: Callable[[], None]
    ) -> Iterator[Feed]:
        """`wake` is called, from the loop, whenever the feed has something new."""
        key = (topic_id, partition)
        if key not in self._feeds or self._feeds[key][0].over:
            feed = Feed(self._node, self.reader(topic, topic_id, partition), topic, self._remote)
            self._feeds[key] = (feed, asyncio.create_task(feed.run(), name=f"feed of {key}"))
        feed, task = self._feeds[key]
        ticket = object()
        feed.listeners[ticket] = wake
        try:
            yield feed
        finally:
            del feed.listeners[ticket]
            if not feed.listeners:
                task.cancel()
                if self._feeds.get(key, (None,))[0] is feed:
                    del self._feeds[key]

    async def close(self) -> None:
        tasks = [task for _, task in self._feeds.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _as_api_error(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    return ApiError(503, str(error), kafka_error=ErrorCode.BROKER_NOT_AVAILABLE, retriable=True)
