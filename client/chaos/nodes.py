"""What nodes are asked to break in themselves, and to mend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..failure import ExitStatus, Failure
from ..node_api import NodeApi
from ..terminal import say

Found = TypeVar("Found")

FAULTS = "/api/v1/faults"
HISTORY = f"{FAULTS}/history"

_NO_ANSWER = (ExitStatus.UNREACHABLE, ExitStatus.TIMED_OUT)


def known(nodes: Mapping[int, NodeApi], wanted: Sequence[int]) -> None:
    """Raises Failure for a node that the cluster does not have."""
    for node_id in wanted:
        if node_id not in nodes:
            listed = ", ".join(map(str, nodes))
            raise Failure(f"there is no node {node_id}, the cluster has {listed}")


def faults_now(nodes: Mapping[int, NodeApi]) -> dict[int, Mapping[str, Any]]:
    """What is broken at each node that answers."""
    return _of_each(nodes, lambda api: api.call("GET", FAULTS))


def histories(nodes: Mapping[int, NodeApi]) -> dict[int, list[Mapping[str, Any]]]:
    return _of_each(nodes, lambda api: api.call("GET", HISTORY)["faults"])


def heal_all(nodes: Mapping[int, NodeApi]) -> None:
    """One that stands still, on another machine, hears of it when it goes on: that is waited
    for."""
    _of_each(nodes, lambda api: api.call("DELETE", FAULTS) or True)


def _of_each(nodes: Mapping[int, NodeApi], ask: Callable[[NodeApi], Found]) -> dict[int, Found]:
    """Of those that answer, and a word about the others: they may well be hurt."""
    found = {}
    for node_id, api in nodes.items():
        try:
            found[node_id] = ask(api)
        except Failure as failure:
            if failure.status not in _NO_ANSWER:
                raise
            say(f"Node {node_id} does not answer.")
    return found
