"""Reading and writing histories, and the table of client errors."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from random import Random

import pytest

from logboat.jepsen_style.checkers.kafka.order import rebalanced_keys
from logboat.jepsen_style.checkers.linearizability import MODELS, model_named
from logboat.jepsen_style.history import (
    NEVER,
    History,
    HistoryError,
    Outcome,
    Recorder,
    outcome_of_error,
    read_history,
    write_edn,
)
from logboat.jepsen_style.history.client_errors import (
    MAY_HAVE_HAPPENED,
    NOTHING_WAS_SENT,
    OUTCOME_OF_ERROR,
    REFUSED_BEFORE_APPENDING,
)
from logboat.jepsen_style.history.edn import read_forms, write_form
from logboat.jepsen_style.history.reading import parse_history
from logboat.jepsen_style.judge import judge, known_models
from logboat.jepsen_style.mutants.kafka_stories import STORIES, told
from logboat.jepsen_style.mutants.objects import THINGS, object_history
from logboat.jepsen_style.mutants.transaction_stories import (
    FAULTS,
    SET_FAULTS,
    grown_set_history,
    long_fork_history,
    transaction_history,
)


def test_recorded_history_reads_back_even_when_the_run_was_cut() -> None:
    written = io.BytesIO()
    recorder = Recorder(written)
    recorder.invoke(0, "send", [["send", "x", 1]], 10)
    recorder.observe("nemesis", "fault", {"kind": "kill", "node": 1}, 15)
    recorder.invoke(1, "poll", [["poll"]], 20)
    recorder.complete(0, "send", Outcome.OK, [["send", "x", [0, 1]]], 30)
    history = parse_history(written.getvalue())
    first, second = history
    assert (first.outcome, first.invoked, first.completed) == (Outcome.OK, 0, 3)
    assert first.complete_time == 30
    assert (second.outcome, second.completed) == (Outcome.INFO, NEVER)
    assert history.observations[0][1]["value"] == {"kind": "kill", "node": 1}


def told_history(name: str, seed: int) -> History:
    return told(name, Random(seed), bad=seed % 2 == 0).history


HISTORIES: dict[str, Callable[[int], History]] = {
    **{
        name: partial(
            lambda name, seed: object_history(
                name, Random(seed), operations=30, corrupted=seed % 2 == 0
            ),
            name,
        )
        for name in THINGS
    },
    **{f"Kafka, {name}": partial(told_history, name) for name in STORIES},
    **{
        f"{kind}, {fault}": partial(
            lambda kind, fault, seed: transaction_history(kind, Random(seed), fault), kind, fault
        )
        for kind in ("list-append", "rw-register")
        for fault in FAULTS
    },
    **{
        f"set-full, {fault}": partial(
            lambda fault, seed: grown_set_history(Random(seed), fault), fault
        )
        for fault in SET_FAULTS
    },
    "long-fork": lambda seed: long_fork_history(Random(seed), forked=seed % 2 == 0),
    "multi-register": lambda _: multi_register_history(),
}
"""By the model, which is what stands before the comma, and what makes the history."""


def multi_register_history() -> History:
    history = History()
    history.invoke(0, "txn", [["w", "x", 1], ["r", "y", None]], 0)
    history.complete(0, Outcome.OK, [["w", "x", 1], ["r", "y", None]], 1)
    history.invoke(1, "txn", [["r", "x", None]], 2)
    history.complete(1, Outcome.OK, [["r", "x", 1]], 3)
    return history


@pytest.mark.parametrize("name", HISTORIES)
def test_edn_export_of_every_models_history_reads_back_as_the_same_history(name: str) -> None:
    for seed in range(4):
        history = HISTORIES[name](seed)
        again = parse_history(write_edn(history).encode(), "EDN")
        for column in fields(History):
            assert getattr(again, column.name) == getattr(history, column.name), column.name


def test_edn_export_is_tried_with_every_model() -> None:
    made = {name.partition(",")[0] for name in HISTORIES}
    assert {model_of(name) for name in known_models()} <= {model_of(name) for name in made}


def model_of(name: str) -> str:
    """Some objects have two names."""
    return model_named(name).__class__.__name__ if name in MODELS else name


def test_edn_export_keeps_what_a_completion_says_besides() -> None:
    lines = [
        {"type": "invoke", "process": 0, "f": "poll", "value": [["poll"]], "time": 1, "index": 0},
        {
            **{"type": "ok", "process": 0, "f": "poll", "value": [["poll", {}]], "time": 2},
            **{"index": 1, "rebalance-log": [{"keys": ["x"]}], "error": "late"},
        },
    ]
    history = parse_history("\n".join(map(json.dumps, lines)).encode())
    again = parse_history(write_edn(history).encode())
    assert history.extra_fields(0) == {"rebalance-log": [{"keys": ["x"]}], "error": "late"}
    assert again.extra_fields(0) == history.extra_fields(0)
    assert rebalanced_keys(again, 0) == {"x"}


@pytest.mark.parametrize("name", HISTORIES)
def test_exported_history_gets_the_same_verdict(name: str) -> None:
    history, model = HISTORIES[name](2), name.partition(",")[0]
    again = parse_history(write_edn(history).encode())
    first, second = (judge(one, model, demand_evidence=False) for one in (history, again))
    assert (first.status, first.kinds) == (second.status, second.kinds)
    shown = [[anomaly.operations for anomaly in one.anomalies] for one in (first, second)]
    assert shown[0] == shown[1]


def test_edn_forms_of_jepsen_are_understood() -> None:
    text = '#jepsen.Op{:a [1 -2.5 "x\\ny"], :b #{:k} ; note\n :c (nil true \\a) :d #_ 7 8N}'
    [form] = read_forms(text)
    expected = {"a": [1, -2.5, "x\ny"], "b": {"k"}, "c": [None, True, "a"], "d": 8}
    assert form == expected
    assert read_forms(write_form(form)) == [form]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b'{"type": "invoke", "process": 0, "f": "read", "value": null}\n{oops\n', 2),
        (b'{"type": "ok", "process": 0, "f": "read", "value": null}\n', 1),
        (b'{"type": "maybe", "process": 0, "f": "read", "value": null}\n', 1),
        (b"[1] call add(1)\n[1] back\n", 2),
        (b"{:type :invoke, :f :read, :process 0}\n{:type :ok, :f ]\n", 2),
        (b"INFO  jepsen.util - 0\t:invoke\t:read\tnil\nnonsense\n", 2),
        (b"\xff\xfe\n", 1),
        (b"", 1),
    ],
)
def test_bad_files_name_the_line(data: bytes, line: int) -> None:
    with pytest.raises(HistoryError) as caught:
        parse_history(data)
    assert caught.value.line == line


def test_violin_file_declares_its_object(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("# @object atomic-stack\n[1] call push(a)\n[1] return# done\n")
    history = read_history(path)
    assert history.declared_model == "stack"
    assert history[0].argument == "a"


@pytest.mark.parametrize("name", [*REFUSED_BEFORE_APPENDING, *NOTHING_WAS_SENT])
def test_refusal_before_the_append_is_a_failure(name: str) -> None:
    assert outcome_of_error(name) is Outcome.FAIL
    # An earlier attempt may still have been appended.
    assert outcome_of_error(name, earlier_attempt_unknown=True) is Outcome.INFO


@pytest.mark.parametrize("name", [*MAY_HAVE_HAPPENED, "SOMETHING_NEW"])
def test_doubt_is_never_a_failure(name: str) -> None:
    assert outcome_of_error(name) is Outcome.INFO


def test_error_table_names_each_error_once_and_the_famous_ones_right() -> None:
    named = (*REFUSED_BEFORE_APPENDING, *NOTHING_WAS_SENT, *MAY_HAVE_HAPPENED)
    assert len(named) == len(set(named)) == len(OUTCOME_OF_ERROR)
    assert outcome_of_error(None) is Outcome.OK
    assert OUTCOME_OF_ERROR["REQUEST_TIMED_OUT"] is Outcome.INFO
    assert OUTCOME_OF_ERROR["NOT_ENOUGH_REPLICAS_AFTER_APPEND"] is Outcome.INFO
    assert OUTCOME_OF_ERROR["CONNECTION_REFUSED_BEFORE_SEND"] is Outcome.FAIL


@pytest.mark.parametrize("time", ['"soon"', "1.5", "9223372036854775808", "null"])
def test_a_time_that_is_no_whole_number_is_refused_with_its_line(time: str) -> None:
    line = '{"index":%d,"time":%s,"process":0,"type":"%s","f":"send","value":[["send","x",1]]}\n'
    good = line % (0, "7", "invoke")
    for lines in (line % (0, time, "invoke"), good + line % (1, time, "ok")):
        with pytest.raises(HistoryError, match=rf"line {lines.count(chr(10))}: time must be"):
            parse_history(lines.encode(), "JSON lines")


def test_fields_beyond_the_usual_are_kept_however_few_the_others_are() -> None:
    """A JSON line may leave out its index or its time, and then has no more than six fields."""
    asked = '{"process":0,"type":"invoke","f":"write","key":"x","value":1,"time":1}\n'
    told = '{"process":0,"type":"ok","f":"write","key":"x","value":1,"time":2}\n'
    history = parse_history((asked + told).encode(), "JSON lines")
    assert (history.argument, history.result) == ([["x", 1]], [["x", 1]])
    assert history.extra_fields(0) == {}
    told = '{"process":0,"type":"info","f":"write","value":null,"error":"timed out"}\n'
    history = parse_history((asked + told).encode(), "JSON lines")
    assert history.extra_fields(0) == {"error": "timed out"}


def test_transaction_without_a_name_is_one_in_json_lines_as_in_edn() -> None:
    lines = (
        '{"index":0,"time":1,"process":0,"type":"invoke","f":null,"value":[["r","x",null]]}\n'
        '{"index":1,"time":2,"process":1,"type":"invoke","f":"txn","value":[["r","x",null]]}\n'
    )
    history = parse_history(lines.encode(), "JSON lines")
    assert (history.function, history.process) == (["txn", "txn"], [0, 1])
    assert (list(history.invoked), history.open_operations) == ([0, 1], {0: 0, 1: 1})
