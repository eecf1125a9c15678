"""Which partition a record goes to: Java's choice, so that mixed producers keep keys together."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ...metadata.image import NO_LEADER, TopicImage

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2, unsigned. Words are little-endian."""
    length = len(data)
    h = _SEED ^ length
    words = length & ~3
    for position in range(0, words, 4):
        k = int.from_bytes(data[position : position + 4], "little") * _M & _MASK
        k ^= k >> 24
        h = (h * _M & _MASK) ^ (k * _M & _MASK)
    if length > words:
        h = (h ^ int.from_bytes(data[words:], "little")) * _M & _MASK
    h ^= h >> 13
    h = h * _M & _MASK
    return h ^ h >> 15


class Partitioner:
    """For one request: keyed records by hash, the others together in one partition.

    Keyless records stick together so that they travel as one batch; each request, and each turn of
    one that goes on for long, draws anew among the partitions that have a leader.
    """

    def __init__(self, partitions: int, with_leader: Sequence[int], rng: Random) -> None:
        self._partitions = partitions
        self._choices = with_leader or range(partitions)
        self._rng = rng
        self.turn()

    @classmethod
    def of(cls, topic: TopicImage, rng: Random) -> Partitioner:
        with_leader = [p.partition for p in topic.partitions if p.leader != NO_LEADER]
        return cls(len(topic.partitions), with_leader, rng)

    def turn(self) -> None:
        """The keyless records that come now may go elsewhere than those before."""
        self._sticky = self._choices[self._rng.randrange(len(self._choices))]

    def partition_for(self, key: bytes | None) -> int:
        if key is None:
            return self._sticky
        # Java: Utils.toPositive clears the sign bit.
        return (murmur2(key) & 0x7FFFFFFF) % self._partitions
