"""What a group asks its coordinator to do."""

from __future__ import annotations

from ..seam import frozen
from ..wire import ErrorCode


@frozen
class JoinedMember:
    member_id: str
    instance_id: str | None
    metadata: bytes


@frozen
class JoinAnswer:
    """Answers the JoinGroup that carries `token`."""

    token: int
    error: ErrorCode
    member_id: str
    generation_id: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()
    """Filled for the leader only, which computes the assignment."""
    skip_assignment: bool = False
    """The static leader came back unchanged: the assignment in force stays (KIP-814)."""


@frozen
class SyncAnswer:
    """Answers the SyncGroup that carries `token`."""

    token: int
    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@frozen
class Persist:
    """Write the group's metadata record; then call `on_persisted` with this effect.

    What it changes is in force only when the record is replicated: until then a new coordinator
    would not know it.
    """

    generation_id: int
    assignments: tuple[tuple[str, bytes], ...] = ()
    """(member id, assignment) of the generation that completes."""
    answer: JoinAnswer | None = None
    """Sent when the record is replicated: a static member took its old place (KIP-345)."""


Effect = JoinAnswer | SyncAnswer | Persist
