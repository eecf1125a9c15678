"""The one way to end a process whose world or invariant is broken."""

from __future__ import annotations

from collections.abc import Callable


class Fatal(Exception):
    """A broken invariant or a disk that can no longer be trusted: the process must end.

    Wrong data is worse than no data. The message names the numbers that disagree. Nothing is
    cleaned up on the way out: no clean-shutdown marker, no last flush (RULES C4).
    """


class SyncFailed(Fatal):
    """The device did not take what was written. What the kernel still holds proves nothing, and not
    even what had been synced before in the same blocks is sure (RULES C1, C4)."""


OnFatal = Callable[[BaseException], None]
"""Handed to every part; the process ends with the exception's message and status 1."""
