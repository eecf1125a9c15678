"""A fixed seed on real processes: it holds, leaves its files, and its history can show a loss."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from logboat.jepsen_style.__main__ import main
from logboat.jepsen_style.history import read_history
from logboat.jepsen_style.processes.judging import judge_history
from logboat.jepsen_style.processes.outcome import Floors, Tally, Word
from logboat.jepsen_style.schedule import Schedule

pytestmark = pytest.mark.processes

MINUTES = 0.25
LAST_LINE = re.compile(
    r"run: held \| ops=\d+ acknowledged=\d+ lost=0 faults=\d+ unavailable_s=\d+\.\d"
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
    chosen = ["--minutes", str(MINUTES), "--nodes", "3", "--seed", "1", "--folder", str(folder)]
    status = main(["run", *chosen])
    output = capsys.readouterr().out
    assert status == 0, output
    assert LAST_LINE.fullmatch(output.splitlines()[-1]), output
    assert "coverage: " in output

    schedule = Schedule.from_json((folder / "schedule.json").read_bytes())
    assert schedule.seed == 1
    assert "Faults tried" in (folder / "report.html").read_text()
    assert not (folder / "cluster").exists()

    # The control: the same history without one record that was acknowledged.
    lines = (folder / "history.jsonl").read_bytes().splitlines()
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b"".join(without_record(lines, *acknowledged_record(lines))))
    tally = Tally(read_everything=True)
    _, word, reasons = judge_history(read_history(broken), tally, Floors.of(MINUTES), [])
    assert word is Word.VIOLATION, reasons
    assert tally.lost == 1


def test_a_run_without_faults_is_too_weak(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from logboat.jepsen_style.processes.draw import draw

    drawn = draw(1, nodes=3, minutes=0.02, mode="page-cache")
    file = tmp_path / "schedule.json"
    file.write_bytes(replace(drawn, faults=()).to_json())
    assert main(["replay", str(file), "--folder", str(tmp_path / "run")]) == 3
    output = capsys.readouterr().out
    assert output.splitlines()[-1].startswith("run: too weak | ops=")
    assert "0 faults, at least 1 are needed" in output
