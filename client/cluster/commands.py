"""`logboat cluster ...`: options in, one call, text out."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ..failure import Failure
from ..terminal import As, Output, Watch, emit, look_and_watch, say
from .node_commands import node
from .places import DataDir, Ephemeral, existing_folder, refuse_both

cluster = typer.Typer(
    name="cluster",
    help="A cluster on this machine: start, look at, stop, remove it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

cluster.add_typer(node)


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
    with_faults: Annotated[
        bool,
        typer.Option(
            "--with-faults",
            help="Let nodes be cut off, slowed and paused over /api/v1/faults; for tests only.",
        ),
    ] = False,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="NAME:PARTITIONS:REPLICAS",
            help="Is there when the cluster is; the numbers may be left out. Repeatable.",
        ),
    ] = None,
    output: As = Output.TABLE,
) -> None:
    """Start a cluster, or the one that the folder already holds.

    For programs in any language: up --ephemeral --any-port --detach -o json, and down with the
    data_dir that it names."""
    from .first_topics import first_topics
    from .up import UpOptions
    from .up import up as bring_up

    refuse_both(data_dir, ephemeral)
    topics = first_topics(topic or ())
    status = bring_up(
        UpOptions(
            nodes,
            voters,
            data_dir,
            ephemeral,
            any_port=any_port,
            detach=detach,
            with_faults=with_faults,
            output=output,
            topics=topics,
        )
    )
    raise typer.Exit(int(status))


@cluster.command()
def status(
    data_dir: DataDir = None,
    ephemeral: Ephemeral = False,
    output: As = Output.TABLE,
    watch: Watch = False,
    exit_when_healthy: Annotated[
        bool, typer.Option("--exit-when-healthy", help="Wait until every node is ready.")
    ] = False,
) -> None:
    """Say how the cluster is."""
    from .report import ClusterReport, as_document, as_table, look_at
    from .state import load_state

    folder = existing_folder(data_dir, ephemeral)
    report: ClusterReport

    def healthy() -> bool:
        return report.state == "ready"

    def look() -> str | None:
        nonlocal report
        report = look_at(folder, load_state(folder))
        if exit_when_healthy and not healthy():
            return None
        if output is Output.JSON:
            return json.dumps(as_document(report), indent=2)
        shown = as_table(report, output)
        if output is Output.PLAIN:
            return shown
        return f"cluster {report.cluster_id}: {report.state} ({report.data_dir})\n{shown}"

    look_and_watch(look, watch=watch, until=healthy if exit_when_healthy else None)


@cluster.command()
def down(data_dir: DataDir = None, ephemeral: Ephemeral = False) -> None:
    """Stop all nodes.

    What they stored stays, unless the cluster is ephemeral."""
    from .launch import stop_cluster
    from .remove import remove_cluster
    from .state import load_state

    folder = existing_folder(data_dir, ephemeral)
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

    folder = existing_folder(data_dir, ephemeral)
    state = load_state(folder)
    stop_cluster(folder, state)
    remove_cluster(folder)
    say(f"Removed the cluster in {folder.path}.")


@cluster.command()
def logs(
    node_id: Annotated[int | None, typer.Argument(metavar="[NODE]", min=1)] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until Ctrl-C.")] = False,
    data_dir: DataDir = None,
    ephemeral: Ephemeral = False,
) -> None:
    """Print what the nodes, or one of them, have said."""
    from .logs import log_lines
    from .state import load_state

    folder = existing_folder(data_dir, ephemeral)
    known = [one.node_id for one in load_state(folder).nodes]
    if node_id is not None and node_id not in known:
        raise Failure(f"there is no node {node_id}; the cluster has {len(known)}")
    for line in log_lines(folder, known if node_id is None else [node_id], follow=follow):
        emit(line)


@cluster.command()
def env(data_dir: DataDir = None, ephemeral: Ephemeral = False) -> None:
    """Print the line that makes a shell know the cluster.

    Such as: eval "$(logboat cluster env)"."""
    from .state import load_state

    state = load_state(existing_folder(data_dir, ephemeral))
    emit(f"export LOGBOAT_BOOTSTRAP={state.bootstrap_servers} LOGBOAT_HTTP={state.http_urls}")
