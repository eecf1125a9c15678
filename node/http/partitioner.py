"""Which partition a record goes to: Java's choice, so that mixed producers keep keys together."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ...metadata.image import NO_LEADER, TopicImage
from ...seam.murmur2 import partition_of_key


class Partitioner:
    """For one request: keyed records by hash, the others together in one partition.

    Keyless records stick together so that they travel as one batch; each request, and each turn of
    one that goes on for long, draws anew among the partitions that have a leader.
    """

    def __init__(self, partitions: int, with_leader: Sequence[int], rng: Random | None) -> None:
        self._partitions = partitions
        self._choices = with_leader or range(partitions)
        self._rng = rng
        self.turn()

    @classmethod
    def of(cls, topic: TopicImage, rng: Random) -> Partitioner:
        with_leader = [p.partition for p in topic.partitions if p.leader != NO_LEADER]
        return cls(len(topic.partitions), with_leader, rng)

    @classmethod
    def repeatable(cls, topic: TopicImage, sticky: int) -> Partitioner:
        """Keyless records go where `sticky` says, with or without a leader."""
        return cls(len(topic.partitions), (sticky % len(topic.partitions),), None)

    def turn(self) -> None:
        """The keyless records that come now may go elsewhere than those before."""
        number = 0 if self._rng is None else self._rng.randrange(len(self._choices))
        self._sticky = self._choices[number]

    def partition_for(self, key: bytes | None) -> int:
        if key is None:
            return self._sticky
        return partition_of_key(key, self._partitions)
