"""Sets in n log n, for the two ways that histories use them.

*By element*: add, remove and contains, every element added and removed at most once. Elements are
independent, so each is decided alone. It is there from the point of its addition to that of its
removal: reads that saw it want the first early and the second late, reads that missed it the
opposite. Both points are pushed just as late as they must be.

*By snapshot*: adds (each element once) and reads of the whole set. Two reads must contain one
another, so reads are a ladder by size, every element sits right below the first read that has it,
and the running maximum of invocations decides as it does for a log.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from ...history import NEVER, History
from ..linearizability.models import Set, calls_of
from ..linearizability.search import TimedCall
from ..verdict import Anomaly, Verdict, invalid, unknown, valid
from .certificate import placed

NOT_YET = -1


@dataclass(slots=True)
class Element:
    """All calls about one element, as (invoked, completed, number)."""

    added: tuple[int, int, int] | None = None
    removed: tuple[int, int, int] | None = None
    saw: list[tuple[int, int, int]] = field(default_factory=list)
    missed: list[tuple[int, int, int]] = field(default_factory=list)


def check_set(history: History) -> Verdict:
    """UNKNOWN when an element comes or goes twice, or when both ways are mixed."""
    return check_set_calls(calls_of(history, Set()))


def check_set_calls(calls: Sequence[TimedCall]) -> Verdict:
    functions = {timed[0].function for timed in calls}
    if "read" not in functions:
        return by_element(calls)
    if functions <= {"read", "add"} and all(
        timed[0].result is not False for timed in calls if timed[0].function == "add"
    ):
        return by_snapshot(calls)
    return unknown("whole reads beside removals or lookups need the general search")


def by_element(calls: Sequence[TimedCall]) -> Verdict:
    elements: dict[Hashable, Element] = {}
    for call, begin, end, number in calls:
        element = elements.setdefault(call.argument, Element())
        timed = (begin, end, number)
        changes = call.function != "contains" and call.result is not False
        if call.function != "contains" and call.result is None and end != NEVER:
            return unknown(f"{call.function} did not say whether it changed the set")
        if call.function == "add" and changes:
            if element.added is not None:
                return unknown(f"{call.argument!r} is added twice")
            element.added = timed
        elif call.function == "remove" and changes:
            if element.removed is not None:
                return unknown(f"{call.argument!r} is removed twice")
            element.removed = timed
        elif (call.function == "add") or (call.function == "contains" and call.result):
            element.saw.append(timed)
        else:
            element.missed.append(timed)
    steps: list[tuple[int, int, int]] = []
    for name, element in elements.items():
        problem = place(name, element, steps)
        if problem is not None:
            return invalid(problem)
    steps.sort()
    return valid(certificate=placed([s[2] for s in steps], [s[0] for s in steps]))


def place(name: Hashable, element: Element, steps: list[tuple[int, int, int]]) -> Anomaly | None:
    """Choose the two points; append (point, rank within the point, number) of every call."""
    removed = element.removed
    added = element.added
    if added is None:
        if element.saw or (removed is not None and removed[1] != NEVER):
            witness = element.saw[0] if element.saw else removed
            assert witness is not None
            return Anomaly("never-added", f"{name!r} was there", (witness[2],))
        steps.extend((begin, 0, number) for begin, _, number in element.missed)
        return None
    seen_last = max((begin for begin, _, _ in element.saw), default=NOT_YET)
    seen_first = min((end for _, end, _ in element.saw), default=NEVER)
    out = NEVER if removed is None else max(removed[0], seen_last)
    # Who missed it and had to be done before it went must have looked before it came.
    into = max(
        [added[0], *(begin for begin, end, _ in element.missed if end <= out)],
    )
    out = max(out, into)
    if into >= added[1] or into >= seen_first:
        late = (added[2],) if into >= added[1] else (min(element.saw, key=lambda s: s[1])[2],)
        return Anomaly("not-there-yet", f"{name!r} came after it was seen or added", late)
    if removed is not None and removed[1] != NEVER and out >= removed[1]:
        return Anomaly("seen-after-removal", f"{name!r} was seen when it was gone", (removed[2],))
    steps.append((into, 2, added[2]))
    if removed is not None and (
        removed[1] != NEVER or any(end > out and begin > into for begin, end, _ in element.missed)
    ):
        steps.append((out, 4, removed[2]))
    for begin, _end, number in element.saw:
        steps.append((max(begin, into), 3, number))
    for begin, _end, number in element.missed:
        before = begin <= into
        steps.append((begin, 1, number) if before else (max(begin, out), 5, number))
    return None


def by_snapshot(calls: Sequence[TimedCall]) -> Verdict:
    adds: dict[Hashable, tuple[int, int, int]] = {}
    reads: list[tuple[int, int, int, frozenset[Hashable]]] = []
    for call, begin, end, number in calls:
        if call.function == "add":
            if call.argument in adds:
                return unknown(f"{call.argument!r} is added twice")
            adds[call.argument] = (begin, end, number)
        else:
            members: frozenset[Hashable] = call.result  # type: ignore[assignment]
            reads.append((begin, end, number, members))
    reads.sort(key=lambda read: len(read[3]))
    # (rank, invoked, completed, number): an add one rank below the first read that has it.
    ladder: list[tuple[int, int, int, int]] = []
    held: frozenset[Hashable] = frozenset()
    rank, previous = 0, -1
    waiting = dict(adds)
    for begin, end, number, members in reads:
        if not held <= members:
            text = "two reads that do not contain one another"
            return invalid(Anomaly("incomparable-reads", text, (previous, number)))
        if len(members) > len(held) or rank == 0:
            rank += 2
            for element in members - held:
                if element not in waiting:
                    return invalid(Anomaly("never-added", f"{element!r} was read", (number,)))
                ladder.append((rank - 1, *waiting.pop(element)))
        held, previous = members, number
        ladder.append((rank, begin, end, number))
    ladder.extend(
        (rank + 1, begin, end, number) for begin, end, number in waiting.values() if end != NEVER
    )
    return climb(ladder)


def climb(ladder: list[tuple[int, int, int, int]]) -> Verdict:
    """The running maximum of invocations over ranks; equal ranks do not constrain each other."""
    ladder.sort()
    above = pending = current = -1
    steps: list[tuple[int, int, int]] = []
    for rank, begin, end, number in ladder:
        if rank != current:
            above, current = max(above, pending), rank
        point = max(begin, above)
        if point >= end:
            text = "it completed before something that comes first was invoked"
            return invalid(Anomaly("stale-read", text, (number,)))
        pending = max(pending, point)
        steps.append((point, rank, number))
    steps.sort()
    return valid(certificate=placed([s[2] for s in steps], [s[0] for s in steps]))


__all__ = ["check_set", "check_set_calls"]
