"""What lives long is left out of garbage collections (RULES F1).

A full collection looks at every object that may be part of a cycle, some seventy for each log and
thirty for each partition that waits for its log: with 10,000 of them that was a turn of the loop of
100 ms and more, again and again while a node opens its logs or makes new ones. So whenever there is
so much more than ever, what lives then is left out.

The collector itself says when to look: when it has been through what is young, which it is after so
many thousand objects made. A node at rest makes none, and nobody asks.

The price: an open log is such a cycle, so one that was left out and is deleted takes its 8 kB to
the end of the process. That is paid once for the most logs that were ever open, and not again by
topics that come and go; to look at everything again would take half a second.
"""

from __future__ import annotations

from collections.abc import Callable

OBJECTS_OF_A_LOG = 70
OBJECTS_OF_AN_ASSIGNMENT = 10
"""A partition that the image gives this node."""

OBJECTS_OF_WORK = 20
"""The task that opens a log, for as long as it waits for its turn and the disk."""

OBJECTS_AT_ONCE = 17_500
"""A full collection looks through these in some three milliseconds."""

Settle = Callable[[Callable[[], bool]], None]
"""From now on, whenever the collector has been through what is young and the function says so, full
collections leave out what lives then. A simulation has many nodes in one process, and no such
thing."""


class LongLived:
    """How much of it there is; each function tells a count."""

    def __init__(
        self,
        *,
        logs: Callable[[], int],
        assignments: Callable[[], int],
        work: Callable[[], int],
    ) -> None:
        self._logs = logs
        self._assignments = assignments
        self._work = work
        self._settled_at = 0

    def has_grown(self) -> bool:
        """So much more than ever; counted from here on when it is so. Called amid a collection, in
        any thread: nothing is made here that a collection looks at."""
        objects = (
            OBJECTS_OF_A_LOG * self._logs()
            + OBJECTS_OF_AN_ASSIGNMENT * self._assignments()
            + OBJECTS_OF_WORK * self._work()
        )
        if objects < self._settled_at + OBJECTS_AT_ONCE:
            return False
        self._settled_at = objects
        return True
