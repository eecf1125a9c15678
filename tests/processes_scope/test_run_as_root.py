"""Power cuts, a full disk, failed syncs and dropped packets, on real processes: nothing is lost."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from logboat.jepsen_style.processes.draw import TOPIC, draw
from logboat.jepsen_style.processes.means import NEEDS, find_means
from logboat.jepsen_style.processes.outcome import Word
from logboat.jepsen_style.processes.run import run_schedule
from logboat.jepsen_style.schedule import Fault, Target

pytestmark = pytest.mark.processes

LEADER, FOLLOWER = Target("leader", TOPIC, 0), Target("follower", TOPIC, 0)

LEAST = 50
"""Records, or nothing was tried."""

FAULTS = (
    Fault(400, "power-cut", LEADER, 300),
    Fault(1_600, "isolate", LEADER, 500, {"direction": "out"}),
    Fault(2_000, "clock-step", LEADER, 2_500, {"seconds": 1800.0}),
    Fault(2_800, "full-disk", FOLLOWER, 600),
    Fault(4_200, "kill-at-sync", LEADER, 400, {"number": 2}),
    Fault(5_600, "blackout", Target("all"), 200),
    Fault(8_000, "failed-sync", FOLLOWER, 500),
)


def test_nothing_is_lost_when_disks_and_networks_are_hurt_below_the_process(
    tmp_path: Path,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounts and network namespaces need root")
    means = find_means(root=True)
    kinds = {fault.kind for fault in FAULTS}
    if lacking := [line for line in means.lines() if line.startswith("skipped")]:
        pytest.skip(f"some means are missing: {lacking}")
    schedule = replace(draw(5, nodes=3, minutes=0.15, mode="synced"), faults=FAULTS, hurt_ms=9_000)
    outcome = run_schedule(schedule, tmp_path / "run", means=means)
    # On a busy machine it may be too weak: nodes take their time to come back.
    assert outcome.word in (Word.HELD, Word.TOO_WEAK), (outcome.line, outcome.reasons)
    assert outcome.tally.read_everything, outcome.reasons
    assert outcome.tally.acknowledged > LEAST, outcome.line
    assert outcome.coverage.kinds == kinds
    assert kinds <= set(NEEDS)
    # Nothing of it is left on the machine.
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
