"""`groups.OffsetStore` over the replicas of this node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ..groups import OFFSETS_TOPIC, Appended, LostRecords
from ..partitions import RecordsDamaged, Refused, Replicas, Role
from ..seam import Buffer

READ_BYTES = 1 << 20
"""Bytes of log per step of loading: each fits into a turn of the loop (RULES F1)."""

WATERMARK_POLL_S = 0.01


class ReplicatedOffsets:
    """A partition of `__consumer_offsets` that this node leads."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    async def append(self, partition: int, records: Buffer, deadline: float) -> Appended:
        outcome = await self._replicas.append(
            OFFSETS_TOPIC, partition, records, deadline=deadline, acks=-1
        )
        return Appended(outcome.error, outcome.base_offset)

    async def read(self, partition: int) -> AsyncIterator[Buffer | LostRecords]:
        """From the log's start to its end now; ends when all of that is committed. What the only
        replica has set aside is named (decision 0022).

        Raises LookupError when this node no longer leads the partition in the epoch of the start.
        """
        offset, end, epoch = self._bounds(partition)
        while offset < end:
            try:
                chunk = self._replicas.read_local(OFFSETS_TOPIC, partition, offset, READ_BYTES)
            except RecordsDamaged as damaged:
                # Compaction may have taken what lies before it.
                lost = LostRecords(max(offset, damaged.first_offset), damaged.next_offset)
                self._replicas.counters.lost_group_records += lost.count
                yield lost
                offset = lost.next_offset
                continue
            except Refused as refused:
                # The topic was deleted, or the replica went offline, between two steps.
                raise LookupError(f"{OFFSETS_TOPIC}-{partition}: {refused}") from refused
            if not chunk.size:
                raise LookupError(f"{OFFSETS_TOPIC}-{partition} ends at {offset} before {end}")
            for part in chunk.parts:
                yield part
            offset = chunk.next_offset
            await asyncio.sleep(0)
        # A poll, since it happens once for each leadership and ends within a replication round.
        while not self._committed(partition, end, epoch):  # noqa: ASYNC110
            await asyncio.sleep(WATERMARK_POLL_S)

    def _bounds(self, partition: int) -> tuple[int, int, int]:
        state = self._replicas.partition_state(OFFSETS_TOPIC, partition)
        if state is None or state.role is not Role.LEADER:
            raise LookupError(f"{OFFSETS_TOPIC}-{partition} is not led here")
        return state.log_start_offset, state.log_end_offset, state.leader_epoch

    def _committed(self, partition: int, end: int, epoch: int) -> bool:
        state = self._replicas.partition_state(OFFSETS_TOPIC, partition)
        if state is None or state.role is not Role.LEADER or state.leader_epoch != epoch:
            raise LookupError(f"{OFFSETS_TOPIC}-{partition} is not led here any more")
        return state.high_watermark >= end
