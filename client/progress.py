"""How far a long command has come: one line on standard error that paints over itself."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

PAINT_SECONDS = 0.5
BAR_CELLS = 30
USUAL_COLUMNS = 80
_CLEAR = "\r\x1b[K"


@asynccontextmanager
async def progress(line: Callable[[], str]) -> AsyncIterator[None]:
    """Paints what `line` says until the work is done. On a terminal only: a pipe's reader does not
    want it."""
    if not sys.stderr.isatty():
        yield
        return
    painting = asyncio.create_task(_paint(line))
    try:
        yield
    finally:
        painting.cancel()
        print(_CLEAR, end="", file=sys.stderr, flush=True)


async def _paint(line: Callable[[], str]) -> None:
    while True:
        await asyncio.sleep(PAINT_SECONDS)
        # A line that wraps could not be painted over.
        shown = line()[: _columns() - 1]
        print(f"{_CLEAR}{shown}", end="", file=sys.stderr, flush=True)


def _columns() -> int:
    """Of the terminal that standard error is; some say 0."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_COLUMNS
    except (OSError, ValueError):
        return USUAL_COLUMNS


def bar(what: str, done: int, total: int) -> str:
    """`written [#######......] 1,200 of 5,000`"""
    cells = BAR_CELLS * min(done, total) // max(total, 1)
    return f"{what} [{'#' * cells}{'.' * (BAR_CELLS - cells)}] {done:,} of {total:,}"
