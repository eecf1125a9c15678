"""What a group has committed, and the records that say so."""

from __future__ import annotations

from ..seam import frozen


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
    """Committed offsets of one group by (topic, partition)."""

    def __init__(self) -> None:
        self._committed: dict[tuple[str, int], CommittedOffset] = {}

    def __len__(self) -> int:
        return len(self._committed)

    def set(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        self._committed[topic, partition] = committed

    def remove(self, topic: str, partition: int) -> None:
        self._committed.pop((topic, partition), None)

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        return self._committed.get((topic, partition))

    def by_topic(self) -> dict[str, list[int]]:
        """Topics with a commit, each with its partitions."""
        topics: dict[str, list[int]] = {}
        for topic, partition in self._committed:
            topics.setdefault(topic, []).append(partition)
        return topics
