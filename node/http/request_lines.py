"""The lines of a request body that is still being sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from .errors import ApiError
from .open_response import ClientGone

IDLE_SECONDS = 300.0
"""A client that sends nothing for so long is asked to come back: it may be gone without a word."""

_READ_BYTES = 64 << 10
_BLOCK_BYTES = 32 << 10
_BLOCK_LINES = 250
"""What is worked on in one turn of the loop (RULES F1)."""


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
    ) -> None:
        self._content = request.content
        self._max_line = max_line_bytes
        self._block_bytes = min(block_bytes, _BLOCK_BYTES)
        self._reading: asyncio.Timeout | None = None
        """While a read waits."""
        self._ended = False

    def end(self) -> None:
        self._ended = True
        if self._reading is not None:
            self._reading.reschedule(asyncio.get_running_loop().time())

    async def blocks(self) -> AsyncIterator[list[bytes]]:
        """Raises ApiError 408 or 413, what came before having been given out, or ClientGone."""
        left = b""
        while data := await self._read():
            *lines, left = (left + data).split(b"\n")
            if len(left) > self._max_line or (lines and len(lines[0]) > self._max_line):
                raise ApiError(
                    413,
                    f"a line is longer than {self._max_line} bytes",
                    hint="a record of that size is more than this node takes (message.max.bytes)",
                )
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
            async with asyncio.timeout(IDLE_SECONDS) as self._reading:
                return await self._content.read(_READ_BYTES)
        except (ConnectionError, web.RequestPayloadError, HttpProcessingError) as error:
            raise ClientGone(str(error)) from error
        except TimeoutError:
            if self._ended:
                return b""
            raise ApiError(
                408,
                f"nothing was sent for {IDLE_SECONDS:.0f} s",
                retriable=True,
                hint="open a new request when there is something to send",
            ) from None
        finally:
            # What was read is still being written: a stop then has nothing to cut short here.
            self._reading = None

    def _cut(self, lines: list[bytes]) -> Iterator[list[bytes]]:
        for start in range(0, len(lines), _BLOCK_LINES):
            block = [line for line in lines[start : start + _BLOCK_LINES] if line.strip()]
            while sum(map(len, block)) > self._block_bytes and len(block) > 1:
                count = self._how_many(block)
                yield block[:count]
                block = block[count:]
            if block:
                yield block

    def _how_many(self, block: list[bytes]) -> int:
        """Lines from the start that are no more than a block may hold; one at least."""
        size = 0
        for count, line in enumerate(block):
            size += len(line)
            if size > self._block_bytes:
                return max(1, count)
        return len(block)
