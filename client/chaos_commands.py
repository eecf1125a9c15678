"""`logboat chaos ...`: hurt a cluster on purpose, to see what it does.

Cutting off, slowing and pausing go over HTTP to any cluster whose nodes were started with faults,
and end by themselves. Killing and restarting are for the clusters of this machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from .cluster import node_commands
from .cluster.places import DataDir, Ephemeral
from .failure import ExitStatus, Failure
from .node_api import DEFAULT_URL, NodeApi, Url, nodes_of_cluster
from .terminal import As, Output, emit, say, table

chaos = typer.Typer(
    name="chaos",
    help="Faults on purpose: cut, delay, pause, kill, restart, heal.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

FAULTS = "/api/v1/faults"

Hurt = Annotated[int, typer.Argument(metavar="NODE", min=0)]
Others = Annotated[list[int], typer.Argument(metavar="OTHER...", min=0)]
For = Annotated[str, typer.Option("--for", metavar="TIME", help="250ms, 10s; then it ends.")]


@chaos.command()
def status(output: As = Output.TABLE, url: Url = DEFAULT_URL) -> None:
    """Show what is broken on purpose at each node."""
    _show(_faults(nodes_of_cluster(NodeApi(url))), output)


@chaos.command()
def cut(
    node_id: Hurt,
    others: Others,
    for_: For = "10s",
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Cut a node off from others: nothing passes between them."""
    _inject(url, node_id, [{"kind": "cut", "node": one, "for": for_} for one in others], output)


@chaos.command()
def delay(
    node_id: Hurt,
    others: Others,
    by: Annotated[str, typer.Option("--by", metavar="TIME", help="50ms, 2s.")],
    for_: For = "10s",
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Hold what a node sends to others for a while."""
    faults = [{"kind": "delay", "node": one, "delay": by, "for": for_} for one in others]
    _inject(url, node_id, faults, output)


@chaos.command()
def pause(
    node_id: Hurt, for_: For = "10s", output: As = Output.TABLE, url: Url = DEFAULT_URL
) -> None:
    """Let a node stand still, connections open, as a long collection or a full disk would."""
    _inject(url, node_id, [{"kind": "pause", "for": for_}], output)


@chaos.command()
def heal(output: As = Output.TABLE, url: Url = DEFAULT_URL) -> None:
    """End what is cut off or slowed, at every node."""
    nodes = nodes_of_cluster(NodeApi(url))
    for node_id, api in nodes.items():
        _unless_away(node_id, lambda api=api: api.call("DELETE", FAULTS))
    _show(_faults(nodes), output)


@chaos.command()
def kill(
    node_id: node_commands.NodeId,
    for_s: Annotated[
        float | None,
        typer.Option("--for", metavar="SECONDS", min=0, help="Then start it again."),
    ] = None,
    data_dir: DataDir = None,
    ephemeral: Ephemeral = False,
) -> None:
    """Kill a node of this machine as a crash would; with --for, start it again after that."""
    node_commands.kill(node_id, data_dir, ephemeral)
    if for_s is not None:
        time.sleep(for_s)
        node_commands.start(node_id, data_dir, ephemeral)


@chaos.command()
def restart(
    node_id: node_commands.NodeId, data_dir: DataDir = None, ephemeral: Ephemeral = False
) -> None:
    """Stop a node of this machine in good order and start it again."""
    node_commands.restart(node_id, data_dir, ephemeral)


def _inject(url: str, node_id: int, faults: list[dict[str, Any]], output: Output) -> None:
    nodes = nodes_of_cluster(NodeApi(url))
    if node_id not in nodes:
        known = ", ".join(map(str, nodes))
        raise Failure(f"there is no node {node_id}, the cluster has {known}")
    document: Mapping[str, Any] = {}
    for fault in faults:
        document = nodes[node_id].call("POST", FAULTS, fault)
    _show({node_id: document}, output)


def _faults(nodes: Mapping[int, NodeApi]) -> dict[int, Mapping[str, Any]]:
    found = {}
    for node_id, api in nodes.items():
        document = _unless_away(node_id, lambda api=api: api.call("GET", FAULTS))
        if document is not None:
            found[node_id] = document
    return found


def _unless_away(node_id: int, ask: Any) -> Any:
    """None, and a word about it, where the node does not answer: it may well be hurt."""
    try:
        return ask()
    except Failure as failure:
        if failure.status is not ExitStatus.UNREACHABLE:
            raise
        say(f"Node {node_id} does not answer.")
        return None


def _show(faults: Mapping[int, Mapping[str, Any]], output: Output) -> None:
    if output is Output.JSON:
        emit(json.dumps([{"node": node_id, **one} for node_id, one in faults.items()], indent=2))
        return
    rows = [
        (
            str(node_id),
            ",".join(map(str, one["cut"])) or "-",
            ",".join(f"{other}:{ms}ms" for other, ms in one["delays_ms"].items()) or "-",
        )
        for node_id, one in faults.items()
    ]
    emit(table(("NODE", "CUT-OFF-FROM", "DELAYS"), rows, output))
