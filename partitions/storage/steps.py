"""Work that may take long, told in steps: the same rules run at once, or without holding the loop.

A generator yields a function whose result it wants, which lets go of the interpreter while it works
(the codecs do), or None where it may pause. Pure Python is cut by pauses instead of being handed to
a thread: a thread would hold the interpreter for five milliseconds at a time (RULES F1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import TypeVar

from ...seam import offload

T = TypeVar("T")

Steps = Generator[Callable[[], bytes] | None, bytes, T]


def all_at_once(steps: Steps[T]) -> T:
    """Here and now."""
    try:
        wanted = next(steps)
        while True:
            if wanted is None:
                wanted = next(steps)
                continue
            try:
                result = wanted()
            except Exception as error:  # Whose rules these are decides.
                wanted = steps.throw(error)
            else:
                wanted = steps.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


async def beside_the_loop(steps: Steps[T]) -> T:
    """With others having their turn in between."""
    try:
        wanted = next(steps)
        while True:
            if wanted is None:
                await asyncio.sleep(0)
                wanted = next(steps)
                continue
            try:
                result = await offload(wanted)
            except Exception as error:
                wanted = steps.throw(error)
            else:
                wanted = steps.send(result)
    except StopIteration as end:
        value: T = end.value
        return value
