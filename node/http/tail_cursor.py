"""One reader's place in one partition: with the feed where it can be, else by itself."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from uuid import UUID

from .errors import ApiError
from .tail_feed import FeedChunk, Feeds
from .tail_position import Position
from .tail_reader import Chunk, Reset

RETRY_S = 0.1
"""Before a leader that could not be read from is asked again."""


class Cursor:
    """`close` leaves the feed."""

    def __init__(
        self,
        feeds: Feeds,
        topic: str,
        topic_id: UUID,
        partition: int,
        position: Position,
        wake: Callable[[], None],
    ) -> None:
        self.position = position
        """Behind what `next` has given out."""
        self.trouble: ApiError | None = None
        """Why nothing can be read just now."""
        self._reader = feeds.reader(topic, topic_id, partition)
        self._followed = partial(feeds.followed, topic, topic_id, partition, wake)
        self._wake = wake
        self._stack = ExitStack()
        self._feed = self._stack.enter_context(self._followed())
        self._checked = False
        """The leader has said that the log holds this position, and that it is its end: from here
        the feed goes on."""
        self._own: deque[Chunk] = deque()
        """Read beside the feed, not given out; what one read brings at most."""
        self._retry_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        self._stack.close()
        if self._timer is not None:
            self._timer.cancel()

    async def next(self) -> FeedChunk | Reset | None:
        """What comes behind `position`, which moves there. None: nothing yet; `wake` will be
        called."""
        while True:
            if self._own:
                return self._give(FeedChunk(self._own.popleft()))
            if self._feed.over:
                self._stack.close()
                self._feed = self._stack.enter_context(self._followed())
                self._checked = False
            if self._checked and self._feed.covers(self.position):
                self.trouble = self._feed.trouble
                held = self._feed.at(self.position)
                return None if held is None else self._give(held)
            if asyncio.get_running_loop().time() < self._retry_at:
                return None
            try:
                found = await self._reader.read(self.position)
            except ApiError as error:
                self.trouble = error
                self._try_later()
                return None
            self.trouble = None
            if isinstance(found, Reset):
                self.position = found.after
                self._checked = False
                return found
            self._own.extend(found)
            if not found:
                self._checked = True
                if not self._feed.covers(self.position):
                    # It has not begun, or begins behind what was the end a moment ago.
                    self._try_later()
                    return None

    def _give(self, held: FeedChunk) -> FeedChunk:
        begin, self.position = self.position, held.chunk.end
        if held.chunk.begin.next_offset == begin.next_offset:
            return held
        records = [r for r in held.chunk.records if r.record.offset >= begin.next_offset]
        return FeedChunk(Chunk(begin, held.chunk.end, records))

    def _try_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._retry_at = loop.time() + RETRY_S
        self._timer = loop.call_at(self._retry_at, self._wake)
