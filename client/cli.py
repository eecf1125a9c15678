"""The `logboat` command line: the tree of commands and how each of them ends.

Command functions import what they need when they run: `--help` must not pay for HTTP.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .api_command import api
from .bench_commands import bench, verify
from .chaos.commands import chaos
from .cluster.commands import cluster
from .doctor import doctor
from .failure import ExitStatus, Failure
from .generate_commands import generate
from .group_commands import group
from .partition_commands import partition
from .profiles import profile
from .quorum_commands import quorum
from .record_commands import consume, produce
from .terminal import emit, say
from .topic_change_commands import topic


class LogboatGroup(TyperGroup):
    """The root of the tree: the one place where failures become exit statuses."""

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
app.add_typer(cluster)
app.add_typer(topic)
app.add_typer(partition)
app.add_typer(quorum)
app.add_typer(group)
app.command()(produce)
app.command()(consume)
app.add_typer(chaos)
app.add_typer(bench)
app.command()(verify)
app.add_typer(generate)
app.add_typer(profile)
app.command()(api)
app.command()(doctor)


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


@app.command()
def node(
    config: Annotated[
        str | None, typer.Option("--config", metavar="NODE.TOML", help="The node's settings.")
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print every setting with its default.")
    ] = False,
) -> None:
    """Run one node in the foreground; several machines form a cluster this way."""
    if config is None and not print_config:
        raise typer.BadParameter("give --config NODE.TOML, or --print-config")
    arguments = [sys.executable, "-m", "logboat.node"]
    if config is not None:
        arguments += ["--config", config]
    if print_config:
        arguments.append("--print-config")
    sys.stdout.flush()
    # The node takes this process's place: its pid, signals and exit status are the caller's.
    os.execv(sys.executable, arguments)


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="logboat")


if __name__ == "__main__":
    main()
