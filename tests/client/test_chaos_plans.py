"""`chaos run`: a plan is understood whole, or refused with the line that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from logboat.client.chaos.plan import Plan, load_plan, parse_plan
from logboat.client.chaos.roles import Who, who_of
from logboat.client.failure import ExitStatus, Failure

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "chaos-plan.toml"


def plan_of(*lines: str) -> Plan:
    return parse_plan("\n".join(lines), "plan.toml")


def times_of(plan: Plan) -> list[tuple[float, int]]:
    return [(at_s, step.number) for at_s, step in plan.strikes()]


STEP = '[[step]]\nfault = "pause"\nnodes = 1\n'


def test_the_example_of_the_documentation_is_a_plan() -> None:
    plan = load_plan(str(EXAMPLE))
    assert plan.length_s == 5
    assert plan.needs_processes
    assert {step.fault for step in plan.steps} == {"pause", "clock", "disk-full", "drop", "kill"}


def test_a_step_without_a_time_strikes_at_once_and_the_plan_ends_with_its_last_step() -> None:
    plan = plan_of(STEP, 'for = "4s"', STEP, 'at = "2s"', 'for = "500ms"')
    assert times_of(plan) == [(0, 1), (2, 2)]
    assert plan.length_s == 4
    assert plan_of(STEP).length_s == 10, "as long as a fault lasts that does not say so"


def test_a_step_with_every_strikes_again_until_the_plan_ends() -> None:
    plan = plan_of('for = "7s"', STEP, 'every = "3s"', STEP, 'every = "2s"', 'at = "500ms"')
    assert times_of(plan) == [(0.5, 2), (2.5, 2), (3, 1), (4.5, 2), (6, 1), (6.5, 2)]


def test_a_restart_at_the_very_end_happens() -> None:
    plan = plan_of("[[step]]", 'at = "5s"', 'fault = "restart"', "nodes = 1")
    assert times_of(plan) == [(5, 1)]
    assert plan.length_s == 5


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (2, Who("node 2", (2,))),
        ([3, 1, 3], Who("node 3, 1", (3, 1))),
        ("controller", Who("controller", role="controller")),
        (" leader  of a.b_c-d/0", Who("leader of a.b_c-d/0", (), "leader", "a.b_c-d", 0)),
        ("followers of t/12", Who("followers of t/12", (), "followers", "t", 12)),
        ([], None),
        ([1, "all"], None),
        (True, None),
        (-1, None),
        ("leader", None),
        ("leader of t", None),
        ("leader of t/x", None),
    ],
)
def test_nodes_are_numbers_or_a_role(said: object, meant: Who | None) -> None:
    assert who_of(said) == meant


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("for = ", "Invalid value (at end of document)"),
        ("", "plan.toml: it has no [[step]]"),
        ("step = 3", "plan.toml:1: steps are tables: begin each with [[step]]"),
        ('fro = "5s"\n' + STEP, "plan.toml:1: unknown key 'fro'; those are for, seed, step (did"),
        (f'{STEP}\nfault = "pause"', "plan.toml: Cannot overwrite a value (at end of document)"),
        (f'{STEP}evry = "1s"', "plan.toml:4: step 1: unknown key 'evry'; those of pause are at, e"),
        (f'{STEP}\n{STEP}by = "1s"', "plan.toml:8: step 2: unknown key 'by'; those of pause are"),
        ("[[step]]\nnodes = 1", "plan.toml:1: step 1: fault is missing; there are kill, restart,"),
        ('[[step]]\nfault = "pauze"\nnodes = 1', "plan.toml:2: step 1: there is no fault 'pauze'"),
        ('[[step]]\nfault = "pause"', "plan.toml:1: step 1: nodes is missing: a node's number"),
        ('[[step]]\nfault = "pause"\nnodes = "one"', "plan.toml:3: step 1: nodes 'one' is nobody"),
        (f"{STEP}for = 3", "plan.toml:4: step 1: for 3 is no time like 250ms, 10s, 2m"),
        (f'{STEP}for = "31s"', "plan.toml:4: step 1: for is more than 30s"),
        (f'{STEP}every = "1s"', 'plan.toml:4: step 1: how long? The plan needs a "for" above'),
        (f'for = "5s"\n{STEP}every = "0s"', "plan.toml:5: step 1: every is no time at all"),
        (f'for = "5s"\n{STEP}at = "5s"', "plan.toml:5: step 1: it would begin after the plan has"),
        (f'for = "24h"\n{STEP}every = "1s"', "plan.toml:1: it strikes more than 10,000 times"),
        (f"seed = 1.5\n{STEP}", "plan.toml:1: seed is no whole number"),
        ('[[step]]\nfault = "delay"\nnodes = 1', 'plan.toml:1: step 1: a delay needs a "by"'),
        ('[[step]]\nfault = "clock"\nnodes = 1\nby = "1 h"', "plan.toml:4: step 1: a clock needs"),
        ('[[step]]\nfault = "drop"\nnodes = 1\nchance = "0%"', "plan.toml:4: step 1: a chance is"),
        ('[[step]]\nfault = "restart"\nnodes = 1\nfor = "1s"', "plan.toml:4: step 1: a restart"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_before_anything_begins(text: str, told: str) -> None:
    with pytest.raises(Failure) as refused:
        parse_plan(text, "plan.toml")
    assert told in refused.value.sentence
    assert refused.value.status is ExitStatus.USAGE


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="cannot read"):
        load_plan(str(tmp_path / "none.toml"))
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(Failure, match="no text"):
        load_plan(str(binary))
