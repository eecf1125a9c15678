"""Handlers of signals for the length of a block."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def handled(
    numbers: Iterable[int], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """`handler` hears these signals meanwhile. ValueError outside the main thread."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
