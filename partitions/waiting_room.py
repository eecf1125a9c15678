"""Where requests wait (Kafka's purgatory): produces for an offset, fetches for something to read.

Nothing here decides; whoever moves an offset calls `release`, whoever asked sets the deadline.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from ..wire import ErrorCode

OnAnswer = Callable[[ErrorCode], None]


class OffsetWaiter:
    """One batch whose answer waits until some end reaches `end_offset`."""

    __slots__ = ("_room", "end_offset", "on_answer")

    def __init__(self, room: OffsetRoom, end_offset: int, on_answer: OnAnswer) -> None:
        self._room = room
        self.end_offset = end_offset
        self.on_answer: OnAnswer | None = on_answer
        """None once answered or given up."""

    def answer(self, error: ErrorCode) -> None:
        on_answer, self.on_answer = self.on_answer, None
        if on_answer is not None:
            on_answer(error)

    def give_up(self) -> None:
        """The deadline has passed; the waiter is forgotten without an answer."""
        if self.on_answer is not None:
            self.on_answer = None
            self._room.on_given_up()


class OffsetRoom:
    """Waiters of one partition for one of its ends, smallest offset first. Bounded by `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[int, int, OffsetWaiter]] = []
        self._numbers = count()
        self._given_up = 0

    def __len__(self) -> int:
        """Waiters that still want an answer."""
        return len(self._heap) - self._given_up

    @property
    def full(self) -> bool:
        return len(self) >= self._limit

    def wait(self, end_offset: int, on_answer: OnAnswer) -> OffsetWaiter:
        waiter = OffsetWaiter(self, end_offset, on_answer)
        heapq.heappush(self._heap, (end_offset, next(self._numbers), waiter))
        return waiter

    def on_given_up(self) -> None:
        self._given_up += 1
        # While the end stands still nobody is released: without this the dead would pile up.
        if self._given_up > 64 and self._given_up * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].on_answer is not None]
            heapq.heapify(self._heap)
            self._given_up = 0

    def release(self, reached: int, error: ErrorCode) -> None:
        """Answer all that waited for `reached` or less."""
        while self._heap and self._heap[0][0] <= reached:
            self._answer(heapq.heappop(self._heap)[2], error)

    def fail_beyond(self, end_offset: int, error: ErrorCode) -> None:
        """The log was cut to `end_offset`: whoever waits for more is told so."""
        beyond = [entry for entry in self._heap if entry[0] > end_offset]
        if beyond:
            self._heap = [entry for entry in self._heap if entry[0] <= end_offset]
            heapq.heapify(self._heap)
            for _, _, waiter in sorted(beyond, key=lambda entry: entry[:2]):
                self._answer(waiter, error)

    def fail_all(self, error: ErrorCode) -> None:
        self.fail_beyond(-1, error)

    def _answer(self, waiter: OffsetWaiter, error: ErrorCode) -> None:
        if waiter.on_answer is None:
            self._given_up -= 1
        else:
            waiter.answer(error)


class PendingAnswers:
    """What one produce request still waits for, over all its partitions, until its deadline."""

    def __init__(self) -> None:
        self._waiters: dict[OffsetWaiter, OnAnswer] = {}
        self._done: asyncio.Future[None] | None = None

    def add(self, room: OffsetRoom, end_offset: int, on_answer: OnAnswer) -> None:
        """`on_answer` is called once, now or later, with the partition's error."""

        def answered(error: ErrorCode) -> None:
            del self._waiters[waiter]
            on_answer(error)
            if not self._waiters and self._done is not None and not self._done.done():
                self._done.set_result(None)

        waiter = room.wait(end_offset, answered)
        self._waiters[waiter] = on_answer

    async def wait(self, deadline: float) -> None:
        """Return when all have been answered; at the deadline the rest get REQUEST_TIMED_OUT."""
        if not self._waiters:
            return
        loop = asyncio.get_running_loop()
        self._done = loop.create_future()
        timer = loop.call_at(deadline, self._expire)
        try:
            await self._done
        finally:
            timer.cancel()
            self._give_up(None)  # Nothing is left, unless the asker was cancelled.

    def _expire(self) -> None:
        self._give_up(ErrorCode.REQUEST_TIMED_OUT)
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    def _give_up(self, error: ErrorCode | None) -> None:
        waiters, self._waiters = self._waiters, {}
        for waiter, on_answer in waiters.items():
            waiter.give_up()
            if error is not None:
                on_answer(error)


class FetchWait:
    """One fetch request that waits until a partition of it has moved, or its deadline.

    `wake` says which of the request's partitions (any hashable name) to look at again.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._moved: dict[int, None] = {}
        self._future: asyncio.Future[bool] | None = None

    def wake(self, position: int) -> None:
        """Partition number `position` of the request has moved."""
        self._moved[position] = None
        if self._future is not None and not self._future.done():
            self._future.set_result(True)

    def hasten(self, deadline: float) -> None:
        """Do not wait beyond `deadline`."""
        self.deadline = min(self.deadline, deadline)
        if self._future is not None and not self._future.done():
            # The waiting coroutine sets its timer anew.
            self._future.set_result(True)

    async def moved(self) -> list[int] | None:
        """Positions that moved since the last call, oldest first; None when the time is up."""
        while not self._moved:
            loop = asyncio.get_running_loop()
            if loop.time() >= self.deadline:
                return None
            self._future = loop.create_future()
            timer = loop.call_at(self.deadline, self._expire, self._future)
            try:
                await self._future
            finally:
                timer.cancel()
                self._future = None
        moved, self._moved = list(self._moved), {}
        return moved

    @staticmethod
    def _expire(future: asyncio.Future[bool]) -> None:
        if not future.done():
            future.set_result(False)


class FetchRoom:
    """Fetches that wait for one partition, each under its position in the request."""

    __slots__ = ("_waits",)

    def __init__(self) -> None:
        self._waits: dict[tuple[FetchWait, int], None] = {}

    def __len__(self) -> int:
        return len(self._waits)

    def enter(self, wait: FetchWait, position: int) -> None:
        self._waits[wait, position] = None

    def leave(self, wait: FetchWait, position: int) -> None:
        self._waits.pop((wait, position), None)

    def wake_all(self) -> None:
        for wait, position in self._waits:
            wait.wake(position)
