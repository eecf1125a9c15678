"""Records that go by themselves, amid faults: those that may, and no others.

The right product stands these faults; each bug lets something go that was still promised.
"""

from __future__ import annotations

from io import BytesIO

import orjson
import pytest

from logboat.jepsen_style.cluster_scope.lifetime_controls import LIFETIME_BUGS
from logboat.jepsen_style.cluster_scope.run import run_schedule
from logboat.jepsen_style.history import Recorder
from logboat.jepsen_style.history.reading import parse_history
from logboat.jepsen_style.judge import judge_run
from logboat.jepsen_style.schedule import Consumers, Fault, Producers, Schedule, Target, Topic
from logboat.jepsen_style.schedule.generate import LIFETIME_SETTINGS

SHORT = {"min.insync.replicas": "2", "segment.ms": "200"}
BY_SIZE = Topic("events", 1, 3, {**SHORT, "retention.bytes": "3000", "retention.ms": "-1"})
BY_AGE = Topic("events", 1, 3, {**SHORT, "retention.ms": "800"})
STATES = Topic(
    "states", 1, 3, {**SHORT, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
)
SHORTER = Topic("states", 1, 3, {**STATES.configs, "segment.ms": "30"})
FORGETFUL = Topic("states", 1, 3, {**STATES.configs, "delete.retention.ms": "500"})


def deposed(topic: Topic) -> tuple[Fault, ...]:
    """A leader that reaches nobody goes on appending, and is cut back when it is among the others
    again; then a leader and a follower end, one after the other."""
    leader, follower = Target("leader", topic.name), Target("follower", topic.name)
    return (
        Fault(1_500, "isolate", leader, 2_000, {"clients": False}),
        Fault(3_900, "kill", leader, 1_000),
        Fault(5_000, "power-cut", follower, 700, {"keep": "none"}),
    )


def schedule(topic: Topic, *, keys: int = 5, count: int = 1) -> Schedule:
    hurt = deposed(topic)
    keyed = topic.name == "states"
    producers = (
        Producers(
            topic.name,
            count=count,
            idempotent=idempotent,
            batch_records=3,
            interval_ms=60,
            keys=keys if keyed else 0,
            tombstones=0.1 if keyed else 0.0,
        )
        for idempotent in (True, False)
    )
    lag = {"min.insync.replicas": "2", "replica.lag.time.max.ms": "1500"}
    return Schedule(
        seed=1,
        nodes=3,
        topics=(topic,),
        producers=tuple(producers),
        consumers=(Consumers(topic.name),),
        faults=hurt,
        settings={**lag, **LIFETIME_SETTINGS},
        hurt_ms=max(fault.at_ms + fault.for_ms for fault in hurt) + 500,
    )


SHOWN_BY = {
    "retention-beyond-the-watermark": schedule(BY_AGE),
    "retention-takes-one-more": schedule(BY_SIZE),
    "compaction-drops-the-latest": schedule(STATES),
    # Each has one batch with the leader that nobody hears, several segments of them; of so many
    # keys that a lost value is not written anew before anybody looks.
    "compaction-beyond-the-watermark": schedule(SHORTER, keys=150, count=4),
}


@pytest.mark.parametrize("topic", [BY_SIZE, BY_AGE, STATES, FORGETFUL])
def test_what_may_go_goes_and_nothing_else(topic: Topic) -> None:
    written = BytesIO()
    result = run_schedule(schedule(topic), floors=False, recorder=Recorder(written))
    assert result.violations == []
    assert result.stuck == []
    # By itself the history says what was promised, and what may be missing.
    judgement = judge_run(parse_history(written.getvalue()))
    assert judgement.holds, judgement.verdict.reason
    assert judgement.kafka is not None
    assert judgement.kafka.promised[topic.name].compacted is (topic.name == "states")
    said = list(map(orjson.loads, written.getvalue().splitlines()))
    began = [event["value"]["before"] for event in said if event["f"] == "retention"]
    assert began == sorted(began)
    assert bool(began) is (topic.name == "events")


@pytest.mark.parametrize("bug", LIFETIME_BUGS)
def test_each_bug_that_lets_more_go_is_seen(bug: str) -> None:
    wrong = run_schedule(SHOWN_BY[bug], bug=bug, floors=False)
    assert wrong.violations != []
    assert not any("TypeError" in violation for violation in wrong.violations)
