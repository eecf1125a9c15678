"""A register whose values are written once each (Gibbons & Korach, "Testing shared memories").

All operations on one value form a cluster; in any legal order clusters do not mix. Let f be the
first completion in a cluster and s its last invocation. When f < s the register held the value all
the time from f to s (a *forward* zone); otherwise there is an instant in s..f at which the whole
cluster can happen (a *backward* zone). So the history is linearizable iff nothing is read before
its write began, forward zones do not overlap, and no backward zone lies within a forward one.

Example: write 1 [0,1], write 2 [2,3], read 1 [4,5]. Value 1 has the zone 1..4; value 2 the
backward zone 2..3, inside it: not linearizable.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence

from ...history import NEVER, History
from ..linearizability.models import Register, calls_of
from ..linearizability.search import TimedCall
from ..running_maximum import running_maximum
from ..verdict import Anomaly, Verdict, invalid, unknown, valid
from .certificate import Certificate, placed

INITIAL = -1
"""The place of the virtual write of the initial value: before every event."""


def check_register(history: History, *, initial: Hashable = None) -> Verdict:
    """UNKNOWN when a value is written twice, or for operations other than read and write."""
    calls = calls_of(history, Register(initial))
    return check_register_calls(calls, initial=initial)


def check_register_calls(calls: Sequence[TimedCall], *, initial: Hashable = None) -> Verdict:
    numbers: dict[Hashable, int] = {initial: 0}
    values, invoked, completed = [0], [INITIAL], [INITIAL]
    writes: list[int] = []
    written: set[int] = {0}
    for position, (call, begin, end, _) in enumerate(calls):
        if call.function == "write":
            value = numbers.setdefault(call.argument, len(numbers))
            if value in written:
                return unknown(f"{call.argument!r} is written twice")
            written.add(value)
            writes.append(position + 1)
        elif call.function == "read":
            value = numbers.setdefault(call.result, len(numbers))
        else:
            return unknown(f"{call.function} is neither read nor write")
        values.append(value)
        invoked.append(begin)
        completed.append(end)
    if len(written) < len(numbers):
        names = list(numbers)
        missing = next(number for number in range(len(names)) if number not in written)
        readers = tuple(calls[p - 1][3] for p in range(1, len(values)) if values[p] == missing)
        return invalid(Anomaly("unwritten-read", f"nobody wrote {names[missing]!r}", readers[:4]))
    verdict = check_register_columns(values, invoked, completed, [0, *writes])
    indexes = [-1, *(timed[3] for timed in calls)]
    if verdict.certificate is not None:
        certificate = certificate_of(values, invoked, completed, [0, *writes], indexes)
        return valid(certificate=certificate)
    shown = tuple(
        Anomaly(a.kind, a.description, tuple(indexes[p] for p in a.operations if p))
        for a in verdict.anomalies
    )
    return invalid(*shown)


def check_register_columns(
    values: Sequence[int],
    invoked: Sequence[int],
    completed: Sequence[int],
    writes: Sequence[int],
) -> Verdict:
    """The decision on columns: dense value numbers, each of which one operation of `writes` wrote.

    A write that nobody read and that never completed may be left in: it constrains nothing.
    The certificate is the order of the values.
    """
    count = len(writes)
    first = [NEVER] * count
    last = [INITIAL - 1] * count
    for value, begin, end in zip(values, invoked, completed, strict=True):
        if end < first[value]:
            first[value] = end
        if begin > last[value]:
            last[value] = begin
    for write in writes:
        value = values[write]
        if first[value] < invoked[write]:
            return read_early(values, completed, write, first[value])
    # A write that was never completed nor read has f = NEVER: it happened after everything.
    forward = sorted(value for value in range(count) if first[value] < last[value])
    forward.sort(key=first.__getitem__)
    starts = [first[value] for value in forward]
    ends = running_maximum(last[value] for value in forward)
    for position in range(1, len(forward)):
        if starts[position] < ends[position - 1]:
            both = (forward[position - 1], forward[position])
            return clash("two values were held at once", values, writes, both)
    for value in range(count):
        if last[value] < first[value]:
            # The forward zone that begins last before this backward one begins.
            position = bisect_right(starts, last[value]) - 1
            if position >= 0 and first[value] < ends[position]:
                both = (forward[position], value)
                return clash("one value came while another was held", values, writes, both)
    return valid(certificate=(first, last))


def read_early(values: Sequence[int], completed: Sequence[int], write: int, end: int) -> Verdict:
    reader = next(p for p in range(len(values)) if completed[p] == end)
    return invalid(
        Anomaly("read-before-write", "a value was read before its write began", (reader, write))
    )


def clash(
    text: str, values: Sequence[int], writes: Sequence[int], both: tuple[int, int]
) -> Verdict:
    shown = [next(w for w in writes if values[w] == value) for value in both]
    more = [p for p in range(len(values)) if values[p] in both and p not in shown]
    return invalid(Anomaly("overlapping-values", text, (*shown, *more[:6])))


def certificate_of(
    values: Sequence[int],
    invoked: Sequence[int],
    completed: Sequence[int],
    writes: Sequence[int],
    indexes: Sequence[int],
) -> Certificate:
    """Clusters in the order of their zones; points by running maximum of invocations."""
    count = len(writes)
    members: list[list[int]] = [[] for _ in range(count)]
    first, last = [NEVER] * count, [INITIAL - 1] * count
    for position, value in enumerate(values):
        members[value].append(position)
        first[value] = min(first[value], completed[position])
        last[value] = max(last[value], invoked[position])
    zones = sorted((first[v], last[v]) for v in range(count) if first[v] < last[v])
    starts = [start for start, _ in zones]

    def place(value: int) -> int:
        """Forward: where it begins. Backward: its first instant outside the forward zones."""
        if first[value] < last[value]:
            return first[value]
        position = bisect_right(starts, last[value]) - 1
        return max(last[value], zones[position][1]) if position >= 0 else last[value]

    order: list[int] = []
    wrote = {values[write]: write for write in writes}
    for value in sorted(range(count), key=place):
        reads = sorted((p for p in members[value] if p != wrote[value]), key=invoked.__getitem__)
        order.append(wrote[value])
        order.extend(reads)
    points = running_maximum(invoked[p] for p in order)
    kept = [(indexes[p], point) for p, point in zip(order, points, strict=True) if indexes[p] >= 0]
    return placed([number for number, _ in kept], [point for _, point in kept])


__all__ = ["check_register", "check_register_calls", "check_register_columns"]
