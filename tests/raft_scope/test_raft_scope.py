"""Scope `raft`: seeds are clean, replay exactly, and the command says what it found."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

from logboat.jepsen_style.__main__ import main
from logboat.jepsen_style.raft_scope import run
from logboat.jepsen_style.raft_scope.controls import BY_NUMBER, guards_of
from logboat.jepsen_style.raft_scope.run import Plan, run_seed
from logboat.raftlog import raft_log
from logboat.raftlog.guards import ALL_GUARDS, GuardContext, NewDirectories

LAST_LINE = re.compile(
    r"simulate: raft seeds=1 violations=(\d) stuck=(\d) acknowledged=(\d+) faults=(\d+) "
    r"simulated_s=(\d+)"
)


@pytest.mark.parametrize(("seed", "nodes"), [(1, 3), (39, 3), (181, 3), (5, 5)])
def test_a_hurt_quorum_keeps_every_invariant(seed: int, nodes: int) -> None:
    result = run_seed(seed, Plan(nodes=nodes))
    assert result.violations == []
    assert result.stuck == []


@pytest.mark.parametrize(("seed", "nodes"), [(3, 3), (17, 3), (6, 5)])
def test_a_hurt_quorum_that_hands_over_keeps_every_invariant(seed: int, nodes: int) -> None:
    result = run_seed(seed, Plan(nodes=nodes, transfers=True))
    assert result.violations == []
    assert result.stuck == []


def test_the_last_line_of_a_clean_seed_meets_the_floors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--scope", "raft", "--seeds", "2:3", "--jobs", "1"]) == 0
    match = LAST_LINE.fullmatch(capsys.readouterr().out.splitlines()[-1])
    assert match is not None
    violations, stuck, acknowledged, faults, simulated_s = map(int, match.groups())
    assert violations == stuck == 0
    assert acknowledged >= 200
    assert faults >= 6
    assert simulated_s >= 30


def test_a_control_fails_and_prints_the_command_that_replays_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = [
        "simulate",
        "--scope",
        "raft",
        "--seeds",
        "4000:4001",
        "--bare",
        "--compaction",
        "60",
    ]
    assert main(arguments) == 1
    lines = capsys.readouterr().out.splitlines()
    replay = "--scope raft --seeds 4000:4001 --nodes 3 --bare --compaction 60"
    assert any(line.endswith(replay) for line in lines)
    match = LAST_LINE.fullmatch(lines[-1])
    assert match is not None
    assert match[1] == "1" or match[2] == "1"


@pytest.mark.parametrize(
    ("without", "seeds"),
    [
        ("G2", (11, 10, 12)),
        ("G5", (9, 21, 23)),
        ("G6", (0, 17, 19)),
        ("G8", (7, 26)),
        ("G10", range(5, 17)),
    ],
)
def test_a_quorum_without_a_guard_is_seen_to_fail(without: str, seeds: Sequence[int]) -> None:
    # Some of them: whatever changes the product's timing changes what happens in a seed.
    assert any(not run_seed(seed, Plan(without=without)).good for seed in seeds)


class Forgetful(NewDirectories):
    """Takes a new directory for one that has forgotten nothing."""

    def __init__(self, node: GuardContext, *, joined: bool, on_joining: Callable[[], None]) -> None:
        super().__init__(node, joined=True, on_joining=on_joining)


def test_b3_a_quorum_whose_new_directories_vote_at_once_is_seen_to_lose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(raft_log, "NewDirectories", Forgetful)
    # Nobody waits for directories that do not write down that they have joined.
    monkeypatch.setattr(run, "_let_everybody_join", lambda world, quorum: world.run(1))
    seed = next(seed for seed in range(100) if not run.pinned_first(seed))
    assert any(text.startswith("lost: ") for text in run_seed(seed, Plan()).violations)


def test_every_guard_of_the_list_can_be_left_out() -> None:
    left_out = [set(ALL_GUARDS) - set(guards_of(without=number)) for number in BY_NUMBER]
    assert len(set().union(*left_out)) == len(BY_NUMBER)
    assert all(len(guards) == 1 for guards in left_out)
    assert guards_of(bare=True) == ()
