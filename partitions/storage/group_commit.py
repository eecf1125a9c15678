"""Group commit: at most one sync in flight per log; the next starts when more was written (C5).

A round covers what was written before it began and nothing else (RULES C2): `begin` says what that
is, `Round.sync` puts it on the device, `finish` lets it count. A failed sync is `Fatal`, and ends
the process through the scope's `on_fatal` (RULES C4). A full disk or a lack of descriptors while
preparing a round (writing an index or the epoch checkpoint) is no failed sync: nothing counts, and
the round is tried again after a pause.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable
from math import inf
from typing import Generic, Protocol, TypeVar

from ...seam import TaskScope

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.5

PASSING_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
)


class Round(Protocol):
    async def sync(self) -> None:
        """All that this round covers is on the device when it returns. May be called again after
        an OSError; Fatal is final."""
        ...


RoundT = TypeVar("RoundT", bound=Round)


class GroupCommit(Generic[RoundT]):
    """Runs rounds one after the other while `begin` has work.

    Idle -> Running when requested; Running -> Idle when `begin` returns None; from both to Paused
    by `pause`, which waits for the round in flight, and back by `resume`.
    """

    def __init__(
        self,
        *,
        begin: Callable[[], RoundT | None],
        finish: Callable[[RoundT], None],
        turns: asyncio.Semaphore,
        scope: TaskScope,
        name: str,
    ) -> None:
        """`turns`: shared by all logs; bounds how many of them sync at once."""
        self._begin = begin
        self._finish = finish
        self._turns = turns
        self._scope = scope
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self._pauses = 0

    def request(self) -> None:
        """Something was written: see that a round covers it."""
        if self._task is None and not self._pauses:
            self._task = self._scope.spawn(self._run(), name=f"sync {self._name}")

    async def _run(self) -> None:
        try:
            while not self._pauses and (round_ := self._begin()) is not None:
                if not await self._carry_out(round_, may_give_up=True):
                    return
        finally:
            self._task = None

    async def _carry_out(
        self, round_: RoundT, *, may_give_up: bool, patience_s: float = inf
    ) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience_s
        while True:
            try:
                async with self._turns:
                    await round_.sync()
            except OSError as error:
                if error.errno not in PASSING_ERRORS or loop.time() >= deadline:
                    raise
                logger.warning("sync of %s waits: %s", self._name, error)
                await asyncio.sleep(RETRY_SECONDS)
                if may_give_up and self._pauses:
                    return False  # Nothing of it counts; a later round covers it again.
            else:
                self._finish(round_)
                return True

    async def pause(self) -> None:
        """Return when no round is in flight; none starts until `resume`."""
        self._pauses += 1
        if self._task is not None:
            await asyncio.wait([self._task])

    def resume(self) -> None:
        self._pauses -= 1
        self.request()

    async def run_once(self, round_: RoundT, *, patience_s: float = 0.0) -> None:
        """Carry out `round_` in the caller's task; only while paused. Raises OSError when what
        should pass has not passed for so long."""
        assert self._pauses, "a round of its own while others may run"
        await self._carry_out(round_, may_give_up=False, patience_s=patience_s)
