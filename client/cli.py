"""The `logboat` command line: what all commands share, and how each of them ends.

A command's module is imported when the command is used (command_tree.py), and commands import what
they need when they run: `--help` must not pay for HTTP.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .command_tree import whole_tree
from .failure import ExitStatus, Failure
from .terminal import emit, say


class LogboatGroup(TyperGroup):
    """The root of the tree: the one place where failures become exit statuses."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for command in whole_tree():
            self.add_command(command)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Failure as failure:
            say(f"logboat: {failure.sentence}")
            raise typer.Exit(int(failure.status)) from failure
        except BrokenPipeError:
            # Whoever read has what it wanted.
            _discard_output()
            raise typer.Exit from None
        except OSError as error:
            # The commands know what may happen to their own files: this is standard output.
            _discard_output()
            say(f"logboat: {error.strerror or error}")
            raise typer.Exit(int(ExitStatus.FAILED)) from error
        except KeyboardInterrupt as interrupt:
            raise typer.Exit(int(ExitStatus.INTERRUPTED)) from interrupt


def _discard_output() -> None:
    """What is still buffered must not be tried again at exit."""
    with suppress(AttributeError, OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=LogboatGroup,
    name="logboat",
    no_args_is_help=True,
    # Rich would cost `--help` as much as everything else together.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        emit(f"logboat {version('logboat')}")
        raise typer.Exit


@app.callback()
def logboat(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_print_version),
    ] = False,
) -> None:
    """A Kafka-compatible replicated log: no ZooKeeper, no JVM, no Docker.

    Exit status: 0 good, 1 failed, 2 usage, 3 cannot reach, 4 timed out, 130 Ctrl-C.
    """


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="logboat")


if __name__ == "__main__":
    main()
