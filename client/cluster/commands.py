"""`logboat cluster ...`: options in, one call, text out."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from ..terminal import emit, say
from .folder import DEFAULT_DATA_DIR, ClusterFolder

cluster = typer.Typer(
    name="cluster",
    help="A cluster on this machine: start it, look at it, stop it, remove it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

DataDir = Annotated[
    str | None,
    typer.Option(
        "--data-dir", metavar="D", help=f"The cluster's folder (default {DEFAULT_DATA_DIR})."
    ),
]
Ephemeral = Annotated[
    bool, typer.Option("--ephemeral", help="A temporary folder, removed at `down`.")
]


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"


@cluster.command()
def up(
    nodes: Annotated[
        int | None, typer.Option("--nodes", min=1, max=20, help="How many (default 3).")
    ] = None,
    voters: Annotated[
        int | None,
        typer.Option(
            "--voters",
            min=1,
            max=5,
            help="How many of them form the quorum (default all, at most 5).",
        ),
    ] = None,
    data_dir: DataDir = None,
    ephemeral: Ephemeral = False,
    any_port: Annotated[
        bool, typer.Option("--any-port", help="Use free ports instead of 9092, 9093, 8082, ...")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return when the cluster is ready; it goes on running.")
    ] = False,
) -> None:
    """Start a cluster, or the one that the folder already holds."""
    from .up import UpOptions
    from .up import up as bring_up

    _refuse_both(data_dir, ephemeral)
    status = bring_up(UpOptions(nodes, voters, data_dir, ephemeral, any_port, detach))
    raise typer.Exit(int(status))


@cluster.command()
def status(
    data_dir: DataDir = None,
    ephemeral: Ephemeral = False,
    output: Annotated[Output, typer.Option("-o", "--output", help="table or json")] = Output.TABLE,
) -> None:
    """Say how the cluster is."""
    from .report import as_document, as_table, look_at
    from .state import load_state

    folder = _existing_folder(data_dir, ephemeral)
    report = look_at(folder, load_state(folder))
    if output is Output.JSON:
        emit(json.dumps(as_document(report), indent=2))
    else:
        emit(f"cluster {report.cluster_id}: {report.state} ({report.data_dir})")
        emit(as_table(report))


@cluster.command()
def down(data_dir: DataDir = None, ephemeral: Ephemeral = False) -> None:
    """Stop all nodes; what they stored stays (unless the cluster is ephemeral)."""
    from .launch import stop_cluster
    from .remove import remove_cluster
    from .state import load_state

    folder = _existing_folder(data_dir, ephemeral)
    state = load_state(folder)
    stopped = stop_cluster(folder, state)
    say(f"Stopped {len(stopped)} of {len(state.nodes)} nodes.")
    if state.ephemeral:
        remove_cluster(folder)
        say(f"Removed {folder.path}.")


@cluster.command()
def purge(data_dir: DataDir = None, ephemeral: Ephemeral = False) -> None:
    """Stop all nodes and remove everything they stored."""
    from .launch import stop_cluster
    from .remove import remove_cluster
    from .state import load_state

    folder = _existing_folder(data_dir, ephemeral)
    state = load_state(folder)
    stop_cluster(folder, state)
    remove_cluster(folder)
    say(f"Removed the cluster in {folder.path}.")


def _existing_folder(data_dir: str | None, ephemeral: bool) -> ClusterFolder:
    from .ephemeral import the_ephemeral_folder

    _refuse_both(data_dir, ephemeral)
    return the_ephemeral_folder() if ephemeral else ClusterFolder.at(data_dir or DEFAULT_DATA_DIR)


def _refuse_both(data_dir: str | None, ephemeral: bool) -> None:
    if data_dir is not None and ephemeral:
        raise typer.BadParameter("--data-dir and --ephemeral exclude each other")
