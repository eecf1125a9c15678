"""Dependency graphs over operations: components first, then the shortest cycle to show.

Real time is an order on all pairs, far too many edges to store. It becomes a chain: every
completion is a node of its own, linked to the next completion; an operation points at its own
completion, and the last completion before an invocation points at that operation. A path through
the chain says exactly "completed before invoked", with three edges an operation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from enum import Enum

from ...history import NEVER


class Edge(Enum):
    """Why one operation comes before another."""

    WW = "ww"  # overwrote the other's version
    WR = "wr"  # read what the other wrote
    RW = "rw"  # read the version that the other overwrote
    PROCESS = "process"  # the same process did it earlier
    REALTIME = "realtime"  # completed before the other was invoked


class Graph:
    """Nodes 0..size-1 are operations; realtime adds nodes above them for completions."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.nodes = size
        self.sources: dict[Edge, list[int]] = {kind: [] for kind in Edge}
        self.targets: dict[Edge, list[int]] = {kind: [] for kind in Edge}

    def add(self, source: int, target: int, kind: Edge) -> None:
        """An edge; from a node to itself it says nothing and is left out."""
        if source != target:
            self.sources[kind].append(source)
            self.targets[kind].append(target)

    def add_processes(self, processes: Sequence[object], nodes: Iterable[int]) -> None:
        """`nodes` in order of invocation."""
        latest: dict[object, int] = {}
        for node in nodes:
            before = latest.get(processes[node])
            if before is not None:
                self.add(before, node, Edge.PROCESS)
            latest[processes[node]] = node

    def add_realtime(
        self, invoked: Sequence[int], completed: Sequence[int], nodes: Collection[int]
    ) -> None:
        """`completed` is NEVER for an operation that precedes nobody."""
        sources, targets = self.sources[Edge.REALTIME], self.targets[Edge.REALTIME]
        ended = sorted((completed[node], node) for node in nodes if completed[node] != NEVER)
        started = sorted((invoked[node], node) for node in nodes)
        chain = self.size - 1  # the completion before the one that is added
        position = 0
        for place, node in started:
            while position < len(ended) and ended[position][0] < place:
                chain += 1
                sources.append(ended[position][1])
                targets.append(chain)
                if position:
                    sources.append(chain - 1)
                    targets.append(chain)
                position += 1
            if position:
                sources.append(chain)
                targets.append(node)
        self.nodes = chain + 1

    def among(self, kinds: Collection[Edge], nodes: Collection[int] | None = None) -> Adjacency:
        """Successors by node, of the given kinds, between the given nodes (None: all)."""
        successors: Adjacency = {}
        for kind in kinds:
            for source, target in zip(self.sources[kind], self.targets[kind], strict=True):
                if nodes is None or (source in nodes and target in nodes):
                    successors.setdefault(source, []).append(target)
        return successors

    def kinds_between(self, source: int, target: int, kinds: Collection[Edge]) -> Edge | None:
        """The strongest kind of edge from one node to the other."""
        for kind in Edge:
            if kind in kinds:
                pairs = zip(self.sources[kind], self.targets[kind], strict=True)
                if any(s == source and t == target for s, t in pairs):
                    return kind
        return None

    def cyclic_nodes(self, kinds: Collection[Edge]) -> set[int]:
        """A superset of the nodes on cycles, found by peeling off nodes without a predecessor and
        then without a successor. Empty for most histories, and then there is nothing to search.
        """
        count = self.nodes
        degree = [0] * count
        successors: list[list[int] | None] = [None] * count
        for kind in kinds:
            for source, target in zip(self.sources[kind], self.targets[kind], strict=True):
                degree[target] += 1
                out = successors[source]
                if out is None:
                    successors[source] = [target]
                else:
                    out.append(target)
        ready = [node for node in range(count) if not degree[node]]
        left = count
        while ready:
            node = ready.pop()
            left -= 1
            for target in successors[node] or ():
                degree[target] -= 1
                if not degree[target]:
                    ready.append(target)
        if not left:
            return set()
        remaining = {node for node in range(count) if degree[node] > 0}
        predecessors: dict[int, list[int]] = {}
        out_degree: dict[int, int] = {}
        for node in remaining:
            inside = [target for target in successors[node] or () if target in remaining]
            out_degree[node] = len(inside)
            for target in inside:
                predecessors.setdefault(target, []).append(node)
        ready = [node for node, out_count in out_degree.items() if not out_count]
        while ready:
            node = ready.pop()
            remaining.discard(node)
            for source in predecessors.get(node, ()):
                out_degree[source] -= 1
                if not out_degree[source]:
                    ready.append(source)
        return remaining


Adjacency = dict[int, list[int]]


def components(successors: Adjacency) -> list[list[int]]:
    """Strongly connected components of two nodes or more (Tarjan, without recursion)."""
    found: list[list[int]] = []
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    for root in successors:
        if root in number:
            continue
        work: list[tuple[int, int]] = [(root, 0)]
        while work:
            node, next_child = work.pop()
            if next_child == 0:
                number[node] = low[node] = len(number)
                stack.append(node)
                on_stack.add(node)
            children = successors.get(node, ())
            descended = False
            for position in range(next_child, len(children)):
                child = children[position]
                if child not in number:
                    work.append((node, position + 1))
                    work.append((child, 0))
                    descended = True
                    break
                if child in on_stack:
                    low[node] = min(low[node], number[child])
            if descended:
                continue
            if low[node] == number[node]:
                component = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    component.append(member)
                    if member == node:
                        break
                if len(component) > 1:
                    found.append(component)
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
    return found


def shortest_path(
    successors: Adjacency, source: int, target: int, budget: int
) -> tuple[list[int] | None, int]:
    """The nodes from source to target, both included; and how many edges were looked at.

    None when there is none, or none within `budget` edges.
    """
    came_from = {source: source}
    queue = deque([source])
    looked = 0
    while queue and looked < budget:
        node = queue.popleft()
        for child in successors.get(node, ()):
            looked += 1
            if child in came_from:
                continue
            came_from[child] = node
            if child == target:
                path = [child]
                while path[-1] != source:
                    path.append(came_from[path[-1]])
                return path[::-1], looked
            queue.append(child)
    return None, looked
