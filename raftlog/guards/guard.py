"""What a guard is: a filter between the engine and its peers that corrects one behaviour.

The guards of a node form a list, outermost first. A received message passes them from first to last
and then reaches the engine; what the engine sends passes them from last to first and then leaves.
A guard may change a message, swallow it, hold it and hand it on later, or say things of its own.
Which guards there are is handed in, so that a test can leave one out and see what it is good for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from ..journal import Journal
from ..messages import Message
from ..settings import RaftSettings


class GuardContext(Protocol):
    """One node, as its guards see it."""

    @property
    def node_id(self) -> int: ...

    @property
    def peers(self) -> Sequence[int]:
        """The other voters, in ascending order."""
        ...

    @property
    def settings(self) -> RaftSettings: ...

    @property
    def journal(self) -> Journal: ...

    @property
    def term(self) -> int: ...

    @property
    def commit_index(self) -> int: ...

    @property
    def applied_index(self) -> int:
        """The state machine, and with it every pin handed down, has come so far."""
        ...

    @property
    def leading(self) -> bool: ...

    def now(self) -> float: ...

    def directory_of(self, peer: int) -> UUID | None:
        """The data directory that the peer's connection has proven."""
        ...

    def hand_on(self, guard: Guard, peer: int, message: Message) -> None:
        """Let a held message go on towards the engine, from behind `guard`."""
        ...

    def send(self, peer: int, message: Message) -> None:
        """Say something to a peer, past all guards; it is durable knowledge or a question."""
        ...

    def confirm(self) -> None:
        """Propose an entry of no content: once it is applied, this node led when it was asked."""
        ...

    def refresh(self) -> None:
        """What `shows` or `next_due` answers has changed."""
        ...

    def fail(self, error: BaseException) -> None:
        """End the process."""
        ...


class Guard:
    """Does nothing. Subclasses override what they need."""

    name = ""

    def __init__(self, node: GuardContext) -> None:
        self.node = node

    def on_receive(self, peer: int, message: Message) -> Message | None:
        """A message from a peer, before the engine sees it; None swallows it."""
        return message

    def after_receive(self, peer: int) -> None:
        """The engine has dealt with the message that `on_receive` let through."""

    def on_send(self, peer: int, message: Message) -> Message | None:
        """A message of the engine, before it leaves; None swallows it."""
        return message

    def depends_on(self, message: Message) -> int:
        """The journal position (`Journal.written`) that must be durable before it leaves."""
        return 0

    def may_tick(self) -> bool:
        """Whether the engine may look at its own log now."""
        return True

    def shows(self, peer: int) -> bool:
        """Whether the engine may believe that it is connected to `peer`."""
        return True

    def on_synced(self) -> None:
        """The journal's synced position has moved."""

    def on_campaign(self) -> None:
        """The engine has become a candidate. Called inside the engine."""

    def on_role(self) -> None:
        """Term, leader or role may have changed."""

    def on_link(self, peer: int) -> None:
        """The connection on which we speak to `peer` was made or lost."""

    def next_due(self) -> float | None:
        """Loop time at which `on_time` wants to be called."""
        return None

    def on_time(self, now: float) -> None:
        """Called before every tick."""
