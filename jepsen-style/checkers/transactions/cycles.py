"""From a graph to named anomalies: which cycles exist, and the shortest of each class to show.

| class | edges of the cycle |
| --- | --- |
| G0 | ww only |
| G1c | ww and wr, at least one wr |
| G-single | exactly one rw |
| G-nonadjacent | several rw, no two of them in a row |
| G2-item | two rw in a row |

each also with process edges (`-process`) and with realtime edges (`-realtime`). Whether a class
exists is decided by components, in linear time, however large they are; only the example to show
is searched for, within a budget. When that ends first, the anomaly is `...-cycle-exists`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ...history import History
from ..verdict import Anomaly
from .graph import Adjacency, Edge, Graph, components, shortest_path

SEARCH_BUDGET = 2_000_000
"""Edges looked at for the example of one class."""
EXAMPLES = 64
"""Starting edges tried for a shorter example."""

SUFFIXES: tuple[tuple[str, frozenset[Edge]], ...] = (
    ("", frozenset()),
    ("-process", frozenset({Edge.PROCESS})),
    ("-realtime", frozenset({Edge.PROCESS, Edge.REALTIME})),
)

FLOW = frozenset({Edge.WW, Edge.WR})
ALL = frozenset(Edge)


@dataclass(frozen=True, slots=True)
class CycleClass:
    name: str
    data: frozenset[Edge]
    needs: Edge
    exists_name: str


CLASSES = (
    CycleClass("G0", frozenset({Edge.WW}), Edge.WW, "PL-1-cycle-exists"),
    CycleClass("G1c", FLOW, Edge.WR, "PL-2-cycle-exists"),
)
G_SINGLE, G_NONADJACENT, G2 = "G-single", "G-nonadjacent", "G2-item"


def find_cycles(
    graph: Graph,
    history: History,
    *,
    anti_dependencies: bool,
    without: frozenset[Edge] = frozenset(),
) -> list[Anomaly]:
    """One anomaly for each class that has a cycle; the weakest ordering that closes it names it.

    A class is not repeated with more edges when it exists with fewer. Edges of kinds in `without`
    count for nothing.
    """
    cyclic = graph.cyclic_nodes(ALL - without)
    if not cyclic:
        return []
    found: list[Anomaly] = []
    seen: set[str] = set()
    for suffix, extra in SUFFIXES:
        for cycle_class in CLASSES:
            if cycle_class.name in seen:
                continue
            if cycle_class.needs in without:
                continue
            kinds = (cycle_class.data | extra) - without
            anomaly = cycle_of_class(graph, history, cyclic, cycle_class, suffix, kinds)
            if anomaly is not None:
                seen.add(cycle_class.name)
                found.append(anomaly)
        if anti_dependencies:
            for name, anomaly in anti_dependency_cycles(graph, history, cyclic, suffix, extra):
                if name not in seen:
                    seen.add(name)
                    found.append(anomaly)
    return found


def cycle_of_class(
    graph: Graph,
    history: History,
    cyclic: set[int],
    cycle_class: CycleClass,
    suffix: str,
    kinds: frozenset[Edge],
) -> Anomaly | None:
    successors = graph.among(kinds, cyclic)
    starts = [
        edge for edge in edges_inside(graph, cycle_class.needs, components(successors), cyclic)
    ]
    if not starts:
        return None
    example = shortest_cycle(successors, starts)
    name = cycle_class.name + suffix
    if example is None:
        strong = "strong-" if suffix else ""
        return exists(strong + cycle_class.exists_name, starts)
    return described(graph, history, name, example, kinds)


def edges_inside(
    graph: Graph, kind: Edge, groups: list[list[int]], nodes: Collection[int]
) -> Iterator[tuple[int, int]]:
    """Edges of a kind whose both ends lie in one component: each lies on a cycle."""
    group_of = {node: number for number, group in enumerate(groups) for node in group}
    for source, target in zip(graph.sources[kind], graph.targets[kind], strict=True):
        group = group_of.get(source)
        if group is not None and group == group_of.get(target):
            yield source, target


def shortest_cycle(successors: Adjacency, starts: list[tuple[int, int]]) -> list[int] | None:
    """The shortest cycle through one of the first starting edges; closed: first node is last."""
    best: list[int] | None = None
    budget = SEARCH_BUDGET
    for source, target in starts[:EXAMPLES]:
        path, looked = shortest_path(successors, target, source, budget)
        budget -= looked
        if path is not None and (best is None or len(path) + 1 < len(best)):
            best = [source, *path]
        if budget <= 0:
            break
    return best


def anti_dependency_cycles(
    graph: Graph, history: History, cyclic: set[int], suffix: str, extra: frozenset[Edge]
) -> Iterator[tuple[str, Anomaly]]:
    order = FLOW | extra
    everything = order | {Edge.RW}
    full = graph.among(everything, cyclic)
    starts = list(edges_inside(graph, Edge.RW, components(full), cyclic))
    if not starts:
        return
    single = shortest_cycle(graph.among(order, cyclic), starts)
    if single is not None:
        yield G_SINGLE, described(graph, history, G_SINGLE + suffix, single, everything)
    # Two layers, the upper one entered by rw and left by any other edge: a cycle in it is one
    # without two rw in a row. (Snapshot isolation forbids exactly these; Cerone & Gotsman 2018.)
    layered = two_layers(graph, cyclic, order)
    apart = [
        component for component in components(layered) if any(is_upper(node) for node in component)
    ]
    if apart and single is None:
        example = layered_cycle(layered, apart)
        if example is None:
            yield G_NONADJACENT, exists(G_NONADJACENT + suffix + "-cycle-exists", starts)
        else:
            named = G_NONADJACENT + suffix
            yield G_NONADJACENT, described(graph, history, named, example, everything)
    cycle = shortest_cycle(full, starts)
    if cycle is None:
        yield G2, exists(f"G2-item{suffix}-cycle-exists", starts)
    elif single is None and not apart:
        yield G2, described(graph, history, G2 + suffix, cycle, everything)


def two_layers(graph: Graph, cyclic: set[int], order: Collection[Edge]) -> Adjacency:
    """Node n is 2n below (entered by an ordering edge) and 2n+1 above (entered by rw)."""
    layered: Adjacency = {}
    for source, targets in graph.among(order, cyclic).items():
        below = [2 * target for target in targets]
        layered.setdefault(2 * source, []).extend(below)
        layered.setdefault(2 * source + 1, []).extend(below)
    for source, targets in graph.among({Edge.RW}, cyclic).items():
        layered.setdefault(2 * source, []).extend(2 * target + 1 for target in targets)
    return layered


def is_upper(node: int) -> bool:
    return bool(node & 1)


def layered_cycle(layered: Adjacency, groups: list[list[int]]) -> list[int] | None:
    starts: list[tuple[int, int]] = []
    for group in groups:
        inside = set(group)
        starts.extend(
            (node, target)
            for node in group
            for target in layered.get(node, ())
            if is_upper(target) and target in inside
        )
    cycle = shortest_cycle(layered, starts)
    return None if cycle is None else [node // 2 for node in cycle]


def exists(name: str, starts: list[tuple[int, int]]) -> Anomaly:
    members = sorted({node for edge in starts for node in edge})
    return Anomaly(
        kind=name,
        description=(
            f"a cycle of this class exists among {len(members)} operations; "
            "none short enough was found within the search budget"
        ),
        operations=tuple(members[:16]),
    )


def described(
    graph: Graph, history: History, name: str, cycle: list[int], kinds: Collection[Edge]
) -> Anomaly:
    """Name each edge; nodes of the chain of completions vanish into one realtime edge."""
    steps: list[tuple[int, str, int]] = []
    real = [node for node in cycle if node < graph.size]
    if real[0] != real[-1] or len(real) == 1:
        real.append(real[0])
    for source, target in pairwise(real):
        kind = graph.kinds_between(source, target, kinds) or Edge.REALTIME
        steps.append((source, kind.value, target))
    text = ", ".join(f"#{source} -{kind}-> #{target}" for source, kind, target in steps)
    return Anomaly(
        kind=name,
        description=text,
        operations=tuple(dict.fromkeys(real)),
        details={"cycle": steps},
    )
