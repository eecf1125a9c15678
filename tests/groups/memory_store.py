"""An offsets partition in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from logboat.groups import Appended, LostRecords
from logboat.seam import Buffer
from logboat.wire import ErrorCode
from logboat.wire.records import assign_offsets, parse_header


class MemoryStore:
    """One offsets partition. `replicate` says how appends end; `gate` holds them back."""

    def __init__(self) -> None:
        self.log: list[Buffer | LostRecords] = []
        self._end = 0
        self.appends = 0
        self.second_append = asyncio.Event()
        self.outcome = ErrorCode.NONE
        self.kept_on_failure = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.readable = asyncio.Event()
        self.readable.set()

    async def append(self, partition: int, records: Buffer, deadline: float) -> Appended:
        self.appends += 1
        if self.appends == 2:
            self.second_append.set()
        await self.gate.wait()
        if self.outcome is not ErrorCode.NONE and not self.kept_on_failure:
            return Appended(self.outcome)
        base_offset = self.write(records)
        return Appended(self.outcome, base_offset if self.outcome is ErrorCode.NONE else -1)

    def write(self, records: Buffer) -> int:
        """As the partition does for others: markers of transactions, for example."""
        batch = bytearray(records)
        header, base_offset = parse_header(batch), self._end
        assign_offsets(batch, header, base_offset=base_offset, leader_epoch=0)
        self.log.append(batch)
        self._end += header.records_count
        return base_offset

    def batches(self) -> list[Buffer]:
        return [entry for entry in self.log if not isinstance(entry, LostRecords)]

    async def read(self, partition: int) -> AsyncIterator[Buffer | LostRecords]:
        await self.readable.wait()
        for batch in list(self.log):
            yield batch
