"""Transactions in a history: micro-operations, and what each may have left behind."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from ...history import NEVER, History, HistoryError, Outcome
from ...history.edn import freeze
from .graph import Graph

READS = frozenset({"r", "read"})
WRITES = frozenset({"w", "write", "append"})


@dataclass(frozen=True, slots=True)
class Step:
    """One micro-operation. A list read is a tuple of its elements."""

    reads: bool
    key: Hashable
    value: Any


def steps_of(history: History, index: int) -> tuple[Step, ...]:
    """The steps as answered when the transaction committed, else as asked (reads unknown)."""
    known = history.outcome[index] == Outcome.OK
    raw = (history.result[index] if known else None) or history.argument[index] or ()
    steps = []
    for micro in raw:
        try:
            verb, key, value = micro
        except (TypeError, ValueError):
            raise HistoryError(f"operation {index}: {micro!r} is no [verb key value]") from None
        if verb not in READS and verb not in WRITES:
            raise HistoryError(f"operation {index}: unknown verb {verb!r}")
        if verb in READS and not known:
            continue
        steps.append(Step(verb in READS, freeze(key), freeze(value)))
    return tuple(steps)


def order_edges(graph: Graph, history: History, effective: list[int]) -> None:
    """Process and realtime edges between the transactions that took effect or looked."""
    graph.add_processes(history.process, effective)
    graph.add_realtime(history.invoked, history.completed, effective)


__all__ = ["NEVER", "READS", "WRITES", "Step", "order_edges", "steps_of"]
