"""Which partition a record goes to: Java's choice, so that mixed producers keep keys together."""

from __future__ import annotations

from random import Random

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

    Keyless records stick together so that they travel as one batch; each request draws anew among
    the partitions that have a leader.
    """

    def __init__(self, partitions: int, with_leader: list[int], rng: Random) -> None:
        self._partitions = partitions
        choices = with_leader or list(range(partitions))
        self._sticky = choices[rng.randrange(len(choices))]

    def partition_for(self, key: bytes | None) -> int:
        if key is None:
            return self._sticky
        # Java: Utils.toPositive clears the sign bit.
        return (murmur2(key) & 0x7FFFFFFF) % self._partitions
