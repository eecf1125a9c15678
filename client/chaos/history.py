"""All that was broken on purpose, from the nodes and from the cluster's folder."""

from __future__ import annotations

import time

from ..cluster.places import folder_of
from ..node_api import NodeApi, nodes_of_cluster
from .nodes import histories
from .record import Entry, of_node, recorded


def all_entries(api: NodeApi, data_dir: str | None, ephemeral: bool) -> list[Entry]:
    """In the order in which they began. Raises Failure."""
    told = histories(nodes_of_cluster(api))
    entries = [of_node(node_id, dict(one)) for node_id, faults in told.items() for one in faults]
    cluster_id = api.call("GET", "/api/v1/cluster")["cluster_id"]
    folder = folder_of(cluster_id, data_dir, ephemeral)
    if folder is not None:
        entries += recorded(folder)
    return sorted(entries, key=lambda one: (one.at_ms, one.node))


def as_row(entry: Entry) -> tuple[str, ...]:
    return (
        _time(entry.at_ms),
        "-" if entry.until_ms is None else _time(entry.until_ms),
        str(entry.node),
        entry.fault,
        "-" if entry.other is None else str(entry.other),
        entry.amount or "-",
        entry.by,
    )


def _time(ms: int) -> str:
    """Of this machine's zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))
