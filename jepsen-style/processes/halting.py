"""Holds a process still for certain, so that nothing it does falls into what is done to it."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

HALTS_WITHIN_S = 5.0
_LOOK_AGAIN_S = 0.002

_STILL = frozenset("TtDZX")
"""States of /proc/<pid>/stat in which a thread runs none of its own code: stopped, traced, in the
middle of a system call that it will not come out of while stopped, dead."""


async def halt(pid: int) -> None:
    """SIGSTOP, and wait until every thread has heeded it. A process that has ended is still.

    Raises TimeoutError after HALTS_WITHIN_S.
    """
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    async with asyncio.timeout(HALTS_WITHIN_S):
        while not is_still(pid):  # noqa: ASYNC110 - the kernel tells nobody but a parent or tracer
            await asyncio.sleep(_LOOK_AGAIN_S)


def is_still(pid: int) -> bool:
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            stat = (thread / "stat").read_text()
            # The state comes after the name, which stands in parentheses and may hold some itself.
            if stat.rpartition(")")[2].split()[0] not in _STILL:
                return False
    return True
