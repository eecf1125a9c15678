"""Looks at a voter after every call into its engine, and at every message on its way.

A guard that corrects nothing: it stands outermost, so it sees what really left and what arrived.
What it sees of one voter it compares with what the disks of all hold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Protocol

from ...raftlog.guards import Guard, GuardContext
from ...raftlog.messages import Ack, Append, Message, SnapshotOffer, Vote, VoteRequest

MAX_OFFERS = 500
"""Snapshots offered between two ticks. A heartbeat's worth of spinning makes 100,000 of them."""


class Durable(Protocol):
    """As much of a journal as tells what is on the disk."""

    synced: int

    @property
    def synced_index(self) -> int: ...

    @property
    def first_index(self) -> int: ...

    def term_at(self, index: int) -> int | None: ...


class Ledger:
    """The journals of all voters, as an onlooker knows them who sees every disk."""

    def __init__(self, now: Callable[[], float], *, voters: int, shortest_way_s: float) -> None:
        """`now` is the world's time; no message takes less than `shortest_way_s`."""
        self._now = now
        self._voters = voters
        self._shortest_way_s = shortest_way_s
        self._journals: dict[int, list[Durable]] = {}
        self._syncs: dict[Durable, tuple[list[int], list[float]]] = {}
        self._needs: dict[tuple[object, ...], list[tuple[Durable, int]]] = {}

    def opened(self, node_id: int, journal: Durable, *, emptied: bool) -> None:
        """A voter has started. What an emptied directory had promised still counts for it."""
        lost = self._journals.get(node_id, []) if emptied else []
        self._journals[node_id] = [*lost, journal]
        self._syncs[journal] = ([journal.synced], [self._now()])

    def synced(self, journal: Durable) -> None:
        positions, moments = self._syncs[journal]
        positions.append(journal.synced)
        moments.append(self._now())

    # Nothing leaves a node before its sync (RULES E2)

    def said(self, source: int, target: int, message: Message, by: Durable, needs: int) -> None:
        """`message` may leave when the journal has synced all up to the position `needs`."""
        known = self._needs.setdefault((source, target, *_name(message)), [])
        if not (isinstance(message, Append) and known and known[-1] == (by, needs)):
            known.append((by, needs))

    def left_too_early(self, source: int, target: int, message: Message) -> bool:
        """Whether what the message depends on was not yet durable when it left its sender."""
        known = self._needs.get((source, target, *_name(message)), [])
        left_at = self._now() - self._shortest_way_s
        for need in known:
            # Equal messages cannot be told apart, and some of them may have been lost: what arrives
            # is taken for the first of them that may have left by then.
            if self._durable(*need, by=left_at):
                if not isinstance(message, Append):
                    known.remove(need)
                return False
        return bool(known)

    def _durable(self, journal: Durable, needs: int, *, by: float) -> bool:
        positions, moments = self._syncs[journal]
        found = bisect_left(positions, needs)
        return found < len(moments) and moments[found] <= by

    # What is committed is on the disks of a majority

    def holders(self, index: int, term: int) -> int:
        """How many voters have this entry on their disks."""
        return sum(
            any(_holds(journal, index, term) for journal in journals)
            for journals in self._journals.values()
        )

    def is_held(self, index: int, term: int) -> bool:
        return 2 * self.holders(index, term) > self._voters


def _holds(journal: Durable, index: int, term: int) -> bool:
    if index < journal.first_index:
        return True  # Compacted: a durable snapshot covers it.
    return index <= journal.synced_index and journal.term_at(index) == term


class Spins(AssertionError):
    """The engine sends for the sake of sending (finding E)."""


class Watch(Guard):
    """See the module's docstring."""

    name = "watch"

    def __init__(self, node: GuardContext, ledger: Ledger, report: Callable[[str], None]) -> None:
        super().__init__(node)
        self._ledger = ledger
        self._report = report
        self._commit_index = 0
        self._term = 0
        self._led = False
        self._offers = 0

    def on_role(self) -> None:
        node = self.node
        commit_index, term = node.commit_index, node.term
        if commit_index != self._commit_index:
            self._look_at_commit(commit_index)
        if term < self._term:
            self._report(f"term: node {node.node_id} went back from {self._term} to {term}")
        self._commit_index, self._term, self._led = commit_index, term, node.leading

    def _look_at_commit(self, commit_index: int) -> None:
        node = self.node
        if commit_index < self._commit_index:
            self._report(
                f"commit: node {node.node_id} went back from {self._commit_index} to {commit_index}"
            )
        elif commit_index > max(1, node.journal.last_index):
            self._report(
                f"commit: node {node.node_id} is at {commit_index}, its journal ends at "
                f"{node.journal.last_index}"
            )
        elif self._led and node.leading:
            self._look_at_count(commit_index)

    def _look_at_count(self, commit_index: int) -> None:
        """A leader has counted acknowledgements; were they true?"""
        node = self.node
        term = node.journal.term_at(commit_index)
        if term != node.term:
            self._report(
                f"counted: node {node.node_id} leads term {node.term} and commits "
                f"{commit_index} of term {term}"
            )
        elif not self._ledger.is_held(commit_index, term):
            self._report(
                f"held: node {node.node_id} commits {commit_index} of term {term}, which only "
                f"{self._ledger.holders(commit_index, term)} voters have on their disks"
            )

    def on_synced(self) -> None:
        self._ledger.synced(self.node.journal)

    def on_time(self, now: float) -> None:
        self._offers = 0

    def on_send(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, SnapshotOffer):
            self._offers += 1
            if self._offers > MAX_OFFERS:
                raise Spins(f"node {self.node.node_id} offers a snapshot again and again")
        if isinstance(message, Ack | Vote | VoteRequest | Append):
            journal = self.node.journal
            needs = journal.term_position if isinstance(message, Append) else journal.written
            self._ledger.said(self.node.node_id, peer, message, journal, needs)
        return message

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Ack | Vote | VoteRequest | Append) and self._ledger.left_too_early(
            peer, self.node.node_id, message
        ):
            self._report(f"sync: {type(message).__name__} left node {peer} before its sync")
        return message


def _name(message: Message) -> tuple[object, ...]:
    match message:
        case Ack():
            return "ack", message.term, message.next_index, message.reset, message.success
        case Vote():
            return "vote", message.term
        case VoteRequest():
            return "request", message.term, message.last_log_index, message.last_log_term
        case Append():
            # All of a term need the same, and what waits for its turn to leave is joined.
            return "append", message.term
    raise AssertionError(message)
