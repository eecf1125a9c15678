"""Looks at a voter after every call into its engine, and at every message on its way.

A guard that corrects nothing: it stands outermost, so it sees what really left and what arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...raftlog.guards import Guard, GuardContext
from ...raftlog.messages import Ack, Append, Message, Vote, VoteRequest


class Durable(Protocol):
    """As much of a journal as tells whether words were backed by the disk."""

    synced: int


class Promises:
    """What each message in flight needs to be durable where it came from (RULES E2)."""

    def __init__(self) -> None:
        self._needs: dict[tuple[object, ...], list[tuple[Durable, int]]] = {}

    def said(self, source: int, target: int, message: Message, by: Durable, needs: int) -> None:
        known = self._needs.setdefault((source, target, *_name(message)), [])
        # Equal messages cannot be told apart, and one of an earlier life may be lost or may still
        # be on its way: of each life the weakest need stays.
        if all(journal is not by for journal, _ in known):
            known.append((by, needs))

    def heard(self, source: int, target: int, message: Message) -> bool:
        """Whether a sender had synced what the message depends on."""
        known = self._needs.pop((source, target, *_name(message)), [])
        return not known or any(journal.synced >= needs for journal, needs in known)


class Watch(Guard):
    """See the module's docstring."""

    name = "watch"

    def __init__(
        self, node: GuardContext, promises: Promises, report: Callable[[str], None]
    ) -> None:
        super().__init__(node)
        self._promises = promises
        self._report = report
        self._commit_index = 0
        self._term = 0

    def on_role(self) -> None:
        node = self.node
        commit_index = node.commit_index
        if commit_index < self._commit_index:
            self._report(
                f"commit: node {node.node_id} went back from {self._commit_index} to {commit_index}"
            )
        elif commit_index > max(1, node.journal.last_index):
            self._report(
                f"commit: node {node.node_id} is at {commit_index}, its journal ends at "
                f"{node.journal.last_index}"
            )
        if node.term < self._term:
            self._report(f"term: node {node.node_id} went back from {self._term} to {node.term}")
        self._commit_index, self._term = commit_index, node.term

    def on_send(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Ack | Vote | VoteRequest | Append):
            journal = self.node.journal
            needs = journal.term_position if isinstance(message, Append) else journal.written
            self._promises.said(self.node.node_id, peer, message, journal, needs)
        return message

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Ack | Vote | VoteRequest | Append) and not self._promises.heard(
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
            return "append", message.term, message.prev_index, len(message.entries)
    raise AssertionError(message)
