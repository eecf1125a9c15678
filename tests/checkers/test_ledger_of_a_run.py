"""The ledger understands the faults of schedules as executors write them into a history."""

from __future__ import annotations

import pytest

from logboat.jepsen_style.checkers.kafka import Guarantee, report_on
from logboat.jepsen_style.history import History, Outcome
from logboat.jepsen_style.schedule import KINDS

HOME = "__consumer_offsets-3"


def see(history: History, function: str, **value: object) -> None:
    event = {"type": "info", "process": "observer", "f": function, "value": value, "time": 0}
    history.observe(event)


def do(history: History, *micros: list[object]) -> None:
    history.invoke(0, "txn", [*micros], 0)
    history.complete(0, Outcome.OK, [*micros], 0)


def forgotten_commit(kind: str, mode: str, *, nodes: list[int], named: bool = True) -> Guarantee:
    """Of a group whose partition two nodes keep, after one fault."""
    history = History()
    see(history, "durability", mode=mode)
    see(history, "isr", key=HOME, epoch=1, isr=[1, 2])
    do(history, ["commit", "g", "x", 3])
    see(history, "fault", kind=kind, role="all", node=nodes[0], nodes=nodes)
    do(history, ["committed", "g", "x", None])
    if named:
        see(history, "group", group="g", key=HOME)
    report = report_on(history)
    assert {"lost-commit"} <= report.verdict.kinds
    if report.rulings:
        return report.guarantee
    return Guarantee.VIOLATION


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("mode", ["sync", "page-cache"])
def test_a_group_may_forget_what_a_fault_took_from_all_who_kept_it(kind: str, mode: str) -> None:
    fault = KINDS[kind]
    takes = fault.damages or (fault.cuts_power and mode == "page-cache")
    expected = Guarantee.OUTSIDE if takes else Guarantee.VIOLATION
    assert forgotten_commit(kind, mode, nodes=[1, 2]) is expected


def test_a_group_must_not_forget_while_one_who_kept_it_is_whole() -> None:
    assert forgotten_commit("wiped-disk", "sync", nodes=[2]) is Guarantee.VIOLATION


def test_nothing_excuses_a_group_whose_partition_nobody_named() -> None:
    both = [1, 2]
    assert forgotten_commit("wiped-disk", "sync", nodes=both, named=False) is Guarantee.VIOLATION
