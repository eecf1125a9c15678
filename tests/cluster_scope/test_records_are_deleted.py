"""Heads of partitions are deleted while leaders change: nothing else may go (KIP-107)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

import orjson
import pytest

from logboat.jepsen_style.cluster_scope.replacing import replaced
from logboat.jepsen_style.cluster_scope.run import run_schedule
from logboat.jepsen_style.history import Recorder
from logboat.jepsen_style.history.reading import parse_history
from logboat.jepsen_style.judge import judge_run
from logboat.jepsen_style.schedule import (
    Consumers,
    Fault,
    Group,
    Producers,
    Schedule,
    ScheduleError,
    Target,
    Topic,
    Trims,
)
from logboat.jepsen_style.simulation.scope import SeedResult
from logboat.partitions.storage import PartitionLog

TOPIC = Topic("orders", 1, 3, {"min.insync.replicas": "2", "segment.ms": "400"})
LEADER = Target("leader", TOPIC.name)
SCHEDULE = Schedule(
    seed=3,
    nodes=3,
    topics=(TOPIC,),
    producers=(Producers(TOPIC.name, batch_records=4, interval_ms=40),),
    consumers=(Consumers(TOPIC.name),),
    groups=(Group("readers", TOPIC.name),),
    trims=(Trims(TOPIC.name, keep_records=12, interval_ms=150),),
    faults=(
        Fault(800, "power-cut", LEADER, 1_200, {"keep": "none"}),
        Fault(2_300, "isolate", LEADER, 1_200),
    ),
    settings={"min.insync.replicas": "2", **Group("readers", TOPIC.name).settings},
    hurt_ms=3_600,
)


def run(schedule: Schedule) -> tuple[SeedResult, bytes]:
    written = BytesIO()
    result = run_schedule(schedule, floors=False, recorder=Recorder(written))
    return result, written.getvalue()


def test_what_is_not_below_the_offset_asked_for_stays_whoever_leads() -> None:
    result, written = run(SCHEDULE)
    assert result.violations == []
    assert result.stuck == []
    deleted = [
        event["value"]["before"]
        for event in map(orjson.loads, written.splitlines())
        if event["f"] == "delete-records"
    ]
    assert len(deleted) > 4
    assert deleted == sorted(deleted)
    # By itself the history excuses what was deleted, and nothing is missing otherwise.
    assert judge_run(parse_history(written)).holds


@contextlib.contextmanager
def deletes_too_much() -> Iterator[None]:
    def put(original: Callable[..., Any]) -> Callable[..., Any]:
        async def advance_log_start(self: PartitionLog, offset: int) -> None:
            await original(self, min(offset + 5, self.log_end_offset))

        return advance_log_start

    with replaced(PartitionLog, "advance_log_start", put):
        yield


def test_a_log_that_deletes_more_than_was_asked_for_is_seen() -> None:
    with deletes_too_much():
        result, _ = run(replace(SCHEDULE, faults=(), groups=(), hurt_ms=1_500))
    assert any("no longer holds offset" in violation for violation in result.violations)


def test_a_schedule_that_deletes_from_a_topic_that_is_not_made_is_refused() -> None:
    text = SCHEDULE.to_json().replace(b'"keep_records"', b'"keep_record"')
    with pytest.raises(ScheduleError, match="keep_record"):
        Schedule.from_json(text)
    assert Schedule.from_json(SCHEDULE.to_json()) == SCHEDULE
    text = SCHEDULE.to_json().replace(
        b'"topic": "orders",\n      "keep_records"', b'"topic": "others",\n      "keep_records"'
    )
    with pytest.raises(ScheduleError, match="others"):
        Schedule.from_json(text)
