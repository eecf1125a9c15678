"""Requests that stay open until their client has enough, and are told when the node stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class OpenRequests:
    """Each hands in what ends it in order: a last word to the client, then the end."""

    def __init__(self) -> None:
        self._ends: dict[object, Callable[[], None]] = {}
        self.stopping = False

    @contextmanager
    def entered(self, end: Callable[[], None]) -> Iterator[None]:
        """`end` is called at most once, from the loop, when the node stops; at once if it does."""
        ticket = object()
        self._ends[ticket] = end
        if self.stopping:
            end()
        try:
            yield
        finally:
            del self._ends[ticket]

    def stop(self) -> None:
        self.stopping = True
        for end in list(self._ends.values()):
            end()
