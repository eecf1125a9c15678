"""Long work on the loop: a generator that pauses where others may have their turn (RULES F1).

What it yields is for whoever gives out the turns, and has no say in what the work comes to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def all_at_once(steps: Generator[object, None, T]) -> T:
    """Here and now, without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value


async def with_pauses(steps: Generator[object, None, T]) -> T:
    """With others having their turn wherever it pauses."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
        await asyncio.sleep(0)
