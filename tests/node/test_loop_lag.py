"""Loop lag: a stall is seen by its weight, and memory does not grow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from logboat.node.loop_lag import INTERVAL_S, WINDOWS, LoopLag


class HandLoop:
    """A loop whose clock a test moves; the one timer runs when told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due = 0.0
        self.call: Callable[[], None] = lambda: None

    def time(self) -> float:
        return self.now

    def call_at(self, due: float, call: Callable[[], None]) -> None:
        self.due, self.call = due, call

    def tick(self, late_s: float = 0.0) -> None:
        self.now = self.due + late_s
        self.call()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> HandLoop:
    hand = HandLoop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: hand)
    return hand


def test_nothing_measured_is_no_lag() -> None:
    assert LoopLag().summary().p999_s == LoopLag().largest_s == 0.0


def test_a_quantile_is_rounded_up_by_a_quarter_at_most_and_never_beyond_the_largest(
    loop: HandLoop,
) -> None:
    lag = LoopLag()
    lag.start()
    for number in range(1000):
        loop.tick(0.02 if number % 50 == 0 else 0.001)
    summary = lag.summary()
    assert summary.samples == 1000
    assert 0.001 <= summary.p50_s <= 0.00125
    assert summary.p99_s == summary.largest_s == pytest.approx(0.02)


def test_a_long_stall_weighs_as_many_ticks_as_it_swallowed(loop: HandLoop) -> None:
    lag = LoopLag()
    lag.start()
    for _ in range(90):
        loop.tick()
    loop.tick(0.95)
    assert lag.summary().samples == 100
    assert lag.quantile_s(0.95) > 0.3
    # The next is due on the same grid.
    assert loop.due == pytest.approx(101 * INTERVAL_S)


def test_what_is_older_than_some_minutes_is_forgotten(loop: HandLoop) -> None:
    lag = LoopLag()
    lag.start()
    loop.tick(0.5)
    for _ in range(WINDOWS * 601):
        loop.tick()
    assert lag.largest_s < 0.001
    assert lag.summary().samples <= WINDOWS * 601


def test_a_pause_of_a_night_does_not_keep_the_loop_counting(loop: HandLoop) -> None:
    lag = LoopLag()
    lag.start()
    loop.tick(36_000)
    assert lag.summary().samples <= 602
    assert loop.now <= loop.due <= loop.now + INTERVAL_S
