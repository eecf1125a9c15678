"""RULES F1: what lives long is left out of full collections, and paid for once."""

from __future__ import annotations

import gc
import sys

import pytest

from logboat.node import __main__ as program
from logboat.node.long_lived import OBJECTS_AT_ONCE, OBJECTS_OF_A_LOG, LongLived

LOGS_AT_ONCE = OBJECTS_AT_ONCE // OBJECTS_OF_A_LOG


def test_it_is_done_whenever_so_much_more_than_ever_is_there() -> None:
    counts = [
        10,
        LOGS_AT_ONCE,
        LOGS_AT_ONCE + 1,
        2 * LOGS_AT_ONCE - 1,
        2 * LOGS_AT_ONCE,
        # Topics that come and go are collected as anything else.
        5,
        2 * LOGS_AT_ONCE,
        3 * LOGS_AT_ONCE,
    ]
    told = iter(counts)
    living = LongLived(logs=lambda: next(told), assignments=lambda: 0, work=lambda: 0)
    assert [count for count in counts if living.has_grown()] == [
        LOGS_AT_ONCE,
        2 * LOGS_AT_ONCE,
        3 * LOGS_AT_ONCE,
    ]


def test_assignments_and_the_work_on_them_count_before_their_logs_are_open() -> None:
    assigned = work = 0
    living = LongLived(logs=lambda: 0, assignments=lambda: assigned, work=lambda: work)
    assert not living.has_grown()
    assigned = OBJECTS_AT_ONCE
    assert living.has_grown()
    assert not living.has_grown()
    work = OBJECTS_AT_ONCE
    assert living.has_grown()
    assert not living.has_grown()


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="has no generations of this kind")
def test_the_collector_asks_when_it_has_been_through_what_is_young() -> None:
    asked: list[bool] = []
    # As a process does that is the node's alone.
    hooks = len(gc.callbacks)
    gc.disable()
    program._settle(lambda: asked.append(True) or len(asked) == 2)  # type: ignore[func-returns-value]
    try:
        gc.unfreeze()
        gc.collect(0)
        gc.collect(2)
        assert not asked
        gc.collect(1)
        assert len(asked) == 1
        assert gc.get_freeze_count() == 0
        gc.collect(1)
        assert gc.get_freeze_count() > 0
    finally:
        del gc.callbacks[hooks:]
        gc.enable()
        gc.unfreeze()
