"""An answer that is written piece by piece, to a client that may be slow or gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from .while_connected import is_gone

log = logging.getLogger(__name__)

SLOW_READER_SECONDS = 20.0
"""A client that takes nothing for so long is cut off. Until then it costs what the socket and
aiohttp hold (about 64 KiB) and one piece."""


class ClientGone(Exception):
    """It closed the connection, or was cut off because it did not read."""


class OpenResponse:
    """Status 200 and a stream of pieces."""

    def __init__(self, request: web.Request, content_type: str) -> None:
        self._request = request
        self.response = web.StreamResponse(
            headers={
                "Content-Type": content_type,
                "Cache-Control": "no-store",
                # Reverse proxies would collect what should be seen at once.
                "X-Accel-Buffering": "no",
            }
        )

    @property
    def started(self) -> bool:
        return self.response.prepared

    async def start(self) -> None:
        """The status and the headers leave; nothing more happens when they have."""
        await self.response.prepare(self._request)

    async def send(self, piece: bytes) -> None:
        """Returns when the next piece may come. Raises ClientGone."""
        try:
            async with asyncio.timeout(SLOW_READER_SECONDS):
                await self.response.write(piece)
        except TimeoutError:
            self.cut()
            raise ClientGone(f"nothing was read for {SLOW_READER_SECONDS:.0f} s") from None
        except OSError as error:
            raise ClientGone(str(error)) from error

    def check_client(self) -> None:
        """What writing would tell. Raises ClientGone."""
        if is_gone(self._request):
            raise ClientGone("it closed the connection")

    async def finish(self) -> None:
        """Raises ClientGone."""
        try:
            async with asyncio.timeout(SLOW_READER_SECONDS):
                await self.response.write_eof()
        except TimeoutError:
            self.cut()
            raise ClientGone("the end was not read") from None
        except OSError as error:
            raise ClientGone(str(error)) from error

    @contextmanager
    def to_the_end(self) -> Iterator[None]:
        """An answer that has begun cannot become an error any more: whatever goes wrong breaks it
        off. A client that is gone has done so itself, and nobody else need hear of it."""
        try:
            yield
        except BaseException as error:
            self.cut()
            if not _only_gone(error):
                raise
            log.debug("the client of %s is gone", self._request.path)

    def cut(self) -> None:
        """Without a proper end, so that what was sent is not taken for everything."""
        if self._request.transport is not None:
            self._request.transport.abort()


def _only_gone(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.split(ClientGone)[1] is None
    return isinstance(error, ClientGone)
