"""Transactions over registers whose values are written once.

A blind write hides what it overwrote, so only some orders are certain: nil comes before every
value, and a transaction that reads `a` of a key and then writes `b` puts `a` before `b`. A value
that nobody is known to have written is reported and fails nothing: its writer may be outside the
history (the model's own judgement, as Elle's).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ...history import History, Outcome
from ..verdict import Anomaly, Verdict
from .cycles import find_cycles
from .graph import Edge, Graph
from .properties import judge
from .transaction import Step, order_edges, steps_of

Version = tuple[Hashable, Any]


def check_rw_register(history: History, property: str = "strict-serializable") -> Verdict:
    return judge(rw_register_anomalies(history), property)


def rw_register_anomalies(history: History) -> list[Anomaly]:
    transactions = [steps_of(history, index) for index in range(len(history))]
    found: list[Anomaly] = []
    writer: dict[Version, int] = {}
    final: dict[Version, bool] = {}
    for index, steps in enumerate(transactions):
        last: dict[Hashable, Version] = {}
        for step in steps:
            if not step.reads:
                version = (step.key, step.value)
                if version in writer and writer[version] != index:
                    both = (writer[version], index)
                    found.append(
                        Anomaly("duplicate-writes", f"{version!r} was written twice", both)
                    )
                writer[version] = index
                final[version] = False
                last[step.key] = version
        for version in last.values():
            final[version] = True
    reads = external_reads(history, transactions, found)
    graph = Graph(len(history))
    readers: dict[Version, list[int]] = {}
    for index, key, value in reads:
        readers.setdefault((key, value), []).append(index)
        source = writer.get((key, value))
        if source is not None:
            graph.add(source, index, Edge.WR)
            if history.outcome[source] == Outcome.FAIL:
                found.append(
                    Anomaly("G1a", f"read {value!r} of {key!r}, which was aborted", (index, source))
                )
            elif source != index and not final[key, value]:
                found.append(
                    Anomaly("G1b", f"read {value!r} of {key!r}, soon overwritten", (index, source))
                )
        elif value is not None:
            # Reported only, as Elle does: a register may hold a value before the history begins.
            found.append(Anomaly("unwritten-read", f"nobody wrote {value!r} to {key!r}", (index,)))
    read_values = set(readers)
    effective = [
        index
        for index in range(len(history))
        if history.outcome[index] == Outcome.OK
        or (
            history.outcome[index] == Outcome.INFO
            and any((step.key, step.value) in read_values for step in transactions[index])
        )
    ]
    add_versions(graph, history, transactions, writer, final, readers, effective)
    order_edges(graph, history, effective)
    found.extend(find_cycles(graph, history, anti_dependencies=True))
    return found


def add_versions(
    graph: Graph,
    history: History,
    transactions: list[tuple[Step, ...]],
    writer: dict[Version, int],
    final: dict[Version, bool],
    readers: dict[Version, list[int]],
    effective: list[int],
) -> None:
    """ww and rw edges of the certain orders: nil first, and read-then-written."""
    took_effect = set(effective)
    after_nil = {
        key: [reader for reader in group]
        for (key, value), group in readers.items()
        if value is None
    }
    for (key, _), source in writer.items():
        if source in took_effect:
            for reader in after_nil.get(key, ()):
                graph.add(reader, source, Edge.RW)
    for index in effective:
        read: dict[Hashable, Any] = {}
        written: set[Hashable] = set()
        for step in transactions[index]:
            if step.reads:
                if step.key not in written:
                    read.setdefault(step.key, step.value)
                continue
            if step.key in read and step.key not in written and read[step.key] is not None:
                before = (step.key, read[step.key])
                if before in writer:
                    graph.add(writer[before], index, Edge.WW)
                for reader in readers.get(before, ()):
                    graph.add(reader, index, Edge.RW)
            written.add(step.key)


def external_reads(
    history: History, transactions: list[tuple[Step, ...]], found: list[Anomaly]
) -> list[tuple[int, Hashable, Any]]:
    """First reads of keys that the transaction had not written; `internal` where it forgets."""
    reads = []
    for index, steps in enumerate(transactions):
        if history.outcome[index] != Outcome.OK:
            continue
        known: dict[Hashable, Any] = {}
        for step in steps:
            if not step.reads:
                known[step.key] = step.value
            elif step.key in known:
                if known[step.key] != step.value:
                    found.append(
                        Anomaly(
                            "internal",
                            f"read {step.value!r} of {step.key!r} after {known[step.key]!r}",
                            (index,),
                        )
                    )
            else:
                known[step.key] = step.value
                reads.append((index, step.key, step.value))
    return reads
