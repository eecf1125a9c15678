"""A FIFO queue whose values are enqueued once each: four patterns that no legal history has.

1. A value is dequeued that nobody enqueued, or before its enqueue began.
2. A value is dequeued twice.
3. a was enqueued before b (completed before b's began), and b dequeued before a, or b dequeued
   and a never.
4. A dequeue found the queue empty although, at every instant of it, some value was certainly
   there: from the completion of its enqueue to the invocation of its dequeue. The values may take
   turns.

Henzinger, Sezgin & Vafeiadis (CONCUR 2013) show that a complete history without these is
linearizable. Each is one sweep: n log n. The certificate builds the order: the empty answers cut
the history into parts, each value belongs to the first part that it must be gone by, and within a
part a value may go next when nothing left was enqueued, or dequeued, wholly before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from ...history import NEVER, History
from ..linearizability.models import UNKNOWN_RESULT, calls_of
from ..linearizability.models import Sequence as QueueModel
from ..linearizability.search import TimedCall
from ..verdict import Anomaly, Verdict, invalid, unknown, valid
from .certificate import Certificate, placed


@dataclass(slots=True)
class Life:
    """One value: when it was enqueued and dequeued. `dequeued` None: never."""

    enqueued: tuple[int, int, int]
    dequeued: tuple[int, int, int] | None = None


def check_queue(history: History) -> Verdict:
    """UNKNOWN when a value is enqueued twice, or when a dequeue with an unknown answer may have
    taken one of the values that are left.
    """
    return check_queue_calls(calls_of(history, QueueModel(last_in_first_out=False)))


def check_queue_calls(calls: Sequence[TimedCall]) -> Verdict:
    lives: dict[Hashable, Life] = {}
    empties: list[tuple[int, int, int]] = []
    unknown_takes = 0
    for call, begin, end, number in calls:
        if call.function == "add":
            if call.argument in lives:
                return unknown(f"{call.argument!r} is enqueued twice")
            lives[call.argument] = Life((begin, end, number))
    for call, begin, end, number in calls:
        if call.function == "empty":
            empties.append((begin, end, number))
        elif call.function == "take":
            if call.result == UNKNOWN_RESULT:
                unknown_takes += 1
                continue
            life = lives.get(call.result)
            if life is None:
                return invalid(Anomaly("phantom", f"nobody enqueued {call.result!r}", (number,)))
            if life.dequeued is not None:
                both = (life.dequeued[2], number)
                return invalid(Anomaly("repeated-take", f"{call.result!r} was taken twice", both))
            life.dequeued = (begin, end, number)
            if end < life.enqueued[0]:
                both = (life.enqueued[2], number)
                return invalid(Anomaly("phantom", f"{call.result!r} was taken too early", both))
    left = [life for life in lives.values() if life.dequeued is None]
    if unknown_takes and left:
        return unknown("a dequeue without an answer may have taken any value that is left")
    settled = []
    for life in lives.values():
        begin, end, number = life.enqueued
        if life.dequeued is not None:
            # Taken, so it was enqueued by then, whatever its own answer says.
            settled.append(Life((begin, min(end, life.dequeued[1]), number), life.dequeued))
        elif end != NEVER:
            settled.append(life)
    problem = out_of_order(settled) or seen_empty(settled, empties)
    if problem is not None:
        return invalid(problem)
    return valid(certificate=QueueCertificate(settled, empties))


def out_of_order(lives: list[Life]) -> Anomaly | None:
    """a enqueued wholly before b, and b dequeued wholly before a (or a never)."""
    by_begin = sorted(lives, key=lambda life: life.enqueued[0])
    by_end = sorted(lives, key=lambda life: life.enqueued[1])
    # Among the values enqueued before b: the one whose dequeue begins last.
    latest: Life | None = None
    position = 0
    for life in by_begin:
        while by_end[position].enqueued[1] < life.enqueued[0]:
            candidate = by_end[position]
            if latest is None or taken_from(candidate) > taken_from(latest):
                latest = candidate
            position += 1
        if latest is None or life.dequeued is None:
            continue
        if life.dequeued[1] < taken_from(latest):
            shown = [latest.enqueued[2], life.enqueued[2], life.dequeued[2]]
            if latest.dequeued is not None:
                shown.append(latest.dequeued[2])
            text = "a value overtook one that was enqueued before it"
            return Anomaly("out-of-order", text, tuple(shown))
    return None


def taken_from(life: Life) -> int:
    return NEVER if life.dequeued is None else life.dequeued[0]


def seen_empty(lives: list[Life], empties: list[tuple[int, int, int]]) -> Anomaly | None:
    """A dequeue that answered empty, covered by the certain presence of values."""
    spans = sorted(
        (life.enqueued[1], taken_from(life))
        for life in lives
        if life.enqueued[1] < taken_from(life)
    )
    starts, ends = unions(spans)
    for begin, end, number in empties:
        position = bisect_right(starts, begin) - 1
        if position >= 0 and ends[position] > end:
            text = "the queue was found empty while some value was certainly in it"
            return Anomaly("wrong-empty", text, (number,))
    return None


def unions(spans: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Starts and ends: where one value is certain before the last one may go, they are one."""
    starts: list[int] = []
    ends: list[int] = []
    for start, end in spans:
        if ends and start < ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends


class QueueCertificate:
    """The order, built only when asked for."""

    def __init__(self, lives: list[Life], empties: list[tuple[int, int, int]]) -> None:
        self._lives, self._empties = lives, empties

    def certificate(self) -> Certificate:
        spans = sorted(
            (life.enqueued[1], taken_from(life))
            for life in self._lives
            if life.enqueued[1] < taken_from(life)
        )
        starts, ends = unions(spans)
        # An instant of each empty answer at which no value is certain.
        instants = []
        for begin, _, number in self._empties:
            position = bisect_right(starts, begin) - 1
            inside = position >= 0 and ends[position] > begin
            instants.append((ends[position] if inside else begin, number))
        instants.sort()
        steps: list[tuple[int, int]] = []  # (number, point)
        left = sorted(self._lives, key=lambda life: gone_by(life))
        latest, position = -1, 0
        for instant, number in [*instants, (NEVER, -1)]:
            part = []
            while position < len(left) and gone_by(left[position]) <= instant:
                part.append(left[position])
                position += 1
            latest = place_values(part, latest, steps)
            if number >= 0:
                latest = max(latest, instant)
                steps.append((number, latest))
        return placed([step[0] for step in steps], [step[1] for step in steps])


def gone_by(life: Life) -> int:
    """From here on the value must have been enqueued and, at an empty answer, be gone."""
    return min(life.enqueued[1], NEVER if life.dequeued is None else life.dequeued[1])


def place_values(part: list[Life], latest: int, steps: list[tuple[int, int]]) -> int:
    """Order one part's values and lay their steps out by running maximum; returns its end."""
    order = []
    left = list(part)
    while left:
        first_in = min(life.enqueued[1] for life in left)
        first_out = min(taken_until(life) for life in left)
        following = next(
            life
            for life in left
            if life.enqueued[0] < first_in
            # What is never taken comes after all that is.
            and (taken_from(life) < first_out or first_out == NEVER)
        )
        left.remove(following)
        order.append(following)
    # Both rows keep the order; merge them by their earliest points, an enqueue before its dequeue.
    laid: list[tuple[int, int, int]] = []
    into = out = latest
    for rank, life in enumerate(order):
        into = max(into, life.enqueued[0])
        laid.append((into, 2 * rank, life.enqueued[2]))
        if life.dequeued is not None:
            out = max(out, into, life.dequeued[0])
            laid.append((out, 2 * rank + 1, life.dequeued[2]))
    laid.sort()
    for point, _, number in laid:
        steps.append((number, point))
        latest = max(latest, point)
    return latest


def taken_until(life: Life) -> int:
    return NEVER if life.dequeued is None else life.dequeued[1]


__all__ = ["check_queue", "check_queue_calls"]
