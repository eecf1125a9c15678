"""One member of a classic group."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Member:
    member_id: str
    instance_id: str | None
    """Set for a static member (KIP-345): its place survives restarts of its process."""
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """(name, subscription), the member's favourite first."""
    assignment: bytes = b""
    is_new: bool = False
    """Has not yet been told of any generation; kept alive by its waiting join alone."""
    joining: int | None = None
    """Token of the JoinGroup that waits for the rebalance."""
    cut_off: bool = False
    """The connection of that JoinGroup has ended: nobody will hear its answer."""
    syncing: int | None = None
    """Token of the SyncGroup that waits for the leader's assignment."""
    session_deadline_ms: int = 0

    @property
    def waiting(self) -> bool:
        """A waiting request proves life as well as a heartbeat does, while its client is there."""
        return (self.joining is not None and not self.cut_off) or self.syncing is not None

    def touch(self, now_ms: int) -> None:
        self.session_deadline_ms = now_ms + self.session_timeout_ms

    def metadata(self, protocol: str) -> bytes:
        return next((data for name, data in self.protocols if name == protocol), b"")

    def supports(self, protocol: str) -> bool:
        return any(name == protocol for name, _ in self.protocols)
