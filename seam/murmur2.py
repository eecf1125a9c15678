"""Kafka's hash of keys: whoever chooses partitions, broker or client, keeps keys together."""

from __future__ import annotations

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """32-bit murmur2, unsigned. Words are little-endian."""
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


def partition_of_key(key: bytes, partitions: int) -> int:
    """Java's choice (`BuiltInPartitioner`): the hash without its sign bit."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
