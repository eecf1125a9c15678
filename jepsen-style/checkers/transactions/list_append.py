"""Transactions that append unique elements to lists and read whole lists.

A list shows its own history: reading `[1 2 3]` tells that 1, 2, 3 were appended in this order, so
the longest read of a key orders its versions, and each read names the version that it saw.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import Any

from ...history import History, Outcome
from ..verdict import Anomaly, Verdict
from .cycles import find_cycles
from .graph import Edge, Graph
from .properties import judge
from .transaction import Step, order_edges, steps_of

Element = tuple[Hashable, Any]
"""(key, element)."""


def check_list_append(history: History, property: str = "strict-serializable") -> Verdict:
    """Whether the history keeps the property; every anomaly seen is at least reported."""
    return judge(list_append_anomalies(history), property)


def list_append_anomalies(history: History) -> list[Anomaly]:
    transactions = [steps_of(history, index) for index in range(len(history))]
    found: list[Anomaly] = []
    writer, last_append = writers(history, transactions)
    reads = external_reads(history, transactions, found)
    orders = version_orders(reads, found)
    seen = {(key, element) for key, order in orders.items() for element in order}
    found.extend(bad_reads(history, reads, writer, last_append))
    graph = Graph(len(history))
    for key, order in orders.items():
        for before, after in pairwise(order):
            if (key, before) in writer and (key, after) in writer:
                graph.add(writer[key, before], writer[key, after], Edge.WW)
    for index, key, value in reads:
        order = orders[key]
        if value:
            if (key, value[-1]) in writer:
                graph.add(writer[key, value[-1]], index, Edge.WR)
            if order[: len(value)] != value:
                continue  # incompatible, already reported: it saw no version of this order
        if len(value) < len(order) and (key, order[len(value)]) in writer:
            graph.add(index, writer[key, order[len(value)]], Edge.RW)
    effective = [
        index
        for index in range(len(history))
        if history.outcome[index] == Outcome.OK
        or (
            history.outcome[index] == Outcome.INFO
            and any((step.key, step.value) in seen for step in transactions[index])
        )
    ]
    order_edges(graph, history, effective)
    found.extend(find_cycles(graph, history, anti_dependencies=True))
    return found


def writers(
    history: History, transactions: list[tuple[Step, ...]]
) -> tuple[dict[Element, int], dict[Element, bool]]:
    """Who appended an element, and whether it was that transaction's last to the key."""
    writer: dict[Element, int] = {}
    final: dict[Element, bool] = {}
    for index, steps in enumerate(transactions):
        last: dict[Hashable, Element] = {}
        for step in steps:
            if not step.reads:
                writer[step.key, step.value] = index
                final[step.key, step.value] = False
                last[step.key] = (step.key, step.value)
        for element in last.values():
            final[element] = True
    return writer, final


def external_reads(
    history: History, transactions: list[tuple[Step, ...]], found: list[Anomaly]
) -> list[tuple[int, Hashable, tuple[Any, ...]]]:
    """First reads of a key by committed transactions, less what these had appended before.

    A read that contradicts the transaction's own earlier steps is `internal`.
    """
    reads = []
    for index, steps in enumerate(transactions):
        if history.outcome[index] != Outcome.OK:
            continue
        known: dict[Hashable, tuple[Any, ...]] = {}
        own: dict[Hashable, tuple[Any, ...]] = {}
        for step in steps:
            if not step.reads:
                own[step.key] = (*own.get(step.key, ()), step.value)
                continue
            value = tuple(step.value or ())
            mine = own.get(step.key, ())
            outside = value[: len(value) - len(mine)]
            if value[len(outside) :] != mine or (step.key in known and known[step.key] != outside):
                found.append(
                    Anomaly(
                        "internal",
                        f"read {value!r} of {step.key!r} contradicts the same transaction",
                        (index,),
                    )
                )
                continue
            if step.key not in known:
                known[step.key] = outside
                reads.append((index, step.key, outside))
    return reads


def version_orders(
    reads: list[tuple[int, Hashable, tuple[Any, ...]]], found: list[Anomaly]
) -> dict[Hashable, tuple[Any, ...]]:
    """The longest read of each key; every other one must be a beginning of it."""
    longest: dict[Hashable, tuple[int, tuple[Any, ...]]] = {}
    for index, key, value in reads:
        if len(set(value)) != len(value):
            found.append(
                Anomaly("duplicate-elements", f"{value!r} of {key!r} repeats one", (index,))
            )
        if key not in longest or len(value) > len(longest[key][1]):
            longest[key] = (index, value)
    for index, key, value in reads:
        other, order = longest[key]
        if order[: len(value)] != value:
            found.append(
                Anomaly(
                    "incompatible-order",
                    f"{value!r} of {key!r} is no beginning of {order!r}",
                    (index, other),
                )
            )
    return {key: order for key, (_, order) in longest.items()}


def bad_reads(
    history: History,
    reads: list[tuple[int, Hashable, tuple[Any, ...]]],
    writer: dict[Element, int],
    final: dict[Element, bool],
) -> list[Anomaly]:
    """Elements of aborted transactions (G1a), half a transaction (G1b), or of nobody."""
    found = []
    for index, key, value in reads:
        for element in value:
            source = writer.get((key, element))
            if source is None:
                found.append(
                    Anomaly("garbage-read", f"nobody appended {element!r} to {key!r}", (index,))
                )
            elif history.outcome[source] == Outcome.FAIL:
                found.append(
                    Anomaly(
                        "G1a", f"read {element!r} of {key!r}, which was aborted", (index, source)
                    )
                )
        if value and writer.get((key, value[-1]), index) != index and not final[key, value[-1]]:
            found.append(
                Anomaly(
                    "G1b",
                    f"read {key!r} up to {value[-1]!r}, in the middle of a transaction",
                    (index, writer[key, value[-1]]),
                )
            )
    return found
