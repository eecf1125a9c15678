"""Fast checkers against the general search, and both against the definition."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.jepsen_style.checkers import Status, Verdict
from logboat.jepsen_style.checkers.linearizability import check_linearizable, model_named
from logboat.jepsen_style.checkers.linearizability.brute_force import linearizable_by_trying
from logboat.jepsen_style.checkers.linearizability.models import calls_of
from logboat.jepsen_style.checkers.polynomial import (
    Certificate,
    LogHistory,
    check_log,
    check_queue,
    check_register,
    check_set,
)
from logboat.jepsen_style.history import History
from logboat.jepsen_style.mutants.objects import object_history

SEQUENTIAL_OBJECTS = (
    "register",
    "cas-register",
    "mutex",
    "key-value",
    "queue",
    "stack",
    "linearizable set",
    "linearizable set of snapshots",
    "log",
    "topics",
)
POLYNOMIAL: dict[str, Callable[[History], Verdict]] = {
    "register": check_register,
    "queue": check_queue,
    "linearizable set": check_set,
    "linearizable set of snapshots": check_set,
    "log": lambda history: check_log(LogHistory.of(history), gaps=False),
}
SEEDS = st.integers(min_value=0, max_value=2**40)


@pytest.mark.parametrize("name", SEQUENTIAL_OBJECTS)
def test_general_search_agrees_with_the_definition(name: str) -> None:
    @settings(max_examples=120, deadline=None, database=None, derandomize=True)
    @given(seed=SEEDS, operations=st.integers(1, 7), corrupted=st.booleans())
    def agree(seed: int, operations: int, corrupted: bool) -> None:
        random = Random(seed)
        history = object_history(name, random, operations=operations, corrupted=corrupted)
        model = model_named(name)
        expected = linearizable_by_trying(calls_of(history, model), model)
        verdict = check_linearizable(history, model)
        assert (verdict.status is Status.VALID) == expected
        if not corrupted:
            assert expected

    agree()


@pytest.mark.parametrize("name", POLYNOMIAL)
def test_polynomial_checker_agrees_with_the_general_search_and_proves_it(name: str) -> None:
    @settings(max_examples=250, deadline=None, database=None, derandomize=True)
    @given(seed=SEEDS, operations=st.integers(2, 14), corrupted=st.booleans())
    def agree(seed: int, operations: int, corrupted: bool) -> None:
        random = Random(seed)
        clients = random.randrange(2, 6)
        history = object_history(
            name, random, operations=operations, clients=clients, corrupted=corrupted
        )
        model = model_named(name)
        expected = check_linearizable(history, model, minimise=False)
        verdict = POLYNOMIAL[name](history)
        if verdict.status is Status.UNKNOWN:
            return
        assert verdict.status is expected.status, verdict.reason
        if verdict.status is Status.VALID:
            proof = certificate_in(verdict)
            assert proof.quarrel(calls_of(history, model), model) is None

    agree()


def certificate_in(verdict: Verdict) -> Certificate:
    found = verdict.certificate
    if not isinstance(found, Certificate):
        found = found.certificate()
    assert isinstance(found, Certificate)
    return found
