"""A failure is shown by the fewest operations, and the report says whether that is proven."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.jepsen_style.checkers.linearizability import check_linearizable, model_named, shortest
from logboat.jepsen_style.checkers.linearizability.models import Call, Register, calls_of
from logboat.jepsen_style.checkers.linearizability.shortest import (
    Minimality,
    Trials,
    shortest_failing,
    shortest_failing_prefix,
)
from logboat.jepsen_style.history import NEVER
from logboat.jepsen_style.mutants.objects import object_history


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(seed=st.integers(0, 2**40), name=st.sampled_from(["register", "queue", "log", "mutex"]))
def test_no_smaller_choice_of_a_failing_history_fails(seed: int, name: str) -> None:
    history = object_history(name, Random(seed), operations=7, corrupted=True)
    model = model_named(name)
    calls = calls_of(history, model)
    if check_linearizable(history, model, minimise=False).anomalies == ():
        return
    part = shortest_failing(calls, model)
    assert part.minimality is Minimality.PROVEN
    # By the definition, and without the shortcuts of the search.
    prefix = shortest_failing_prefix(calls, model)
    assert prefix is not None
    trials = Trials(prefix, model, 10**9)
    everything = range(len(prefix))
    fewest = next(
        size
        for size in range(1, len(prefix) + 1)
        if any(trials.fail(frozenset(chosen)) for chosen in combinations(everything, size))
    )
    assert len(part.calls) == fewest


def long_ago_read() -> list[tuple[Call, int, int, int]]:
    """Forty writes one after another, and in their midst a read of one long overwritten."""
    calls = [(Call("write", value), 2 * value, 2 * value + 1, value) for value in range(40)]
    calls[20] = (Call("read", None, 3), 40, 41, 20)
    return calls


def test_stale_read_is_shown_with_the_two_writes_that_rule_it_out() -> None:
    part = shortest_failing(long_ago_read(), Register(None))
    assert part.minimality is Minimality.PROVEN
    functions = [timed[0].function for timed in part.calls]
    assert functions == ["write", "write", "read"]
    assert part.calls[0][0].argument == 3


def test_search_that_ends_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(shortest, "STEPS_TO_PROVE", 50)
    part = shortest_failing(long_ago_read(), Register(None))
    assert part.minimality is Minimality.IRREDUCIBLE
    monkeypatch.setattr(shortest, "STEPS_TO_LEAVE_OUT", 100)
    part = shortest_failing(long_ago_read(), Register(None))
    assert part.minimality is Minimality.OPEN
    assert any(timed[3] == 20 and timed[2] != NEVER for timed in part.calls)


def test_report_tells_where_the_search_got_stuck_and_that_the_part_is_the_smallest() -> None:
    failing = (
        object_history("register", Random(seed), operations=12, corrupted=True)
        for seed in range(100)
    )
    history = next(h for h in failing if check_linearizable(h, model_named("register")).anomalies)
    [anomaly] = check_linearizable(history, model_named("register")).anomalies
    assert Minimality.PROVEN.value in anomaly.description
    stuck = anomaly.details["stuck"]
    assert f"of operation {stuck.blocked} in state" in anomaly.description
    assert stuck.blocked not in stuck.placed
