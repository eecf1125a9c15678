"""The lines of a request body that is still being sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from aiohttp import web

from .errors import ApiError

IDLE_SECONDS = 300.0
"""A client that sends nothing for so long is asked to come back: it may be gone without a word."""

_BLOCK_BYTES = 32 << 10
"""Lines worked on in one turn of the loop (RULES F1): some three hundred records of 100 bytes."""


class RequestLines:
    """Blocks of whole lines, each without its line break; empty lines are left out.

    `end` ends the sequence, at once, as an orderly stop of the node asks for.
    """

    def __init__(
        self,
        request: web.Request,
        *,
        max_line_bytes: int,
        block_bytes: int = _BLOCK_BYTES,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._content = request.content
        self._max_line = max_line_bytes
        self._block_bytes = min(block_bytes, _BLOCK_BYTES)
        self._idle_seconds = idle_seconds
        self._reading: asyncio.Timeout | None = None
        self._ended = False

    def end(self) -> None:
        self._ended = True
        if self._reading is not None:
            self._reading.reschedule(asyncio.get_running_loop().time())

    async def blocks(self) -> AsyncIterator[list[bytes]]:
        """Raises ApiError 408 or 413, what came before having been given out; OSError when the
        client is gone."""
        left = b""
        while data := await self._read():
            *lines, left = (left + data).split(b"\n")
            if len(left) > self._max_line or (lines and len(max(lines, key=len)) > self._max_line):
                raise ApiError(413, f"a line is longer than {self._max_line} bytes")
            for block in self._cut(lines):
                yield block
                if self._ended:
                    return
                await asyncio.sleep(0)
        if left.strip() and not self._ended:
            yield [left]

    async def _read(self) -> bytes:
        """Empty at the end."""
        if self._ended:
            return b""
        try:
            async with asyncio.timeout(self._idle_seconds) as self._reading:
                return await self._content.readany()
        except TimeoutError:
            if self._ended:
                return b""
            raise ApiError(
                408,
                f"nothing was sent for {self._idle_seconds:.0f} s",
                retriable=True,
                hint="open a new request when there is something to send",
            ) from None

    def _cut(self, lines: list[bytes]) -> list[list[bytes]]:
        blocks: list[list[bytes]] = []
        block: list[bytes] = []
        size = 0
        for line in lines:
            if not line or line.isspace():
                continue
            if block and size + len(line) > self._block_bytes:
                blocks.append(block)
                block, size = [], 0
            block.append(line)
            size += len(line)
        if block:
            blocks.append(block)
        return blocks
