"""The general check: partitions side by side, then the smallest failing part of the history."""

from __future__ import annotations

import gc
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from ...history import NEVER, History
from ..verdict import Anomaly, Status, Verdict, invalid, unknown, valid
from .models import Model, calls_of
from .search import Search, Stuck, TimedCall

FIRST_SLICE = 512
LEAST_COMPLETED_SHARE = 20
"""One operation in so many must have completed for VALID to mean something."""
GROWTH = 8
"""Slices grow slowly: what the legal partitions run in the last round is wasted."""
STEPS_TO_MINIMISE = 200_000
"""Work spent on making a failing history small; beyond it the smallest so far is shown."""


@contextmanager
def without_garbage_collector() -> Iterator[None]:
    """Searches allocate millions of tuples and no cycles; the collector would walk them all."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def check_linearizable(
    history: History, model: Model, *, step_limit: int | None = None, minimise: bool = True
) -> Verdict:
    """VALID with the order of each partition as certificate; INVALID with the failing part.

    UNKNOWN when `step_limit` steps of search did not suffice. A VALID that says nothing about the
    system, since nothing in the history could have failed, reports `too-weak`.
    """
    calls = calls_of(history, model)
    with without_garbage_collector():
        verdict = check_calls(calls, model, step_limit, minimise)
    if verdict.status is Status.VALID and too_weak(calls, model):
        weak = Anomaly("too-weak", "hardly an operation in it could have shown a fault")
        return valid(certificate=verdict.certificate, reported=(weak,))
    return verdict


def too_weak(calls: Sequence[TimedCall], model: Model) -> bool:
    """Nothing completed that can be illegal, or nearly everything is indeterminate (case C03)."""
    completed = [call for call, _, end, _ in calls if end != NEVER]
    return not any(not model.cannot_fail(call) for call in completed) or len(
        completed
    ) * LEAST_COMPLETED_SHARE < len(calls)


def check_calls(
    calls: Sequence[TimedCall], model: Model, step_limit: int | None, minimise: bool
) -> Verdict:
    partitions: dict[Hashable, list[TimedCall]] = {}
    for timed in calls:
        partitions.setdefault(model.partition(timed[0]), []).append(timed)
    certificate: dict[Hashable, tuple[int, ...]] = {}
    waiting = [(key, Search(part, model)) for key, part in partitions.items()]
    budget, spent = FIRST_SLICE, 0
    # Round-robin with growing slices: the one illegal partition is often cheap to refute, while
    # a legal one may take all the memory there is.
    while waiting:
        undecided = []
        for key, search in waiting:
            answer = search.run(budget)
            spent += budget
            if answer is False:
                return failure(search, model, key, minimise)
            if answer is None:
                undecided.append((key, search))
            else:
                assert search.order is not None
                certificate[key] = search.order
        if undecided and step_limit is not None and spent > step_limit:
            return unknown(f"no answer within {step_limit} steps of search")
        waiting = undecided
        budget += budget // GROWTH
    return valid(certificate=certificate)


def failure(search: Search, model: Model, key: Hashable, minimise: bool) -> Verdict:
    stuck = search.stuck
    assert stuck is not None, "a search fails only at a completion"
    part = shortest_failing(search.calls, model) if minimise else list(search.calls)
    operations = tuple(sorted(timed[3] for timed in part))
    where = "" if key is None else f" of {key!r}"
    calls = {timed[3]: timed[0] for timed in search.calls}
    return invalid(
        Anomaly(
            kind="not-linearizable",
            description=(
                f"no order{where} explains these {len(part)} operations; the best attempt placed "
                f"{len(stuck.placed)} and could not place {calls[stuck.blocked]} "
                f"in state {shown(stuck.state)}"
            ),
            operations=operations,
            details={"partition": key, "stuck": stuck},
        )
    )


def shown(state: Hashable) -> str:
    text = repr(state)
    return text if len(text) <= 120 else f"{text[:60]}...{text[-57:]}"


def fails(calls: Sequence[TimedCall], model: Model, budget: int) -> tuple[bool, int]:
    search = Search(calls, model)
    return search.run(budget) is False, search.steps


def shortest_failing(calls: Sequence[TimedCall], model: Model) -> list[TimedCall]:
    """The smallest part found that is impossible *whatever the left-out operations did*.

    Leaving an operation out means: a call that only looks is dropped; any other may have happened
    at any time or never (it becomes a crashed one invoked at the beginning). So what is left
    fails by itself and not because its explanation was cut away.
    """
    budget = STEPS_TO_MINIMISE
    prefix = shortest_failing_prefix(calls, model, budget)
    kept = dict(enumerate(prefix))
    free: dict[int, TimedCall] = {}
    # Late operations matter most: try to leave out the early ones first.
    for number in sorted(kept, key=lambda n: kept[n][1]):
        timed = kept.pop(number)
        call, _, _, index = timed
        if not model.looks_only(call):
            free[number] = (call, -1, NEVER, index)
        still, steps = fails([*free.values(), *kept.values()], model, min(budget, 20_000))
        budget -= steps + len(kept)
        if not still:
            kept[number] = timed
            free.pop(number, None)
        if budget <= 0:
            break
    return list(kept.values())


def shortest_failing_prefix(
    calls: Sequence[TimedCall], model: Model, budget: int
) -> list[TimedCall]:
    """Cut after the first event that makes it impossible: prefixes of legal ones are legal."""
    ends = sorted(completed for _, _, completed, _ in calls if completed != NEVER)
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        failed, _ = fails(cut(calls, ends[middle]), model, budget)
        if failed:
            high = middle
        else:
            low = middle + 1
    shortest = cut(calls, ends[low])
    return shortest if fails(shortest, model, budget)[0] else list(calls)


def cut(calls: Sequence[TimedCall], end: int) -> list[TimedCall]:
    """The history as it stood right after the event at `end`."""
    return [
        (call, invoked, completed if completed <= end else NEVER, index)
        for call, invoked, completed, index in calls
        if invoked <= end
    ]


__all__ = ["Stuck", "check_calls", "check_linearizable", "shortest_failing"]
