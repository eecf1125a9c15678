"""RULES F1: a node with thousands of logs is not held by garbage collections."""

from __future__ import annotations

from logboat.node.long_lived import LOGS_AT_ONCE, Settling


def settled_at(*counts: int) -> list[int]:
    found: list[int] = []
    now = 0
    settling = Settling(lambda: found.append(now))
    for now in counts:
        settling.on_logs(now)
    return found


def test_few_logs_are_left_to_the_collector() -> None:
    assert settled_at(*range(LOGS_AT_ONCE)) == []


def test_logs_are_left_out_as_they_come() -> None:
    times = [LOGS_AT_ONCE * number for number in (1, 2, 3, 4)]
    assert settled_at(*range(0, times[-1] + 1, 10)) == times


def test_topics_that_come_and_go_leave_nothing_out_anew() -> None:
    """It would be lost for good, each time."""
    many = 10 * LOGS_AT_ONCE
    assert settled_at(many, *[0, many] * 50) == [many]
