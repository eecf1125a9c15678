"""Progress is for people who watch a terminal, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import io

import pytest

from logboat.client import progress as progress_module
from logboat.client.progress import bar, progress


class Screen(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize("terminal", [True, False])
async def test_it_is_painted_on_a_terminal_alone_and_wiped_out(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(terminal=terminal)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress_module, "PAINT_SECONDS", 0)
    async with progress(lambda: "half way"):
        for _ in range(5):
            await asyncio.sleep(0.001)
    if terminal:
        assert "half way" in screen.getvalue()
        assert screen.getvalue().endswith("\r\x1b[K")
    else:
        assert screen.getvalue() == ""


def test_a_bar_says_how_far_it_is() -> None:
    assert bar("read", 0, 10).startswith("read [...")
    assert bar("read", 5, 10) == f"read [{'#' * 15}{'.' * 15}] 5 of 10"
    assert bar("read", 12_000, 10_000).endswith("#] 12,000 of 10,000")
