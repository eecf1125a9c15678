"""`logboat node`: the process of one node."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer


def node(
    config: Annotated[
        str | None, typer.Option("--config", metavar="NODE.TOML", help="The node's settings.")
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print every setting with its default.")
    ] = False,
) -> None:
    """Run one node in the foreground.

    Nodes on several machines form a cluster this way."""
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
