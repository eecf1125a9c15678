"""Sets that only grow: the final read, and the full story of every element.

`set`: what one last read must and may hold. `set-full`: reads may come at any time and race with
additions; an element that was once certain to be there (added, or read) must be in every read that
begins later.
"""

from __future__ import annotations

from collections.abc import Hashable

from ...history import History, Outcome
from ...history.edn import freeze
from ..verdict import Anomaly, Verdict, judged, unknown


def members(value: object) -> list[Hashable]:
    """A read's elements; a list may show duplicates."""
    return [freeze(element) for element in value]  # type: ignore[attr-defined]


def check_set(history: History) -> Verdict:
    """Against the last successful read: acknowledged additions are there, failed ones not, and
    nothing that nobody tried to add.
    """
    final = None
    for index in range(len(history)):
        if history.function[index] == "read" and history.outcome[index] == Outcome.OK:
            final = index
    if final is None:
        return unknown("the set was never read")
    found: list[Anomaly] = []
    seen = set(members(history.result[final] or ()))
    tried: set[Hashable] = set()
    recovered: list[Anomaly] = []
    for index in range(len(history)):
        if history.function[index] != "add" or history.invoked[index] > history.completed[final]:
            continue
        element = freeze(history.argument[index])
        outcome = history.outcome[index]
        if outcome != Outcome.FAIL:
            tried.add(element)
        if (
            outcome == Outcome.OK
            and element not in seen
            and history.completed[index] < history.invoked[final]
        ):
            found.append(Anomaly("lost", f"{element!r} was added", (index, final)))
        elif outcome == Outcome.INFO and element in seen:
            recovered.append(Anomaly("recovered", f"{element!r} was uncertain", (index, final)))
    for element in sorted(seen - tried, key=repr):
        found.append(Anomaly("unexpected", f"nobody added {element!r}", (final,)))
    return judged(found, recovered)


def check_set_full(history: History, *, linearizable: bool = False) -> Verdict:
    """`lost`: known, and absent from every read from some time on. `stale`: known, absent from a
    read that began later, and back afterwards; fails only when `linearizable`. `duplicated`: twice
    in one read. `never-read`: acknowledged, and no later read can tell (reported).
    """
    found: list[Anomaly] = []
    reported: list[Anomaly] = []
    known: dict[Hashable, tuple[int, int]] = {}
    tried: set[Hashable] = set()
    reads = []
    for index in range(len(history)):
        function, outcome = history.function[index], history.outcome[index]
        if function == "add" and outcome != Outcome.FAIL:
            element = freeze(history.argument[index])
            tried.add(element)
            if outcome == Outcome.OK:
                remember(known, element, history.completed[index], index)
        elif function == "read" and outcome == Outcome.OK:
            elements = members(history.result[index] or ())
            reads.append((history.invoked[index], index, frozenset(elements)))
            if len(elements) != len(set(elements)):
                found.append(Anomaly("duplicated", "an element is there twice", (index,)))
            for element in elements:
                remember(known, element, history.completed[index], index)
    if not reads:
        return unknown("the set was never read")
    reads.sort()
    for element, (since, proof) in known.items():
        if element not in tried:
            found.append(Anomaly("unexpected", f"nobody added {element!r}", (proof,)))
            continue
        later = [(index, element in seen) for invoked, index, seen in reads if invoked > since]
        absent = [index for index, present in later if not present]
        if not later:
            reported.append(Anomaly("never-read", f"{element!r}: no read began later", (proof,)))
        elif absent and absent[-1] == later[-1][0]:
            lost = Anomaly("lost", f"{element!r} was there", (proof, absent[-1]))
            found.append(lost)
        elif absent:
            stale = Anomaly("stale", f"{element!r} was missing for a while", (proof, absent[0]))
            (found if linearizable else reported).append(stale)
    return judged(found, reported)


def remember(
    known: dict[Hashable, tuple[int, int]], element: Hashable, place: int, index: int
) -> None:
    if element not in known or place < known[element][0]:
        known[element] = (place, index)
