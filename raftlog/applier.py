"""Committed commands reach the state machine: in order, so much work in one turn of the loop (F1).

To the engine a command is applied when it has been handed over here. Whatever else is said of the
applied index (proposals, barriers, observers, snapshots) means that the machine has done it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import GeneratorType

from .interface import Applied, StateMachine, Steps

WORK_PER_COMMAND = 8
"""What a command counts by itself, in the units of `Steps`."""


class Application:
    """One command on its way through the machine."""

    __slots__ = ("_on_applied", "applied", "command", "index")

    def __init__(self, index: int, command: bytes) -> None:
        self.index = index
        self.command = command
        self.applied: Applied | None = None
        self._on_applied: Callable[[Applied], None] | None = None

    def tell(self, on_applied: Callable[[Applied], None]) -> None:
        """At once, or as soon as it is applied; never when a snapshot comes in between."""
        if self.applied is not None:
            on_applied(self.applied)
        else:
            self._on_applied = on_applied

    def done(self, result: object) -> None:
        self.applied = Applied(self.index, result)
        if self._on_applied is not None:
            self._on_applied(self.applied)


class Applier:
    """One node's. What its machine raises passes through, and ends the node."""

    def __init__(
        self,
        machine: StateMachine,
        *,
        work_per_turn: int,
        on_applied: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_applied` is told of every applied command, barriers among them."""
        self._machine = machine
        self._on_applied = on_applied
        self._work_per_turn = work_per_turn
        self._left = work_per_turn
        """Work that this turn of the loop may still do; what is begun may exceed it by a step."""
        self._queue: deque[Application] = deque()
        """The first may have been begun. No longer than the journal, whose entries these are."""
        self._steps: Steps | None = None
        """Of the first, once it has been begun."""

    @property
    def next_index(self) -> int | None:
        """Of the first command that waits or is under way; None when all are applied."""
        return self._queue[0].index if self._queue else None

    def submit(self, index: int, command: bytes) -> Application:
        """Apply a command behind all others; at once if this turn still has room for it.

        An empty command is a barrier, which no machine sees.
        """
        application = Application(index, command)
        self._queue.append(application)
        self._work()
        return application

    def turn(self) -> bool:
        """Do one turn's work; whether something is left for another one."""
        self._left = self._work_per_turn
        self._work()
        return bool(self._queue)

    def drop(self) -> None:
        """A snapshot takes the place of all that waits here, begun or not."""
        self._queue.clear()
        self._steps = None

    def _work(self) -> None:
        while self._queue and self._left > 0:
            if self._steps is None:
                self._begin(self._queue[0])
            else:
                self._go_on(self._steps)

    def _begin(self, first: Application) -> None:
        self._left -= WORK_PER_COMMAND
        result = self._machine.apply(first.index, first.command) if first.command else None
        if isinstance(result, GeneratorType):
            self._steps = result
        else:
            self._end(result)

    def _go_on(self, steps: Steps) -> None:
        try:
            while self._left > 0:
                self._left -= next(steps)
        except StopIteration as end:
            self._steps = None
            self._end(end.value)

    def _end(self, result: object) -> None:
        self._queue.popleft().done(result)
        self._on_applied()
