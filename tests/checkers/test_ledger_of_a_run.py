"""The ledger understands the faults of schedules as executors write them into a history."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from logboat.jepsen_style.checkers.kafka import Guarantee, Mode, Promise, Promises, report_on
from logboat.jepsen_style.history import History, HistoryError, Outcome
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
@pytest.mark.parametrize("mode", ["synced", "page-cache"])
def test_a_group_may_forget_what_a_fault_took_from_all_who_kept_it(kind: str, mode: str) -> None:
    fault = KINDS[kind]
    takes = fault.damages or (fault.cuts_power and mode == "page-cache")
    expected = Guarantee.OUTSIDE if takes else Guarantee.VIOLATION
    assert forgotten_commit(kind, mode, nodes=[1, 2]) is expected


def test_a_group_must_not_forget_while_one_who_kept_it_is_whole() -> None:
    assert forgotten_commit("wiped-disk", "synced", nodes=[2]) is Guarantee.VIOLATION


def test_nothing_excuses_a_group_whose_partition_nobody_named() -> None:
    both = [1, 2]
    assert forgotten_commit("wiped-disk", "synced", nodes=both, named=False) is Guarantee.VIOLATION


def lost(*said: Mapping[str, object], struck: str, at: str, nodes: list[int]) -> Guarantee:
    """A record of each key is acknowledged by two nodes; one of them is lost after the fault."""
    history = History()
    for promise in said:
        see(history, "durability", **promise)
    for key in ("cached-0", "synced-0"):
        see(history, "isr", key=key, epoch=1, isr=[1, 2])
        do(history, ["send", key, [0, "a"]])
        do(history, ["send", key, [1, "b"]])
    see(history, "fault", kind=struck, role="all", node=nodes[0], nodes=nodes)
    for key in ("cached-0", "synced-0"):
        read = [[1, "b"]] if key == at else [[0, "a"], [1, "b"]]
        do(history, ["poll", {key: read}])
    return report_on(history).guarantee


CACHED: Mapping[str, object] = {"topic": "cached", "mode": "page-cache"}
SYNCED: Mapping[str, object] = {"topic": "synced", "mode": "synced"}
COUNTED: Mapping[str, object] = {"replication_factor": 3, "min_insync_replicas": 2}


def test_each_topic_is_judged_by_its_own_promise() -> None:
    for said in ((CACHED, SYNCED), (SYNCED, CACHED)):
        cached = lost(*said, struck="blackout", at="cached-0", nodes=[1, 2])
        assert cached is Guarantee.OUTSIDE
        synced = lost(*said, struck="blackout", at="synced-0", nodes=[1, 2])
        assert synced is Guarantee.VIOLATION


def test_the_page_cache_promises_a_record_while_one_who_holds_it_has_power() -> None:
    said = ({**CACHED, **COUNTED}, {**SYNCED, **COUNTED})
    assert lost(*said, struck="blackout", at="cached-0", nodes=[2]) is Guarantee.VIOLATION
    assert lost(*said, struck="kill-all", at="cached-0", nodes=[1, 2]) is Guarantee.VIOLATION


def test_a_topic_of_which_nothing_is_said_is_synced() -> None:
    assert lost(CACHED, struck="blackout", at="synced-0", nodes=[1, 2]) is Guarantee.VIOLATION


def test_where_fewer_disks_were_hurt_than_acknowledge_no_isr_is_an_excuse() -> None:
    history = History()
    see(history, "durability", **SYNCED, **COUNTED)
    see(history, "isr", key="synced-0", epoch=1, isr=[1, 2])
    do(history, ["send", "synced-0", [0, "a"]])
    # The cluster forgets who else has the record, and then its only member's disk is gone.
    see(history, "isr", key="synced-0", epoch=1, isr=[1])
    see(history, "fault", kind="wiped-disk", role="node", node=1, nodes=[1])
    do(history, ["send", "synced-0", [0, "b"]])
    do(history, ["poll", {"synced-0": [[0, "b"]]}])
    report = report_on(history)
    assert report.guarantee is Guarantee.VIOLATION
    assert {ruling.reason for _, ruling in report.rulings} == {
        "2 replicas or more held the record; disks that were ever hurt: 1"
    }


def test_an_isr_that_was_lowered_counts_from_the_least_that_was_said() -> None:
    history = History()
    for least in (2, 1, 3):
        see(history, "durability", **SYNCED, replication_factor=3, min_insync_replicas=least)
    assert Promises.of(history).of_key("synced-17") == Promise(Mode.SYNCED, 3, 1)


@pytest.mark.parametrize(
    "said",
    [
        {"topic": "t"},
        {"topic": "t", "mode": "sync"},
        {"topic": "t", "mode": "synced", "replication_factor": "3"},
        {"topic": "t", "mode": "synced", "min_insync_replicas": 0},
        {"topic": "t", "mode": "synced", "min_insync_replicas": True},
    ],
)
def test_a_promise_that_cannot_be_one_is_refused(said: dict[str, object]) -> None:
    history = History()
    see(history, "durability", **said)
    with pytest.raises(HistoryError, match="durability: "):
        report_on(history)


def test_a_topic_cannot_have_two_modes() -> None:
    history = History()
    for mode in ("synced", "page-cache"):
        see(history, "durability", topic="t", mode=mode)
    with pytest.raises(HistoryError, match="t cannot change its mode"):
        report_on(history)


def test_names_of_topics_may_end_in_numbers() -> None:
    promises = Promises(
        {"clicks-7": Promise(Mode.PAGE_CACHE), "clicks": Promise(Mode.SYNCED, 3, 2)}
    )
    assert promises.of_key("clicks-7-0").mode is Mode.PAGE_CACHE
    assert promises.of_key("clicks-7").mode is Mode.SYNCED
    # In histories that are not about Kafka's partitions a key is just a name.
    assert promises.of_key("clicks").min_insync_replicas == 2
