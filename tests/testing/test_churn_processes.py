"""Real nodes under kills, pauses and stops, in both modes (RULES B, C, D; case R01)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import islice

import pytest

from logboat.testing.churn.schedule import Fault, steps


def churn(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "logboat.testing.churn"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


@pytest.mark.processes
@pytest.mark.parametrize("mode", ["synced", "page-cache"])
def test_nothing_acknowledged_is_lost_while_nodes_are_killed_paused_and_stopped(mode: str) -> None:
    # As long as six kills take, with all that lies between them: every kind of fault.
    ran = churn(MODE=mode, DURATION="45", SEED="1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    verdict = re.fullmatch(
        r"churn: held \| acknowledged=(\d+) read=(\d+) lost=0 "
        r"kills=(\d+) pauses=(\d+) stops=(\d+) kills_of_all=(\d+)",
        ran.stdout.splitlines()[-1],
    )
    assert verdict is not None, ran.stdout
    assert verdict[1] == verdict[2]
    assert int(verdict[1]) >= 10_000
    assert int(verdict[3]) >= 6
    assert int(verdict[4]) >= 2
    assert int(verdict[5]) >= 1
    assert int(verdict[6]) >= (mode == "synced")


def test_a_wrong_mode_is_a_usage_error() -> None:
    ran = churn(MODE="hopeful")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "MODE" in ran.stderr


def test_a_seed_decides_what_is_done_to_which_node() -> None:
    first, again, other = (
        list(islice(steps([1, 2, 3], synced=True, seed=seed), 14)) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert {step.fault for step in first} == set(Fault)


def test_page_cache_mode_promises_nothing_when_all_are_killed_so_that_is_not_done() -> None:
    faults = {step.fault for step in islice(steps([1, 2, 3], synced=False, seed=1), 20)}
    assert Fault.KILL_ALL not in faults
