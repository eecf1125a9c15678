"""What the quorum's log promises, in values: outcomes, roles, status, and the machine it drives."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import field
from enum import Enum
from typing import Protocol
from uuid import UUID

from ..seam import frozen


@frozen
class Applied:
    """The command is committed and has been applied here."""

    index: int
    result: object
    """What `StateMachine.apply` returned; None for a barrier."""


@frozen
class NotLeader:
    """The command did not happen and never will (RULES A4)."""

    leader_id: int | None
    """Whom to ask instead, if known."""


@frozen
class Unknown:
    """The command may have happened, or may still happen."""

    reason: str


Outcome = Applied | NotLeader | Unknown


Steps = Generator[int, None, object]
"""Work in steps between which the loop may turn to others (RULES F1). Each number is what was done
since the last one: 1 for some five microseconds of a processor. Returns the result."""


class StateMachine(Protocol):
    """What the log drives: the same commands at the same indexes on every node."""

    def apply(self, index: int, command: bytes) -> object:
        """Apply one committed command; deterministic. An exception ends the process (RULES A1).

        Returns the result or, where it may take long, `Steps` that do. They run before the next
        command; until they have ended the machine's state is the one before. A snapshot may take
        their place.

        Indexes grow but are not contiguous: barriers and the leaders' own entries take some.
        """
        ...

    def capture(self) -> Callable[[], bytes]:
        """Grab the immutable state, in the loop; the returned function encodes it, offloaded."""
        ...

    def decode(self, snapshot: bytes) -> Callable[[int], None]:
        """Decode a snapshot, offloaded, touching nothing else of the machine.

        The returned function is given, in the loop, the index up to which the snapshot holds
        everything, and replaces the state. What either raises ends the process.
        """
        ...


class Role(Enum):
    """What a node is at the moment; never to be trusted for a decision (RULES A4)."""

    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    LEADER = "leader"
    OBSERVER = "observer"
    """Outside the voters (`observer.py`)."""


OnRole = Callable[[Role, int, int | None], None]
"""Told of each change: role, term, id of the leader if known."""


@frozen
class PeerStatus:
    """Another voter as seen from here."""

    connected: bool
    last_contact: float | None
    """Loop time of the last message from it."""
    match_index: int | None
    """Highest index known to be durable there; known to the leader only."""
    directory_id: UUID | None = None
    """Its data directory, as its connection has proven; None while it has none to this node."""
    caught_up_at: float | None = None
    """Loop time by which it held all there was then; known to the leader only."""


@frozen
class ObserverStatus:
    """A node outside the voters that has asked this one lately."""

    directory_id: UUID
    match_index: int
    """Everything up to here has been applied there."""
    last_contact: float
    """Loop time of its last question."""
    caught_up_at: float | None
    """Loop time by which it had applied all there was then."""


@frozen
class RaftStatus:
    """One look at the log; a copy."""

    role: Role
    term: int
    leader_id: int | None
    commit_index: int
    applied_index: int
    last_index: int
    synced_index: int
    """Highest index that is durable here."""
    snapshot_index: int
    """Last index of the newest durable snapshot; 0 without one."""
    peers: Mapping[int, PeerStatus] = field(default_factory=dict)
    """The other voters."""
    observers: Mapping[int, ObserverStatus] = field(default_factory=dict)
    """Those that follow this voter, which is the leader as soon as they can reach it."""
