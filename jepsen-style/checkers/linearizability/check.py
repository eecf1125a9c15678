"""The general check: partitions side by side, then the smallest failing part of the history."""

from __future__ import annotations

import gc
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from ...history import NEVER, History
from ..verdict import Anomaly, Status, Verdict, invalid, unknown, valid
from .models import Model, calls_of
from .search import Search, Stuck, TimedCall
from .shortest import shortest_failing, whole

FIRST_SLICE = 512
LEAST_COMPLETED_SHARE = 20
"""One operation in so many must have completed for VALID to mean something."""
GROWTH = 8
"""Slices grow slowly: what the legal partitions run in the last round is wasted."""


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
    part = shortest_failing(search.calls, model) if minimise else whole(search.calls)
    operations = tuple(sorted(timed[3] for timed in part.calls))
    where = "" if key is None else f" of {key!r}"
    calls = {timed[3]: timed[0] for timed in search.calls}
    return invalid(
        Anomaly(
            kind="not-linearizable",
            description=(
                f"no order{where} explains these {len(part.calls)} operations "
                f"({part.minimality.value}); the best attempt at all of them placed "
                f"{len(stuck.placed)} and could not place {calls[stuck.blocked]} "
                f"of operation {stuck.blocked} in state {shown(stuck.state)}"
            ),
            operations=operations,
            details={"partition": key, "stuck": stuck, "minimality": part.minimality},
        )
    )


def shown(state: Hashable) -> str:
    text = repr(state)
    return text if len(text) <= 120 else f"{text[:60]}...{text[-57:]}"


__all__ = ["Stuck", "check_calls", "check_linearizable"]
