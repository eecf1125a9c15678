"""The log checker beyond appends and reads: retention, retries, gaps, indeterminate appends."""

from __future__ import annotations

from typing import Any

import pytest

from logboat.jepsen_style.checkers import Status
from logboat.jepsen_style.checkers.polynomial import LogHistory, check_log
from logboat.jepsen_style.history import History, Outcome

Step = tuple[str, Any, Any]


def one_after_another(*steps: Step) -> LogHistory:
    """(function, argument, answer); the answers FAIL and INFO are outcomes."""
    history = History()
    for process, (function, argument, answer) in enumerate(steps):
        history.invoke(process, function, argument, 0)
        if answer in ("FAIL", "INFO"):
            history.complete(process, Outcome[answer], None, 0)
        else:
            history.complete(process, Outcome.OK, answer, 0)
    return LogHistory.of(history)


APPENDS: tuple[Step, ...] = (("append", "a", 0), ("append", "b", 1), ("append", "c", 2))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("start", None, 1), ("read", 0, "below-start"), ("read", 1, "b")], True),
        ([("start", None, 1), ("read", 0, "a")], False),
        ([("read", 1, "below-start"), ("start", None, 1)], False),
        ([("read", 1, "below-start"), ("start", None, 2)], True),
        ([("start", None, 2), ("start", None, 1)], False),
        ([("start", None, 3), ("end", None, 3)], True),
    ],
)
def test_log_start_only_moves_up(steps: list[Step], expected: bool) -> None:
    verdict = check_log(one_after_another(*APPENDS, *steps))
    assert (verdict.status is Status.VALID) == expected


def test_start_above_the_end_is_impossible() -> None:
    log = one_after_another(("append", "a", 0), ("start", None, 2), ("append", "b", 1))
    assert check_log(log).status is Status.INVALID


def test_retry_may_land_twice_only_without_idempotence() -> None:
    log = one_after_another(("append", "a", 0), ("read", 0, "a"), ("read", 1, "a"))
    assert check_log(log).anomalies[0].kind == "duplicate"
    assert check_log(log, retries_duplicate=True).status is Status.VALID


def test_indeterminate_append_may_appear_at_any_time_or_never() -> None:
    log = one_after_another(
        ("append", "a", "INFO"), ("append", "b", 0), ("end", None, 1), ("read", 1, "a")
    )
    assert check_log(log).status is Status.VALID
    log = one_after_another(("append", "a", "INFO"), ("append", "b", 0), ("end", None, 1))
    assert check_log(log).status is Status.VALID


def test_failed_append_must_not_appear_and_nobody_s_value_neither() -> None:
    log = one_after_another(("append", "a", "FAIL"), ("read", 0, "a"))
    assert check_log(log).anomalies[0].kind == "G1a"
    assert check_log(one_after_another(("read", 0, "z"))).anomalies[0].kind == "phantom"


def test_gap_is_allowed_for_a_log_with_control_records_only() -> None:
    log = one_after_another(("append", "a", 0), ("append", "b", 2), ("end", None, 3))
    assert check_log(log).status is Status.VALID
    assert check_log(log, gaps=False).anomalies[0].kind == "missing-append"


def test_stale_read_of_the_end_is_named() -> None:
    log = one_after_another(*APPENDS, ("end", None, 2))
    verdict = check_log(log)
    assert verdict.status is Status.INVALID
    # Numbers of the append that had completed and of the read that missed it.
    assert {2, 3} & set(verdict.anomalies[0].operations)
