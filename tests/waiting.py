"""For what is only a matter of time, on a machine that does much else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

WITHIN_S = 60.0
_LOOK_S = 0.005


async def until(condition: Callable[[], object]) -> None:
    """Raises TimeoutError after WITHIN_S."""
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
