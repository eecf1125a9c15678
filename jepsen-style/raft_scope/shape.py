"""What kind of run a seed is: sizes and speeds, chosen where the engine's mistakes live."""

from __future__ import annotations

from dataclasses import dataclass

from ...raftlog import RaftSettings
from ..simulation.dice import stream


@dataclass(frozen=True, slots=True)
class Shape:
    """Drawn from the seed alone. Seconds and bytes."""

    settings: RaftSettings
    latency_s: float
    sync_s: float
    command_bytes: int
    pause_s: float
    """Longest pause between two bursts of proposals."""
    padding_bytes: int
    """Added to each snapshot, so that it is still on its way while other things happen."""


def shape_of(seed: int, *, compaction: int | None = None) -> Shape:
    """`compaction` fixes the number of entries between two snapshots."""
    dice = stream(seed, "shape")
    # The last is never reached in a run: where nothing is compacted, no snapshot repairs what an
    # append should have repaired.
    entries = compaction or dice.choice((20, 60, 60, 200, 5000))
    large = entries >= 200 and dice.random() < 0.5
    return Shape(
        # Appends of a few commands and snapshots of several chunks: what takes one message in
        # the field's small tests takes many here, and something can happen in between.
        settings=RaftSettings(
            election_min_s=0.3,
            election_max_s=0.6,
            fallback_s=0.45,
            heartbeat_s=0.075,
            compaction_entries=entries,
            max_command_bytes=2048,
            append_bytes=4096,
            snapshot_chunk_bytes=65_536 if large else dice.choice((2048, 16_384)),
            segment_bytes=1 << 16,
        ),
        latency_s=dice.choice((100e-6, 1e-3, 15e-3)),
        sync_s=dice.choice((300e-6, 300e-6, 3e-3, 80e-3)),
        command_bytes=dice.choice((20, 300, 300)),
        pause_s=dice.choice((0.4, 0.6, 0.8)),
        padding_bytes=1_200_000 if large else 0,
    )
