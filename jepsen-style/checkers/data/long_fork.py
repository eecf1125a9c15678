"""Long fork: two readers that saw two writes in opposite orders.

Keys are written once. Of two reads over the same keys one must have seen at least as much as the
other; snapshot isolation forbids the fork, parallel snapshot isolation allows it.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import combinations

from ...history import History, Outcome
from ..transactions.transaction import steps_of
from ..verdict import Anomaly, Verdict, judged, unknown


def check_long_fork(history: History) -> Verdict:
    """Functions hold `[[r k v] ...]` and `[[w k v]]`; nil is the value before the write."""
    groups: dict[tuple[Hashable, ...], list[tuple[int, dict[Hashable, object]]]] = {}
    written: dict[Hashable, int] = {}
    found: list[Anomaly] = []
    for index in range(len(history)):
        steps = steps_of(history, index)
        for step in steps:
            if not step.reads and history.outcome[index] != Outcome.FAIL:
                if step.key in written and written[step.key] != index:
                    twice = f"{step.key!r} is written twice; the check needs one write a key"
                    return unknown(twice)
                written[step.key] = index
        values = {step.key: step.value for step in steps if step.reads}
        if values and len(values) == len(steps):
            keys = tuple(sorted(values, key=repr))
            groups.setdefault(keys, []).append((index, values))
    for keys, reads in groups.items():
        for (first, a), (second, b) in combinations(reads, 2):
            ahead = [key for key in keys if a[key] is not None and b[key] is None]
            behind = [key for key in keys if a[key] is None and b[key] is not None]
            if ahead and behind:
                text = f"one saw {ahead!r} before {behind!r}, the other the reverse"
                found.append(Anomaly("long-fork", text, (first, second)))
            differ = [
                key
                for key in keys
                if a[key] != b[key] and a[key] is not None and b[key] is not None
            ]
            if differ:
                found.append(
                    Anomaly("distinct-values", f"two values of {differ!r}", (first, second))
                )
    return judged(found) if groups else unknown("no read covers keys")
