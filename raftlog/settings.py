"""The timing and the bounds of the quorum (RULES E5). Times in seconds, sizes in bytes."""

from __future__ import annotations

from ..seam import frozen


@frozen
class RaftSettings:
    """Defaults fit machines apart; `local` fits one laptop, `lone` a single voter."""

    election_min_s: float = 0.6
    election_max_s: float = 1.2
    fallback_s: float = 0.9
    """A leader that hears no majority for this long steps down: 1.5 x the smallest election
    timeout."""
    heartbeat_s: float = 0.1
    """The engine insists on less than a third of `election_min_s`."""

    compaction_entries: int = 2000
    """A snapshot is made when the journal holds more entries than this; 0: never."""
    snapshots_kept: int = 2

    max_command_bytes: int = 1 << 20
    append_bytes: int = 2 << 20
    """Commands in one append message. More than `max_command_bytes`, so that the engine never
    cuts a command into pieces (a path that loses its place)."""
    snapshot_chunk_bytes: int = 256 << 10
    max_snapshot_bytes: int = 1 << 30

    max_proposals: int = 10_000
    """Proposals without an outcome; further ones are answered `Unknown` at once."""
    proposals_per_turn: int = 64
    """Handed to the engine in one turn of the loop (RULES F1)."""
    applies_per_turn: int = 64
    """Committed commands that the engine hands over in one turn of the loop (RULES F1)."""
    work_per_turn: int = 320
    """Done by the state machine in one turn of the loop, in the units of `Steps` (RULES F1)."""

    feed_wait_s: float = 0.5
    """How long an observer's question waits for something to be committed."""
    feed_entries: int = 1000
    """Commands in one answer to an observer (RULES F1)."""

    outbox_bytes: int = 64 << 20
    """Waiting for one peer; beyond, it is reported disconnected (RULES E6)."""
    segment_bytes: int = 8 << 20
    """Preallocated size of a journal file (RULES E6)."""

    dial_timeout_s: float = 2.0
    redial_min_s: float = 0.02
    redial_max_s: float = 0.5
    ping_s: float = 1.0
    """How often an outgoing connection is tried; unanswered for three of these, it is made anew:
    after a cut the kernel may wait for minutes before it sends again."""

    def __post_init__(self) -> None:
        if not 0 < 3 * self.heartbeat_s < self.election_min_s < self.election_max_s:
            raise ValueError(
                f"election timeouts {self.election_min_s}-{self.election_max_s} s do not fit a "
                f"heartbeat of {self.heartbeat_s} s"
            )
        if self.max_command_bytes >= self.append_bytes:
            raise ValueError("append_bytes must exceed max_command_bytes")

    @classmethod
    def local(cls) -> RaftSettings:
        """All voters on one machine."""
        return cls(election_min_s=0.3, election_max_s=0.6, fallback_s=0.45, heartbeat_s=0.075)

    @classmethod
    def lone(cls) -> RaftSettings:
        """A single voter: there is nobody to wait for, to hear or to disturb."""
        return cls(election_min_s=0.004, election_max_s=0.008, fallback_s=0.006, heartbeat_s=0.001)
