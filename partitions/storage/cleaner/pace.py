"""How compaction shares the loop with those who wait for answers (RULES F1).

It works in slices of about a millisecond and rests a multiple of what each took. A thread would not
do: it would hold the interpreter five milliseconds at a time. What lets go of the interpreter
(decompression, large writes reaching the device) runs beside the loop all the same.

Slices are measured in work, not in time, so that a simulation, where work takes no time, is sliced
alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")

SLICE_UNITS = 200
"""A unit is a record, a fifth of a batch's header, a kilobyte, or 16 of which only the checksum is
taken: two to five microseconds."""

BATCH_UNITS = 5

REST = 3
"""Rests are so many times as long as the slice before: a quarter of the loop at most."""


class Pace:
    """Of one round."""

    def __init__(self, max_bytes_per_second: float) -> None:
        """`log.cleaner.io.max.bytes.per.second`, read and written together."""
        self._bytes_per_second = max_bytes_per_second
        self._units = 0
        self._bytes = 0
        self._since = asyncio.get_running_loop().time()
        self.longest_slice_s = 0.0

    async def spend(
        self, *, records: int = 0, batches: int = 0, size: int = 0, tested: int = 0
    ) -> None:
        """So much was done; returns after the rest when a slice is full. `size`, `tested`: bytes,
        of the latter only the checksum was taken."""
        self._units += records + batches * BATCH_UNITS + (size >> 10) + (tested >> 14)
        self._bytes += size + tested
        if self._units >= SLICE_UNITS:
            await self.rest()

    async def rest(self) -> None:
        loop = asyncio.get_running_loop()
        took = loop.time() - self._since
        self.longest_slice_s = max(self.longest_slice_s, took)
        owed = self._bytes / self._bytes_per_second - took
        await asyncio.sleep(max(took * REST, owed))
        self._units = self._bytes = 0
        self._since = loop.time()

    async def beside(self, work: Awaitable[T]) -> T:
        """Wait for work that is done beside the loop: it was not taken from anybody."""
        loop = asyncio.get_running_loop()
        before = loop.time()
        try:
            return await work
        finally:
            self._since += loop.time() - before
