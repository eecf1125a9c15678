"""The demo as `make demo` runs it, small: it holds, and it notices sabotage."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes


def demo(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "logboat.testing.demo"],
        env={**os.environ, "RECORDS": "2000", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_nothing_is_lost_when_a_leader_is_killed() -> None:
    ran = demo()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    verdict = re.fullmatch(
        r"demo: held \| acknowledged=(\d+) read=(\d+) lost=0 "
        r"leaderless_s=(\d+\.\d+) rejoin_s=(\d+\.\d+)",
        ran.stdout.splitlines()[-1],
    )
    assert verdict is not None, ran.stdout
    assert verdict[1] == verdict[2] == "2000"
    assert ran.stderr == ""


def test_sabotage_is_noticed() -> None:
    ran = demo(SABOTAGE="1")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    verdict = re.fullmatch(
        r"demo: violation \| acknowledged=(\d+) read=(\d+) lost=(\d+)", ran.stdout.splitlines()[-1]
    )
    assert verdict is not None, ran.stdout
    acknowledged, read, lost = (int(count) for count in verdict.groups())
    assert lost > 0
    assert read + lost == acknowledged
    assert ran.stderr == ""
