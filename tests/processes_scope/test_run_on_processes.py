"""A fixed seed on real processes: it holds, leaves its files, and its history can show a loss."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from logboat.jepsen_style.__main__ import main
from logboat.jepsen_style.history import History, Outcome, read_history
from logboat.jepsen_style.processes.draw import TOPIC, draw
from logboat.jepsen_style.processes.judging import judge_history
from logboat.jepsen_style.processes.outcome import Floors, Tally, Word
from logboat.jepsen_style.processes.run import run_schedule
from logboat.jepsen_style.schedule import Schedule
from logboat.testing import LocalCluster
from logboat.testing.demo.sabotage import cut_batch

pytestmark = pytest.mark.processes

MINUTES = 0.25
SEED = 49
"""A leader is killed, a bit of its disk is flipped, and later all of the disk is wiped."""
LAST_LINE = re.compile(
    r"run: too weak \| ops=\d+ acknowledged=\d+ lost=0 faults=\d+ unavailable_s=\d+\.\d"
)


def without_record(lines: list[bytes], key: str, offset: int) -> list[bytes]:
    """The history of a cluster that never served this record to anybody."""
    changed = []
    for line in lines:
        event = orjson.loads(line)
        if event["f"] == "poll" and event["type"] == "ok":
            for _, polls in event["value"]:
                if key in polls:
                    polls[key] = [record for record in polls[key] if record[0] != offset]
        changed.append(orjson.dumps(event) + b"\n")
    return changed


def acknowledged_record(lines: list[bytes]) -> tuple[str, int]:
    """One from the middle of the run."""
    sent = [event for event in map(orjson.loads, lines) if event["f"] == "send"]
    good = [event for event in sent if event["type"] == "ok"]
    _, key, (offset, _) = good[len(good) // 2]["value"][0]
    return key, offset


def test_a_hurt_cluster_of_processes_keeps_its_promise_and_a_missing_record_is_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    chosen = [
        "--minutes",
        str(MINUTES),
        "--nodes",
        "3",
        "--seed",
        str(SEED),
        "--folder",
        str(folder),
    ]
    status = main(["run", *chosen])
    output = capsys.readouterr().out
    # A quarter of a minute proves little, and says so.
    assert status == Word.TOO_WEAK.status, output
    assert "killed leaders, at least 2 are needed" in output
    assert "the final full read is missing" not in output
    assert LAST_LINE.fullmatch(output.splitlines()[-1]), output
    assert "coverage: " in output

    schedule = Schedule.from_json((folder / "schedule.json").read_bytes())
    assert schedule.seed == SEED
    assert {"wiped-disk", "bit-flip"} <= {fault.kind for fault in schedule.faults}
    report = (folder / "report.html").read_text()
    assert "Faults tried" in report
    assert "by proxies: " in report
    assert re.search(r"topics that came and went: [1-9]", report)
    # By itself the history says the same as the run.
    assert main(["check", str(folder / "history.jsonl")]) == 0
    checked = capsys.readouterr().out
    for topic in (TOPIC, "__consumer_offsets"):
        promise = "synced, 3 replicas, acknowledged by 2 or more"
        assert f"promised of {topic}: {promise}" in checked
    # The control: the same history without one record that was acknowledged.
    lines = (folder / "history.jsonl").read_bytes().splitlines()
    homes = [event["value"] for event in map(orjson.loads, lines) if event["f"] == "group"]
    assert {home["group"].partition(":")[0] for home in homes} == {
        group.name for group in schedule.groups
    }
    assert all(home["key"].startswith("__consumer_offsets-") for home in homes)
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b"".join(without_record(lines, *acknowledged_record(lines))))
    tally = Tally(read_everything=True)
    _, word, reasons = judge_history(read_history(broken), tally, Floors.of(MINUTES), [])
    assert word is Word.VIOLATION, reasons
    assert tally.lost == 1


def test_a_run_without_faults_is_too_weak(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = draw(1, nodes=3, minutes=0.02, mode="page-cache")
    file = tmp_path / "schedule.json"
    file.write_bytes(replace(drawn, faults=()).to_json())
    assert main(["replay", str(file), "--folder", str(tmp_path / "run")]) == 3
    output = capsys.readouterr().out
    assert output.splitlines()[-1].startswith("run: too weak | ops=")
    assert "0 faults, at least 1 are needed" in output


def test_a_cluster_that_does_not_come_up_is_undecided_with_a_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = draw(1, nodes=3, minutes=0.02, mode="synced")
    file = tmp_path / "schedule.json"
    file.write_bytes(replace(drawn, settings={"broker.session.timeout.ms": "soon"}).to_json())
    assert main(["replay", str(file), "--folder", str(tmp_path / "run")]) == 1
    output = capsys.readouterr().out
    assert output.splitlines()[-1].startswith("run: undecided | ops=0 ")
    assert "undecided: the cluster does not come up: " in output


def take_the_end_of_a_log(cluster: LocalCluster, history: History) -> None:
    """What was acknowledged last vanishes from every replica, though a consumer may have it."""
    sent = [one for one in history if one.function == "send" and one.outcome is Outcome.OK]
    _, key, (offset, _) = sent[-1].result[0]
    for node_id in cluster.node_ids:
        cluster.kill(node_id)
    folders = [cluster.data_dir(node_id) for node_id in cluster.node_ids]
    cut_batch(folders, TOPIC, int(key.rpartition("-")[2]), offset)
    for node_id in cluster.node_ids:
        cluster.start(node_id, wait=False)
    cluster.wait_ready()
    cluster.wait_in_sync(TOPIC)


def test_records_that_vanish_from_all_replicas_are_a_violation(tmp_path: Path) -> None:
    schedule = replace(draw(1, nodes=3, minutes=0.02, mode="synced"), faults=())
    outcome = run_schedule(schedule, tmp_path / "run", sabotage=take_the_end_of_a_log)
    assert outcome.word is Word.VIOLATION, outcome.reasons
    assert outcome.tally.lost > 0, outcome.reasons
    assert outcome.line.startswith("run: violation | ops=")
    assert (tmp_path / "run" / "cluster").exists()
