"""An offsets partition in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from logboat.seam import Buffer
from logboat.wire import ErrorCode


class MemoryStore:
    """One offsets partition. `replicate` says how appends end; `gate` holds them back."""

    def __init__(self) -> None:
        self.log: list[Buffer] = []
        self.appends = 0
        self.second_append = asyncio.Event()
        self.outcome = ErrorCode.NONE
        self.kept_on_failure = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.readable = asyncio.Event()
        self.readable.set()

    async def append(self, partition: int, records: Buffer, deadline: float) -> ErrorCode:
        self.appends += 1
        if self.appends == 2:
            self.second_append.set()
        await self.gate.wait()
        if self.outcome is ErrorCode.NONE or self.kept_on_failure:
            self.log.append(records)
        return self.outcome

    async def read(self, partition: int) -> AsyncIterator[Buffer]:
        await self.readable.wait()
        for batch in list(self.log):
            yield batch
