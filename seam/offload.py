"""Long work, away from the loop (RULES F1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def offload(function: Callable[[], Result]) -> Result:
    """Run `function` beside the loop: a thread in production, a virtual delay in simulation.

    The function touches only what it was given: no state shared with the loop, at most one disk
    action. Its exception is raised here.
    """
    return await asyncio.get_running_loop().run_in_executor(None, function)
