"""Which links a fault cuts: the shapes of partitions, the same for every executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from .schedule import Fault

CLIENTS = None
"""Beside the nodes' ids: the clients, all of them together."""

Party = int | None
Direction = tuple[Party, Party]
"""From whom, to whom."""

Shape = Callable[[Fault, Sequence[int], Sequence[int]], list[Direction]]
"""(fault, the nodes it strikes, all nodes) -> the directions that are cut."""


def between(one: Sequence[Party], other: Sequence[Party]) -> list[Direction]:
    """Both ways between two sides."""
    return [pair for a in one for b in other for pair in ((a, b), (b, a))]


def outside(inside: Sequence[int], node_ids: Sequence[int], *, clients: bool) -> list[Party]:
    others: list[Party] = [node_id for node_id in node_ids if node_id not in inside]
    return [*others, CLIENTS] if clients else others


def _isolate(fault: Fault, nodes: Sequence[int], node_ids: Sequence[int]) -> list[Direction]:
    others = outside(nodes, node_ids, clients=bool(fault.option("clients")))
    pairs = between(nodes, others)
    direction = fault.option("direction")
    if direction == "in":
        return [pair for pair in pairs if pair[1] in nodes]
    if direction == "out":
        return [pair for pair in pairs if pair[0] in nodes]
    return pairs


def _halves(fault: Fault, nodes: Sequence[int], node_ids: Sequence[int]) -> list[Direction]:
    """The target is among the fewer; clients, when cut at all, are with the others."""
    start = node_ids.index(nodes[0])
    few = [*node_ids[start:], *node_ids[:start]][: len(node_ids) // 2]
    return between(few, outside(few, node_ids, clients=bool(fault.option("clients"))))


def _ring(fault: Fault, nodes: Sequence[int], node_ids: Sequence[int]) -> list[Direction]:
    return list(zip(node_ids, [*node_ids[1:], node_ids[0]], strict=True))


def _bridge(fault: Fault, nodes: Sequence[int], node_ids: Sequence[int]) -> list[Direction]:
    others = outside(nodes[:1], node_ids, clients=False)
    middle = len(others) // 2
    return between(others[:middle], others[middle:])


def _clients_cut(fault: Fault, nodes: Sequence[int], node_ids: Sequence[int]) -> list[Direction]:
    return between(nodes, [CLIENTS])


CUTS: Mapping[str, Shape] = MappingProxyType(
    {
        "isolate": _isolate,
        "halves": _halves,
        "ring": _ring,
        "bridge": _bridge,
        "clients-cut": _clients_cut,
    }
)
"""By the kind of fault."""
