"""Where the dead are kept until the end of the run.

SIGKILL runs no `finally` block. In one Python process a suspended coroutine that is collected does
run them, so every task and handle of a dead incarnation stays referenced until the run is over.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import warnings
from asyncio.events import Handle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .loop import HostLoop

NOT_STARTED = inspect.CORO_CREATED
CLOSE_ATTEMPTS = 20
"""A `finally` block that awaits needs one push per await."""


class Graveyard:
    def __init__(self) -> None:
        self._buried: list[tuple[HostLoop, list[Handle]]] = []

    def bury(self, loop: HostLoop) -> None:
        """Take what the dead loop would still have run."""
        for task in loop.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._buried.append((loop, list(loop._ready)))
        loop._ready.clear()

    def close(self) -> None:
        """Close all coroutines in order of birth, where nothing they do can matter any more.

        Cycles are broken by hand: a full garbage collection per run costs more than a small run.
        """
        hook = sys.unraisablehook
        sys.unraisablehook = lambda _: None
        try:
            self._close_coroutines()
            for loop, handles in self._buried:
                handles.clear()
                loop.tasks.clear()
                loop._ready.clear()
                loop.signal_handlers.clear()
            self._buried.clear()
        finally:
            sys.unraisablehook = hook

    def _close_coroutines(self) -> None:
        with warnings.catch_warnings():
            # Coroutines that were made and not yet started when their process died.
            warnings.simplefilter("ignore", RuntimeWarning)
            for loop, _ in self._buried:
                for task in list(loop.tasks):
                    _close(task.get_coro())


def _close(coroutine: Any) -> None:
    if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == NOT_STARTED:
        # It was handed another one to await, which nobody else will close, and which says so when
        # it goes: a request whose process died before its first step.
        for held in inspect.getcoroutinelocals(coroutine).values():
            if inspect.iscoroutine(held):
                _close(held)
    for _ in range(CLOSE_ATTEMPTS):
        with contextlib.suppress(BaseException):
            coroutine.close()
            break
