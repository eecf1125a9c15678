"""Reading and writing histories, and the table of client errors."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random

import pytest

from logboat.jepsen_style.history import (
    NEVER,
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
from logboat.jepsen_style.mutants.objects import object_history


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


def test_edn_export_reads_back_with_equal_events() -> None:
    history = object_history("cas-register", Random(5), operations=30, corrupted=False)
    again = parse_history(write_edn(history).encode())
    for column in ("function", "argument", "outcome", "invoked", "completed", "process"):
        assert getattr(again, column) == getattr(history, column)


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
