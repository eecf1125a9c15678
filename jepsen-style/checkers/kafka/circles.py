"""Transaction cycles of the log: ww by offsets, wr by polls, with process and realtime edges.

Kafka does not isolate writes, so cycles that need a ww edge are reported and allowed. A cycle of
reads alone (with the order of a process or of real time) says that somebody read the future. No
loss explains that, so its edges are of records and not of offsets: after a loss outside the
guarantee an offset may hold another record, and who read the one has not read the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import ge

from ..running_maximum import running_maximum
from ..transactions.cycles import find_cycles
from ..transactions.graph import Edge, Graph
from ..verdict import Anomaly
from .records import NOBODY, KeyLog, Records
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
        writer, value_at, misread = log.writer, log.value_at, log.misread
        sources, targets = graph.sources[Edge.WR], graph.targets[Edge.WR]
        for reader, offsets in log.polls:
            for offset in offsets:
                value = value_at[offset]
                if misread:
                    value = misread.get((reader, offset), value)
                source = writer.get(value)
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
    points = history.invoked[:]
    written: list[list[int]] = []
    read: list[tuple[list[int], list[int]]] = []
    for log in records.keys.values():
        writers = certain_writers(log, records)
        rising = running_maximum([points[writer] for writer in writers])
        for writer, point in zip(writers, rising, strict=True):
            points[writer] = point
        written.append(writers)
    for log in records.keys.values():
        # Along a log points only rise, so the highest record read decides.
        sources = [log.writers[place] for place in log.highest_polled()]
        readers = [operation for operation, _ in log.polls]
        if NOBODY in sources or log.misread:
            return False
        for source, reader in zip(sources, readers, strict=True):
            if points[reader] < points[source]:
                points[reader] = points[source]
        read.append((sources, readers))
    if any(map(ge, points, last_places(records))):
        return False
    if records.lone:
        return True  # by points, then by places: nothing but the order of one log is left
    top = max(map(len, written), default=0)
    places = [top] * len(points)
    for writers in written:
        for place, writer in enumerate(writers):
            places[writer] = place
    ranks = [point * (top + 1) + place for point, place in zip(points, places, strict=True)]
    rank = ranks.__getitem__
    for writers in written:
        if any(map(ge, map(rank, writers), map(rank, writers[1:]))):
            return False
    return not any(
        before != after and ranks[before] >= ranks[after]
        for sources, readers in read
        for before, after in zip(sources, readers, strict=True)
    )


def last_places(records: Records) -> Sequence[int]:
    """By operation: where something that must come after it may be invoked. For an indeterminate
    one that is only what its own client did after giving it up.
    """
    history = records.history
    if not any(map(records.certain.__getitem__, history.given_up)):
        return history.completed
    last = list(history.completed)
    for index, place in history.given_up.items():
        last[index] = place
    return last


def certain_writers(log: KeyLog, records: Records) -> list[int]:
    """Who sent what is there, going up the log."""
    if log.told and not records.uncertain:
        return log.writers
    certain = records.certain
    return [writer for writer in log.writers if writer != NOBODY and certain[writer]]


def add_write_order(graph: Graph, records: Records) -> None:
    for log in records.keys.values():
        for before, after in pairwise(certain_writers(log, records)):
            graph.add(before, after, Edge.WW)
