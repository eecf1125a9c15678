"""What a group has committed, and what open transactions would commit for it."""

from __future__ import annotations

from ..seam import frozen

Place = tuple[str, int]
"""(topic, partition)."""


@frozen
class CommittedOffset:
    offset: int
    leader_epoch: int
    """Of the last consumed record, -1 unknown; lets a consumer notice a truncation (KIP-320)."""
    metadata: str
    commit_timestamp_ms: int
    """Wall clock of the coordinator."""
    expire_timestamp_ms: int = -1
    """Wall clock at which old clients (OffsetCommit before version 5) want it gone; -1: unsaid."""


class GroupOffsets:
    """Offsets of one group by (topic, partition).

    Each is kept with the position of its record in the offsets partition: whatever order markers
    come in, the later *record* wins (KAFKA-14505), as it does where compaction has dropped the
    earlier one.
    """

    def __init__(self) -> None:
        self._committed: dict[Place, tuple[CommittedOffset, int]] = {}
        self._pending: dict[int, dict[Place, tuple[CommittedOffset, int]]] = {}
        """By producer id, of transactions that have not ended."""

    def __len__(self) -> int:
        """How many are committed."""
        return len(self._committed)

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    def set(
        self, topic: str, partition: int, committed: CommittedOffset, *, log_offset: int
    ) -> None:
        self._committed[topic, partition] = committed, log_offset

    def remove(self, topic: str, partition: int) -> None:
        """By a tombstone, so pending ones of before go too: their records are older."""
        place = topic, partition
        self._committed.pop(place, None)
        for producer_id, pending in list(self._pending.items()):
            pending.pop(place, None)
            if not pending:
                del self._pending[producer_id]

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        found = self._committed.get((topic, partition))
        return None if found is None else found[0]

    def by_topic(self) -> dict[str, list[int]]:
        """Topics with a commit, each with its partitions."""
        topics: dict[str, list[int]] = {}
        for topic, partition in self._committed:
            topics.setdefault(topic, []).append(partition)
        return topics

    def places(self) -> dict[Place, None]:
        """Where something is committed or pending."""
        pending = (place for places in self._pending.values() for place in places)
        return dict.fromkeys([*self._committed, *pending])

    # --- transactions ------------------------------------------------------------------------

    def pend(
        self,
        producer_id: int,
        topic: str,
        partition: int,
        committed: CommittedOffset,
        *,
        log_offset: int,
    ) -> None:
        """Nobody sees it before the transaction's marker."""
        self._pending.setdefault(producer_id, {})[topic, partition] = committed, log_offset

    def is_pending(self, topic: str, partition: int) -> bool:
        return any((topic, partition) in pending for pending in self._pending.values())

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        for place, (committed, log_offset) in self._pending.pop(producer_id, {}).items():
            known = self._committed.get(place)
            if commit and (known is None or known[1] < log_offset):
                self._committed[place] = committed, log_offset
