"""A number of bytes that may be in use at once. Who wants more waits, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque

from .deadline import Deadline
from .errors import DeadlineExceeded


class Room:
    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def try_take(self, size: int) -> bool:
        """Something larger than all of the room fits when nothing else is there."""
        if self._waiting or not self._fits(size):
            return False
        self.used += size
        return True

    def _fits(self, size: int) -> bool:
        return self.used == 0 or self.used + size <= self.max_bytes

    async def take(self, size: int, deadline: Deadline) -> None:
        """Raises DeadlineExceeded; then nothing is taken."""
        if self.try_take(size):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            async with asyncio.timeout_at(deadline.at):
                await turn
        except BaseException as error:
            self._leave(size, turn)
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded(
                    f"the buffer of {self.max_bytes} bytes stayed full",
                    hint="the cluster takes records more slowly than they come",
                ) from None
            raise

    def _leave(self, size: int, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled():
            self.give_back(size)  # It was given in the moment in which the caller gave up.
            return
        self._waiting = deque(entry for entry in self._waiting if entry[1] is not turn)
        self._admit()

    def give_back(self, size: int) -> None:
        self.used -= size
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size, turn = self._waiting.popleft()
            if not turn.done():
                self.used += size
                turn.set_result(None)
