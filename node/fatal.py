"""The end of a process whose world or invariant is broken."""

from __future__ import annotations

import asyncio
import logging

from ..seam import Fatal, OnFatal

logger = logging.getLogger(__name__)


class FatalStop:
    """Handed to every part as `on_fatal`; `run_node` waits for the first error and raises it.

    Nothing is cleaned up on the way out: no flush, no clean-shutdown marker (RULES C4). `at_once`
    is called before anything else can run, and a real process does not return from it; where it
    does (in tests), the first error is the one that counts.
    """

    def __init__(self, at_once: OnFatal) -> None:
        self._at_once = at_once
        self._raised: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __call__(self, error: BaseException) -> None:
        if self._raised.done():
            return
        if not isinstance(error, Fatal):
            # A bug: the trace says where.
            logger.critical("unexpected error", exc_info=error)
        self._raised.set_exception(error)
        self._at_once(error)

    @property
    def happened(self) -> bool:
        return self._raised.done()

    async def wait(self) -> None:
        """Raises the first fatal error."""
        await asyncio.shield(self._raised)
