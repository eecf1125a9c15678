"""Transaction cycles of the log: ww by offsets, wr by polls, with process and realtime edges.

Kafka does not isolate writes, so cycles that need a ww edge are reported and allowed. A cycle of
reads alone (with the order of a process or of real time) says that somebody read the future.
"""

from __future__ import annotations

from itertools import pairwise

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


def add_write_order(graph: Graph, records: Records) -> None:
    for log in records.keys.values():
        writers = [
            source
            for source in (log.writer.get(log.value_at[offset]) for offset in log.offsets)
            if source is not None and records.certain[source]
        ]
        for before, after in pairwise(writers):
            graph.add(before, after, Edge.WW)
