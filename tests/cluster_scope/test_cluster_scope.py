"""Scope `cluster`: fixed seeds are clean and replay exactly, a bug is seen, the command says it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from logboat.jepsen_style.__main__ import main
from logboat.jepsen_style.checkers.kafka import Mode
from logboat.jepsen_style.cluster_scope.controls import BUGS
from logboat.jepsen_style.cluster_scope.run import Plan, run_schedule
from logboat.jepsen_style.history import read_history
from logboat.jepsen_style.judge import judge_run
from logboat.jepsen_style.schedule import KINDS, Area, Schedule, generate
from logboat.jepsen_style.schedule.schedule import PROTOCOLS

LAST_LINE = re.compile(
    r"simulate: cluster seeds=1 violations=(\d) stuck=(\d) acknowledged=(\d+) faults=(\d+) "
    r"simulated_s=(\d+)"
)
SMOKE = ((20, 3), (33, 3), (45, 3), (13, 5))
"""(seed, nodes). Between them: a topic in page-cache mode, topics that come and go, a group of
either protocol, a damaged disk, power cuts, six partitions; clocks too."""
SCHEDULES = sorted((Path(__file__).parent / "schedules").glob("*.json"))
"""Each has found a bug once."""


@pytest.mark.parametrize(("seed", "nodes"), SMOKE)
def test_a_hurt_cluster_keeps_every_promise_and_its_seed_replays_it(
    seed: int, nodes: int, tmp_path: Path
) -> None:
    script = (
        "from logboat.jepsen_style.cluster_scope.run import Plan\n"
        f"print(Plan(nodes={nodes}).run({seed}).digest)\n"
    )
    # Side by side: one process must not depend on what another one has done.
    again = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        result = Plan(nodes=nodes, histories=tmp_path).run(seed)
        digest, _ = again.communicate(timeout=600)
    finally:
        again.kill()
        again.wait()
    assert result.violations == []
    assert result.stuck == []
    assert digest.strip() == result.digest
    # The history by itself says what was promised, and that it was kept.
    judgement = judge_run(read_history(tmp_path / f"{seed}.jsonl"))
    assert judgement.holds, judgement.verdict.reason
    assert judgement.kafka is not None
    schedule = generate(seed, nodes=nodes)
    for topic in schedule.kept_topics():
        promise = judgement.kafka.promised[topic.name]
        assert (promise.mode is Mode.SYNCED) == schedule.is_synced(topic)
        assert promise.least_holders == schedule.least_holders(topic) >= 2


def test_the_smoke_set_meets_what_a_schedule_can_have() -> None:
    schedules = [generate(seed, nodes=nodes) for seed, nodes in SMOKE]
    kinds = {fault.kind for schedule in schedules for fault in schedule.faults}
    protocols = {group.protocol for schedule in schedules for group in schedule.groups}
    assert protocols == set(PROTOCOLS)
    assert any(schedule.churn for schedule in schedules)
    producers = [chosen for schedule in schedules for chosen in schedule.producers]
    assert {chosen.in_flight for chosen in producers if chosen.idempotent} >= {1, 5}
    assert any(len(schedule.topics) > 1 for schedule in schedules)
    assert any(schedule.topics[0].partitions == 6 for schedule in schedules)
    assert any(KINDS[kind].damages for kind in kinds)
    assert {KINDS[kind].area for kind in kinds} == set(Area)


@pytest.mark.parametrize("path", SCHEDULES, ids=lambda path: path.stem)
def test_what_a_schedule_has_found_stays_mended(path: Path) -> None:
    result = run_schedule(Schedule.from_json(path.read_bytes()), floors=False)
    assert result.violations == []
    assert result.stuck == []


def test_a_control_fails_and_prints_the_command_that_replays_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scope = ["simulate", "--scope", "cluster"]
    assert main([*scope, "--seeds", "1:2", "--bug", "ack-before-isr"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("  lost: ") for line in lines)
    replay = "--scope cluster --seeds 1:2 --nodes 3 --bug ack-before-isr"
    assert any(line.endswith(replay) for line in lines)
    match = LAST_LINE.fullmatch(lines[-1])
    assert match is not None
    assert match[1] == "1"


def test_every_bug_leaves_the_product_as_it_was() -> None:
    for patch in BUGS.values():
        with patch():
            pass
    from logboat.partitions.leader import LeaderState
    from logboat.partitions.partition import Partition

    assert LeaderState.maximal_isr.fget.__module__ == LeaderState.__module__  # type: ignore[attr-defined]
    assert Partition.await_answer.__module__ == Partition.__module__


def test_a_schedule_that_does_not_exist_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["simulate", "--scope", "cluster", "--schedule", "/nowhere.json"])
    assert raised.value.code == 2
    assert "/nowhere.json" in capsys.readouterr().err


def test_generated_schedules_have_what_the_floors_ask_for() -> None:
    for seed in range(100):
        schedule = generate(seed)
        assert len(schedule.faults) >= 6
        assert len({fault.kind for fault in schedule.faults}) >= 3
