"""What a partition's follower decides: where to ask, where to cut, what is committed. No I/O.

A follower copies its leader's log byte for byte. Its fetch offset is a promise: everything below is
here and synced (RULES C2), so it asks on only when all that it appended is synced.

**Divergence** (KIP-101, KIP-279; RULES D6). A fetch names the epoch of the last batch held here.
If the leader's lineage never had that epoch, or it ended earlier there, the answer says which epoch
the leader does have and where that ends; the log is cut by *lineage*, never by watermark:

* the epoch is known here too: cut where it ends on either side, whichever is smaller;
* it is not: cut to the end of the largest smaller epoch known here, and ask again.

Example: here epochs (1, 0) (2, 20) end 40; leader (1, 0) (3, 25) end 60. The fetch at 40 names
epoch 2; the leader answers "epoch 1 ends at 25"; here it ends at 20: cut to 20, go on from there.
"""

from __future__ import annotations

from typing import Protocol

from ..seam import Fatal, frozen

UNDEFINED = -1


class Lineage(Protocol):
    """The follower's own epochs (`storage.EpochCache`)."""

    @property
    def latest_epoch(self) -> int: ...

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]: ...


@frozen
class FetchPosition:
    """What a follower asks its leader for one partition."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    """Read from the lineage at every fetch, so an empty answer cannot lose it (KAFKA-15510)."""
    log_start_offset: int
    high_watermark: int
    """What this follower knows of it, so that the leader can tell when that is stale (D7)."""


class FollowerState:
    """One leader epoch of one partition on a follower. Made anew for every epoch."""

    __slots__ = (
        "_watermark_in_epoch",
        "high_watermark",
        "leader_epoch",
        "leader_high_watermark",
        "leader_id",
        "name",
    )

    def __init__(self, name: str, *, leader_id: int, leader_epoch: int, high_watermark: int):
        self.name = name
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        """Never goes back in a replica's incarnation, unless an unclean leader makes it cut
        committed records (D4)."""
        self.leader_high_watermark = UNDEFINED
        """As of the last answer in this epoch."""
        self._watermark_in_epoch = UNDEFINED

    def position(
        self, lineage: Lineage, *, log_start_offset: int, log_end_offset: int, synced_offset: int
    ) -> FetchPosition | None:
        """Where to ask; None while something appended is not yet synced (RULES C2)."""
        if synced_offset < log_end_offset:
            return None
        return FetchPosition(
            leader_epoch=self.leader_epoch,
            fetch_offset=log_end_offset,
            last_fetched_epoch=lineage.latest_epoch,
            log_start_offset=log_start_offset,
            high_watermark=self.high_watermark,
        )

    def on_leader_watermark(self, high_watermark: int, *, synced_offset: int) -> bool:
        """An answer told the leader's watermark; True when the own one moved."""
        self.leader_high_watermark = max(self.leader_high_watermark, high_watermark)
        return self.on_synced(synced_offset)

    def on_synced(self, synced_offset: int) -> bool:
        """Committed here is what the leader calls committed and this replica holds."""
        committed = min(self.leader_high_watermark, synced_offset)
        self._watermark_in_epoch = max(self._watermark_in_epoch, committed)
        if committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True

    def truncation_offset(
        self, *, epoch: int, end_offset: int, lineage: Lineage, log_end_offset: int
    ) -> int:
        """The leader's lineage has no larger common epoch than `epoch`, which ends at `end_offset`.

        Raises Fatal below the watermark learned in this epoch: the leader had called those records
        committed, and a leader never cuts its own log (RULES D6).
        """
        own_epoch, own_end = lineage.end_offset_for(epoch, log_end_offset)
        if own_epoch == UNDEFINED:
            offset = end_offset
        elif own_epoch == epoch:
            offset = min(own_end, end_offset)
        else:
            offset = own_end
        offset = min(offset, log_end_offset)
        if offset < self._watermark_in_epoch:
            raise Fatal(
                f"{self.name}: leader {self.leader_id} of epoch {self.leader_epoch} wants "
                f"{offset} cut, but called {self._watermark_in_epoch} committed in that epoch"
            )
        return offset

    def on_mended(self, log_end_offset: int) -> None:
        """A damaged log was cut where the damage begins: what it lacks, others have (RULES C1)."""
        self.high_watermark = min(self.high_watermark, log_end_offset)
        self._watermark_in_epoch = min(self._watermark_in_epoch, log_end_offset)

    def on_truncated(self, log_end_offset: int) -> bool:
        """True when committed records were cut, which only an unclean election can ask for."""
        if log_end_offset >= self.high_watermark:
            return False
        self.high_watermark = log_end_offset
        return True
