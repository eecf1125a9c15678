"""What a simulation raises, apart from what the simulated world itself raises."""

from __future__ import annotations


class SimEscape(RuntimeError):
    """Code under simulation reached around the seam: real time, thread, socket, file, chance."""


class SimKilled(BaseException):
    """The process died inside this call; the stack that made the call unwinds.

    A `BaseException`, so that no handler in the product takes it for an error of its own. The
    `finally` blocks of this one stack do run, but disk and network of the incarnation are fenced.
    """


class NotReached(AssertionError):
    """What was waited for did not happen within its time; the message lists the waiting tasks."""


class Deadlock(NotReached):
    """What was waited for can never happen: nothing is ready and no timer runs."""


class HostFailed(AssertionError):
    """A host's main coroutine raised, or something raised where nobody could catch it."""


class WatchdogExpired(BaseException):
    """The run took more wall-clock time than it was given; probably a loop that never awaits."""
