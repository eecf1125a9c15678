"""The log under the coordinator: one partition of `__consumer_offsets` holds whole groups."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from typing import Protocol

from ..seam import Buffer, frozen
from ..wire import ErrorCode

OFFSETS_TOPIC = "__consumer_offsets"


@frozen
class Appended:
    """How an append ended."""

    error: ErrorCode
    base_offset: int = -1
    """Where its first record stands; known when it is replicated."""


@frozen
class LostRecords:
    """Offsets whose records were damaged, and nobody else has them."""

    first_offset: int
    next_offset: int

    @property
    def count(self) -> int:
        return self.next_offset - self.first_offset


class OffsetStore(Protocol):
    async def append(self, partition: int, records: Buffer, deadline: float) -> Appended:
        """Append one record batch and wait until it is replicated (acks=all).

        NONE: replicated. NOT_LEADER_OR_FOLLOWER and REQUEST_TIMED_OUT: it may have happened.
        `deadline` is the loop's time in seconds.
        """
        ...

    def read(self, partition: int) -> AsyncIterator[Buffer | LostRecords]:
        """Record batches from the log's start to its end at the time of the call, and between them
        what is lost for good.

        Ends only when the high watermark has passed that end: what was read is then committed.
        Raises LookupError when this node no longer leads the partition.
        """
        ...


def partition_for(group_id: str, partition_count: int) -> int:
    """The partition that keeps `group_id`: Java's String.hashCode modulo the count."""
    code = 0
    for unit in _utf16_units(group_id):
        code = (31 * code + unit) & 0xFFFF_FFFF
    signed = code - 0x1_0000_0000 if code >= 0x8000_0000 else code
    # Kafka's Utils.abs: the one integer without a positive twin counts as 0.
    return (0 if signed == -0x8000_0000 else abs(signed)) % partition_count


def _utf16_units(text: str) -> tuple[int, ...]:
    data = text.encode("utf-16-be", "surrogatepass")
    return struct.unpack(f">{len(data) // 2}H", data)
