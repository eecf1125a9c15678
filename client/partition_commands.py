"""`logboat partition ...`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from .failure import Failure
from .node_api import DEFAULT_URL, NodeApi, Url, nodes_of_cluster, topic_path
from .terminal import As, Output, emit, headline, table
from .topic_commands import Name

partition = typer.Typer(
    name="partition",
    help="One partition: where its replicas stand, who leads it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Number = Annotated[int, typer.Argument(metavar="PARTITION", min=0)]


@partition.command()
def describe(name: Name, number: Number, output: As = Output.TABLE, url: Url = DEFAULT_URL) -> None:
    """Show each replica's log, as the node that has it sees it."""
    api = NodeApi(url)
    document, nodes = _partition(api, name, number), nodes_of_cluster(api)
    replicas = [
        _replica(node_id, document, nodes.get(node_id), name, number)
        for node_id in document["replicas"]
    ]
    if output is Output.JSON:
        whole = {name: value for name, value in document.items() if name != "local"}
        emit(json.dumps({"topic": name, **whole, "replica_states": replicas}, indent=2))
        return
    headline(
        f"{name}-{number}: leader {_leader(document)}, epoch {document['leader_epoch']}", output
    )
    header = ("NODE", "ROLE", "IN-SYNC", "LOG-START-OFFSET", "HIGH-WATERMARK", "LOG-END-OFFSET")
    emit(table(header, [_row(one) for one in replicas], output))


@partition.command("transfer-leader")
def transfer_leader(
    name: Name,
    number: Number,
    to: Annotated[
        int | None, typer.Argument(metavar="[NODE]", min=0, help="Default: the first replica.")
    ] = None,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Give the leadership to another replica that is in sync."""
    path = f"{topic_path(name)}/partitions/{number}:transfer-leadership"
    done = NodeApi(url).call("POST", path, {"to": to})
    if output is Output.JSON:
        emit(json.dumps(done, indent=2))
        return
    row = (name, str(number), str(done["leader"]), str(done["leader_epoch"]))
    emit(table(("TOPIC", "PARTITION", "LEADER", "EPOCH"), [row], output))


def _partition(api: NodeApi, name: str, number: int) -> dict[str, Any]:
    partitions = api.call("GET", topic_path(name))["partitions"]
    if number >= len(partitions):
        raise Failure(f"{name} has no partition {number}, there are {len(partitions)}")
    found: dict[str, Any] = partitions[number]
    return found


def _replica(
    node_id: int, seen: Mapping[str, Any], node: NodeApi | None, name: str, number: int
) -> dict[str, Any]:
    """`log` is None when its node does not answer, or has no such log."""
    log = None
    if node is not None:
        try:
            log = _partition(node, name, number)["local"]
        except Failure:
            log = None
    return {
        "node": node_id,
        "role": "leader" if node_id == seen["leader"] else "follower",
        "in_sync": node_id in seen["isr"],
        "log": log,
    }


def _row(replica: Mapping[str, Any]) -> tuple[str, ...]:
    log = replica["log"]
    offsets = ("log_start_offset", "high_watermark", "log_end_offset")
    return (
        str(replica["node"]),
        replica["role"],
        "yes" if replica["in_sync"] else "no",
        *("-" if log is None else str(log[one]) for one in offsets),
    )


def _leader(document: Mapping[str, Any]) -> str:
    return "none" if document["leader"] < 0 else str(document["leader"])
