"""`logboat generate ...`: text for other programs."""

from __future__ import annotations

from typing import Annotated

import typer

from .failure import ExitStatus, Failure
from .node_api import DEFAULT_URL, NodeApi, Url, nodes_of_cluster
from .terminal import emit

generate = typer.Typer(
    name="generate",
    help="Text for other programs: prometheus, completion.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

SHELLS = ("bash", "zsh", "fish")


@generate.command()
def prometheus(url: Url = DEFAULT_URL) -> None:
    """A scrape configuration for Prometheus, with every node."""
    nodes = nodes_of_cluster(NodeApi(url)).values()
    targets = ", ".join(f"'{node.address}'" for node in nodes)
    emit(
        "scrape_configs:\n"
        "  - job_name: logboat\n"
        "    metrics_path: /metrics\n"
        "    scrape_interval: 5s\n"
        "    static_configs:\n"
        f"      - targets: [{targets}]"
    )


@generate.command()
def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """A completion script for a shell.

    Such as: eval "$(logboat generate completion bash)"."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    if shell not in SHELLS:
        raise Failure(f"{shell!r} is none of {', '.join(SHELLS)}", ExitStatus.USAGE)
    emit(
        get_completion_script(
            prog_name="logboat", complete_var="_LOGBOAT_COMPLETE", shell=shell
        ).rstrip()
    )
