"""The fewest operations that no order explains, *whatever the left-out operations did*.

What counts is the history up to the first completion that makes it impossible: nothing invoked
later can explain what was answered by then. Leaving an operation out of it means: a call that only
looks is dropped; any other may have happened at any time or never. So what is left fails by itself,
and not because its explanation was cut away; and leaving out only ever allows more. Three steps
follow from that:

1. The shortest failing prefix, by bisection. The operation that completes last in it belongs to
   every failing part: without its answer the prefix is a legal one.
2. One pass that tries to leave out each other operation. Of what stays none can be left out.
3. Every smaller choice, by size. When all were tried, no smaller part fails.

Each step stops when its steps of search are used up, and `Minimality` says how far it came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from ...history import NEVER
from .models import Call, Illegal, Model, State
from .search import Search, TimedCall

STEPS_TO_LEAVE_OUT = 200_000
STEPS_TO_PROVE = 200_000
STEPS_PER_TRIAL = 50_000


class Minimality(Enum):
    """What is known about a failing part."""

    PROVEN = "no fewer fail: each smaller choice was tried"
    IRREDUCIBLE = "none of them can be left out"
    OPEN = "fewer may do: the search for them ended early"
    WHOLE = "nothing was left out"


@dataclass(frozen=True, slots=True)
class FailingPart:
    calls: tuple[TimedCall, ...]
    minimality: Minimality


class Trials:
    """Asks whether parts of one failing history fail, with a budget."""

    def __init__(self, calls: Sequence[TimedCall], model: Model, steps: int) -> None:
        self._calls, self._model, self._left = calls, model, steps

    @property
    def exhausted(self) -> bool:
        return self._left <= 0

    def fail(self, kept: frozenset[int]) -> bool | None:
        """Whether the kept ones (by position) fail by themselves; None: not known in time."""
        left_out = [timed[0] for place, timed in enumerate(self._calls) if place not in kept]
        free = [call for call in left_out if not self._model.looks_only(call)]
        part = [self._calls[position] for position in sorted(kept)]
        answer, steps = explained(part, free, self._model, min(STEPS_PER_TRIAL, self._left))
        self._left -= steps + len(self._calls)
        return None if answer is None else not answer


def explained(
    kept: Sequence[TimedCall], free: Sequence[Call], model: Model, steps: int
) -> tuple[bool | None, int]:
    """Whether an order exists for the kept calls, with any of the free ones at any time; and the
    steps it took. Few calls are kept and many are free, so places that used the fewest free ones
    are looked at first: one that used more to get to the same state has no more ways on.
    """
    queue = deque([(0, model.initial, 0)])
    smallest: dict[tuple[int, State], list[int]] = {}
    taken = 0
    while queue:
        placed, state, used = queue.popleft()
        left = [number for number in range(len(kept)) if not placed >> number & 1]
        if all(kept[number][2] == NEVER for number in left):
            return True, taken
        before = smallest.setdefault((placed, state), [])
        if any(fewer & used == fewer for fewer in before):
            continue
        before.append(used)
        first_end = min(kept[number][2] for number in left)
        for number in left:
            if kept[number][1] < first_end:
                taken += 1
                after = model.step(state, kept[number][0])
                if not isinstance(after, Illegal):
                    queue.appendleft((placed | 1 << number, after, used))
        tried = set()
        for number, call in enumerate(free):
            if not used >> number & 1 and call not in tried:
                tried.add(call)
                taken += 1
                after = model.step(state, call)
                if not isinstance(after, Illegal) and after != state:
                    queue.append((placed, after, used | 1 << number))
        if taken > steps:
            return None, taken
    return False, taken


def whole(calls: Sequence[TimedCall]) -> FailingPart:
    return FailingPart(tuple(calls), Minimality.WHOLE)


def shortest_failing(calls: Sequence[TimedCall], model: Model) -> FailingPart:
    """Of calls that are not linearizable."""
    prefix = shortest_failing_prefix(calls, model)
    if prefix is None:
        kept, _ = leave_out(calls, model, frozenset())
        return FailingPart(tuple(calls[position] for position in sorted(kept)), Minimality.OPEN)
    last = max(range(len(prefix)), key=lambda place: completion(prefix[place]))
    kept, certain = leave_out(prefix, model, frozenset({last}))
    minimality = Minimality.IRREDUCIBLE if certain else Minimality.OPEN
    smaller = smallest(prefix, model, last, below=len(kept))
    if smaller is not None:
        kept, minimality = smaller or kept, Minimality.PROVEN
    return FailingPart(tuple(prefix[position] for position in sorted(kept)), minimality)


def completion(timed: TimedCall) -> int:
    """-1 for a call that never completed."""
    return -1 if timed[2] == NEVER else timed[2]


def leave_out(
    calls: Sequence[TimedCall], model: Model, needed: frozenset[int]
) -> tuple[frozenset[int], bool]:
    """What stays when each operation not needed is tried in turn; False when time was short."""
    trials = Trials(calls, model, STEPS_TO_LEAVE_OUT)
    kept, certain = frozenset(range(len(calls))), True
    # Late operations matter most: try to leave out the early ones first.
    for position in sorted(kept - needed, key=lambda place: calls[place][1]):
        if trials.exhausted:
            return kept, False
        still_fails = trials.fail(kept - {position})
        if still_fails:
            kept -= {position}
        certain = certain and still_fails is not None
    return kept, certain


def smallest(
    calls: Sequence[TimedCall], model: Model, last: int, *, below: int
) -> frozenset[int] | None:
    """The smallest failing part of fewer than `below` operations; empty when there is none; None
    when not every smaller choice could be tried.
    """
    trials = Trials(calls, model, STEPS_TO_PROVE)
    others = [position for position in range(len(calls)) if position != last]
    for size in range(1, below):
        for chosen in combinations(others, size - 1):
            if trials.exhausted:
                return None
            kept = frozenset((last, *chosen))
            fails = trials.fail(kept)
            if fails is None:
                return None
            if fails:
                return kept
    return frozenset()


def shortest_failing_prefix(calls: Sequence[TimedCall], model: Model) -> list[TimedCall] | None:
    """Cut after the first completion that makes it impossible: prefixes of legal ones are legal.
    None when that could not be found in time.
    """
    ends = sorted(completed for _, _, completed, _ in calls if completed != NEVER)
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        answer, _ = linearizable(cut(calls, ends[middle]), model, STEPS_TO_LEAVE_OUT)
        if answer is None:
            return None
        if answer:
            low = middle + 1
        else:
            high = middle
    return cut(calls, ends[low])


def cut(calls: Sequence[TimedCall], end: int) -> list[TimedCall]:
    """The history as it stood right after the event at `end`."""
    return [
        (call, invoked, completed if completed <= end else NEVER, index)
        for call, invoked, completed, index in calls
        if invoked <= end
    ]


def linearizable(calls: Sequence[TimedCall], model: Model, steps: int) -> tuple[bool | None, int]:
    """The search's answer within so many steps, and how many it took."""
    search = Search(calls, model)
    return search.run(steps), search.steps
