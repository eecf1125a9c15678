"""B3: a new directory has no vote before it is known that it has forgotten none."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..messages import (
    Holdings,
    Message,
    NewDirectory,
    PreVoteRequest,
    TimeoutNow,
    Vote,
    VoteRequest,
)
from .guard import Guard, GuardContext

logger = logging.getLogger(__name__)

BEGINNING = 1
"""Index of the entry that every log begins with; a log that ends there is empty."""

PATIENCE_S = 10.0
"""After this long it is said whom a new directory waits for."""


class NewDirectories(Guard):
    """A voter that lost its directory has forgotten its votes and what it had acknowledged (B3).

    A pin tells its successor from it, but only to those who have applied the pin. So the successor
    itself stands back: a new directory neither votes nor stands for election until

    - the quorum has pinned it, as far as the log is applied here, or
    - every other voter has said to this process that it is in term 0 and its log is empty.

    The second is how a quorum begins, and it proves that nothing was forgotten. Whatever was
    committed is held by a majority, so by another one besides the lost directory, whose log is not
    empty. Whoever got its vote was in a later term. And what is committed or voted on after an
    answer was given no longer comes from the lost directory, whose process is dead.

    Until then it takes and acknowledges entries like any other voter: what it acknowledges from now
    on it does hold. Once it takes part its directory remembers that (`on_joining`).
    """

    name = "B3 new"

    def __init__(self, node: GuardContext, *, joined: bool, on_joining: Callable[[], None]) -> None:
        """`on_joining` makes it durable, then calls `join`."""
        super().__init__(node)
        self.joined = joined
        self._on_joining = on_joining
        self._joining = False
        self._empty: dict[int, None] = {}
        """Voters that hold nothing."""
        self._ask_at = node.now()
        self._complain_at: float | None = node.now() + PATIENCE_S

    def pinned(self) -> None:
        """The newest image names this directory."""
        self._begin_joining("the quorum has pinned it")

    def join(self) -> None:
        """That it takes part is durable."""
        self.joined = True
        self.node.refresh()

    def shows(self, peer: int) -> bool:
        # The engine stands for election only while it believes to be connected.
        return self.joined

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, NewDirectory):
            journal = self.node.journal
            empty = self.node.term == 0 and journal.last_index <= BEGINNING
            self.node.send(peer, Holdings(empty))
            return None
        if isinstance(message, Holdings):
            self._on_holdings(peer, message)
            return None
        if not self.joined and isinstance(message, VoteRequest | PreVoteRequest | TimeoutNow):
            return None
        return message

    def on_send(self, peer: int, message: Message) -> Message | None:
        if not self.joined and isinstance(message, VoteRequest | Vote):
            return None
        return message

    def on_link(self, peer: int) -> None:
        if not self.joined:
            self._ask(peer)

    def next_due(self) -> float | None:
        return None if self.joined else self._ask_at

    def on_time(self, now: float) -> None:
        if self.joined or now < self._ask_at:
            return
        self._ask_at = now + self.node.settings.heartbeat_s
        silent = [peer for peer in self.node.peers if peer not in self._empty]
        for peer in silent:
            self._ask(peer)
        if self._complain_at is not None and now >= self._complain_at:
            self._complain_at = None
            logger.warning(
                "this directory is new: it takes part when the quorum has pinned it, or when all "
                "voters meet for the first time; not met, or not new: %s",
                ", ".join(f"node {peer}" for peer in silent),
            )

    def _ask(self, peer: int) -> None:
        self.node.send(peer, NewDirectory())

    def _on_holdings(self, peer: int, message: Holdings) -> None:
        if message.empty:
            self._empty[peer] = None
        else:
            self._empty.pop(peer, None)
        if len(self._empty) == len(self.node.peers):
            self._begin_joining("all voters have met and none holds anything yet")

    def _begin_joining(self, reason: str) -> None:
        if not self.joined and not self._joining:
            self._joining = True
            logger.info("this directory takes part in the quorum from now on: %s", reason)
            self._on_joining()
