"""Standard output carries data, standard error everything said about it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from .failure import Failure


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"
    PLAIN = "plain"
    """The table's rows alone, a tab between the columns: for cut and awk."""


As = Annotated[Output, typer.Option("-o", "--output", help="table, json or plain")]
"""The option of every command that shows data."""

LOOK_SECONDS = 1.0
"""Between two looks with `--watch`."""

Watch = Annotated[bool, typer.Option("-w", "--watch", help="Look again every second until Ctrl-C.")]


def say(sentence: str) -> None:
    """Progress, hints and errors: standard error, at once."""
    print(sentence, file=sys.stderr, flush=True)


def emit(text: str) -> None:
    """Data: standard output, flushed, so that a pipe sees it while the command goes on. A table of
    no rows, for programs, is no line at all."""
    if sys.stdout is None:
        raise Failure("standard output is closed")
    if text:
        print(text, flush=True)


def counted(number: int, what: str) -> str:
    """Such as "1 partition" and "3 partitions"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def headline(text: str, output: Output) -> None:
    """What stands above a table, for people."""
    if output is Output.TABLE:
        emit(text)


def clear_screen() -> None:
    """On a terminal only; elsewhere what was shown stays."""
    if is_terminal():
        print("\x1b[H\x1b[2J", end="", flush=True)


def look_and_watch(
    look: Callable[[], str | None],
    *,
    watch: bool,
    nothing: str = "",
    until: Callable[[], bool] | None = None,
    wait: Callable[[float], None] | None = None,
    shown: str | None = None,
) -> None:
    """Emit what `look` finds, once, or again and again in the place of what it found before; say
    `nothing` where that is empty. The last answer stands there until there is another one.

    `look` gives None: this time nothing is to be shown. `until`: asked after each look, when to
    end; without it that is Ctrl-C, or the first look. `wait`: so many seconds until the next one.
    `shown`: what stands there already.
    """
    while True:
        found = look()
        if found is not None and not (watch and found == shown and is_terminal()):
            if watch:
                clear_screen()
            emit(found)
            if nothing and not found:
                say(nothing)
            shown = found
        if not watch if until is None else until():
            return
        (wait or time.sleep)(LOOK_SECONDS)


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], output: Output = Output.TABLE
) -> str:
    """Columns as wide as their widest cell, two spaces apart; a bold header on a terminal only."""
    if output is Output.PLAIN:
        return "\n".join("\t".join(row) for row in rows)
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = [_line(row, widths) for row in (header, *rows)]
    if _colours_wanted():
        lines[0] = f"\x1b[1m{lines[0]}\x1b[0m"
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _colours_wanted() -> bool:
    # https://no-color.org: any non-empty value switches colours off.
    return is_terminal() and not os.environ.get("NO_COLOR")


def is_terminal() -> bool:
    """Whether somebody sees standard output as it comes."""
    return sys.stdout is not None and sys.stdout.isatty()
