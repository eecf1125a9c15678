"""Work that is worth nothing once its client is gone, and that is cut short when the node stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiohttp import web

from .errors import node_stopping
from .keys import OPEN

LOOK_S = 0.25
"""Between looks whether the client is there: aiohttp tells nobody of its going."""

Result = TypeVar("Result")


def is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


async def while_connected(request: web.Request, work: Coroutine[Any, Any, Result]) -> Result | None:
    """None when the client went first: `work` was cancelled then, and has ended. Raises ApiError
    503 when the node stops first."""
    task = asyncio.ensure_future(work)
    opened = request.app[OPEN]

    def cut_short() -> None:
        task.cancel()

    try:
        with opened.entered(cut_short):
            while not task.done():
                await asyncio.wait([task], timeout=LOOK_S)
                if not task.done() and is_gone(request):
                    return None
        if task.cancelled() and opened.stopping:
            raise node_stopping("ask another node")
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
