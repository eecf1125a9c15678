"""Rules that may look at thousands of partitions, told in steps (RULES F1).

Such a rule is a generator. It yields, where the loop may turn to others, how much it has done since
the last time: 1 for a partition that was looked at, some five microseconds. What others see changes
when it has ended, so where it pauses has no say in what it comes to (RULES A1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[int, None, T]

SLICE = 128
"""Partitions between two pauses."""

TOPIC = 4
"""Work of one topic, whatever its partitions."""

DECISION = 4
"""Work of one partition that is decided by itself."""


WORK_PER_TURN = 320
"""Of a controller that plans or answers beside its other work."""


async def beside_the_loop(steps: Steps[T]) -> T:
    """With others having their turn in between."""
    left = WORK_PER_TURN
    while True:
        try:
            left -= next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
        if left <= 0:
            await asyncio.sleep(0)
            left = WORK_PER_TURN


def slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Pieces of at most SLICE."""
    for first in range(0, len(items), SLICE):
        yield items[first : first + SLICE]
