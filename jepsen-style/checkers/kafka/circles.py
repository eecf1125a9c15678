"""Transaction cycles of the log: ww by offsets, wr by polls, with process and realtime edges.

Kafka does not isolate writes, so cycles that need a ww edge are reported and allowed. A cycle of
reads alone (with the order of a process or of real time) says that somebody read the future.
"""

from __future__ import annotations

from itertools import pairwise
from operator import ge

from ...history import NEVER
from ..transactions.cycles import find_cycles
from ..transactions.graph import Edge, Graph
from ..verdict import Anomaly
from .records import Records
from .settings import KafkaSettings


def transaction_cycles(
    records: Records, settings: KafkaSettings
) -> tuple[list[Anomaly], list[Anomaly]]:
    """(cycles of reads alone, which fail; cycles that need a write dependency, which do not)."""
    history = records.history
    if linear_order_exists(records):
        return [], []
    graph = Graph(len(history))
    for log in records.keys.values():
        writer, value_at = log.writer, log.value_at
        sources, targets = graph.sources[Edge.WR], graph.targets[Edge.WR]
        for reader, offsets in log.polls:
            for offset in offsets:
                source = writer.get(value_at[offset])
                if source is not None and source != reader:
                    sources.append(source)
                    targets.append(reader)
    certain = [index for index in range(len(history)) if records.certain[index]]
    graph.add_processes(history.process, certain)
    graph.add_realtime(history.invoked, history.completed, certain)
    if settings.ww_deps:
        add_write_order(graph, records)
    if not graph.cyclic_nodes(frozenset(Edge)):
        return [], []
    without = frozenset({Edge.WW})
    failing = find_cycles(graph, history, anti_dependencies=False, without=without)
    known = {anomaly.kind for anomaly in failing}
    allowed = find_cycles(graph, history, anti_dependencies=False)
    return failing, [anomaly for anomaly in allowed if anomaly.kind not in known]


def linear_order_exists(records: Records) -> bool:
    """True when one order of all operations is found that every edge follows: then no cycle of any
    class exists, and no graph has to be built. False says nothing.

    The order is by *points*: an operation's is its invocation, or the greatest point of what it
    must come after, going up each log. A point before the operation's completion respects real
    time; within one point, writes go by their place in the log and readers after them.
    """
    history = records.history
    points = list(history.invoked)
    places = [0] * len(points)
    top = max((len(log.offsets) for log in records.keys.values()), default=0) + 1
    written = bytearray(len(points))
    logs = []
    for log in records.keys.values():
        writers = [
            writer
            for writer in (log.writer.get(log.value_at[offset]) for offset in log.offsets)
            if writer is not None and records.certain[writer]
        ]
        logs.append((log, writers))
        latest = -1
        for place, writer in enumerate(writers):
            if points[writer] < latest:
                points[writer] = latest
            else:
                latest = points[writer]
            places[writer] = place
            written[writer] = 1
    sources: list[list[int]] = []
    readers: list[list[int]] = []
    for log, _ in logs:
        source_of, value_at = log.writer, log.value_at
        before, after = [], []
        for reader, offsets in log.polls:
            # Along a log points only rise, so the highest record read decides.
            source = source_of.get(value_at[max(offsets)])
            if source is None:
                if any(value_at[offset] in source_of for offset in offsets):
                    return False
                continue
            if source == reader:
                continue
            if points[reader] < points[source]:
                points[reader] = points[source]
            if not written[reader]:
                places[reader] = top
            before.append(source)
            after.append(reader)
        sources.append(before)
        readers.append(after)
    if any(map(ge, points, history.completed)):
        return False
    # Processes are sequential, so their order is real time, but for indeterminate operations.
    if any(
        records.certain[index] and history.completed[index] == NEVER for index in range(len(points))
    ):
        return False
    ranks = [point * (top + 1) + place for point, place in zip(points, places, strict=True)]
    rank = ranks.__getitem__
    for _, writers in logs:
        if any(map(ge, map(rank, writers), map(rank, writers[1:]))):
            return False
    return not any(
        any(map(ge, map(rank, before), map(rank, after)))
        for before, after in zip(sources, readers, strict=True)
    )


def add_write_order(graph: Graph, records: Records) -> None:
    for log in records.keys.values():
        writers = [
            source
            for source in (log.writer.get(log.value_at[offset]) for offset in log.offsets)
            if source is not None and records.certain[source]
        ]
        for before, after in pairwise(writers):
            graph.add(before, after, Edge.WW)
