"""A torn or garbled file ends with the line and status 2, whatever it looks like."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.jepsen_style.__main__ import main
from logboat.jepsen_style.history import HistoryError, write_edn
from logboat.jepsen_style.history.json_lines import CHUNK
from logboat.jepsen_style.history.reading import parse_history
from logboat.jepsen_style.judge import judge_run
from logboat.jepsen_style.mutants.kafka_stories import STORIES, told
from logboat.jepsen_style.mutants.objects import object_history


def in_format(name: str) -> bytes:
    """A small honest history as a file."""
    if name == "violin":
        return (
            b"# @object atomic-queue\n[1] call add(1)\n[1] return\n[2] call remove\n[2] return 1\n"
        )
    if name == "jepsen log":
        return b"".join(
            b"INFO  jepsen.util - 0\t:%b\t:write\t%d\n" % (kind, value)
            for value in range(4)
            for kind in (b"invoke", b"ok")
        )
    edn = write_edn(object_history("cas-register", Random(2), operations=12, corrupted=False))
    if name == "EDN":
        return edn.encode()
    events = [
        {"index": n, "time": n, "process": 0, "type": kind, "f": "write", "value": n // 2}
        for n, kind in enumerate(("invoke", "ok") * 6)
    ]
    if name == "JSON":
        return orjson.dumps(events)
    return b"".join(orjson.dumps(event) + b"\n" for event in events)


@pytest.mark.parametrize("name", ["JSON lines", "JSON", "EDN", "jepsen log", "violin"])
def test_garbled_file_is_a_history_or_a_plain_error(name: str) -> None:
    whole = in_format(name)
    assert len(parse_history(whole))

    @settings(max_examples=150, deadline=None, database=None, derandomize=True)
    @given(data=st.data())
    def told_clearly(data: st.DataObject) -> None:
        text = bytearray(whole)
        for _ in range(data.draw(st.integers(0, 3))):
            at = data.draw(st.integers(0, len(text) - 1))
            length = data.draw(st.integers(0, 6))
            text[at : at + length] = data.draw(st.binary(max_size=6))
            if not text:
                text = bytearray(b"\n")
        cut = data.draw(st.integers(0, len(text)))
        with suppress(HistoryError):
            judge_run(parse_history(bytes(text[:cut])), model="cas-register")

    told_clearly()


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(name=st.sampled_from(sorted(STORIES)), data=st.data())
def test_micro_operations_of_another_shape_are_an_error_and_no_crash(
    name: str, data: st.DataObject
) -> None:
    history = told(name, Random(1), bad=True).history
    strange = st.one_of(
        st.none(),
        st.integers(),
        st.text(max_size=3),
        st.just([["send", "x"]]),
        st.just([["poll", {"x": [[0]]}]]),
        st.just([["poll", [1]]]),
        st.just([[]]),
        st.just([["send", "x", [0, {"a": []}]]]),
    )
    index = data.draw(st.integers(0, len(history) - 1))
    history.result[index] = data.draw(strange)
    with suppress(HistoryError):
        judge_run(history, model="Kafka")


@pytest.mark.parametrize("line", [1, 2, 700, 1999])
def test_line_is_right_wherever_it_stands_in_a_large_file(line: int, tmp_path: Path) -> None:
    lines = in_format("JSON lines").splitlines() * 200
    assert sum(map(len, lines)) > 2 * CHUNK
    lines[line - 1] = lines[line - 1][:-9]
    path = tmp_path / "torn.jsonl"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(HistoryError) as caught:
        parse_history(path.read_bytes())
    assert caught.value.line == line
    assert main(["check", str(path)]) == 2


def test_events_are_told_by_their_lines_and_not_by_what_a_chunk_adds_up_to() -> None:
    torn = b'{"process": 0, "type": "invoke"\n"f": "read", "value": null, "time": 1}\n'
    with pytest.raises(HistoryError) as caught:
        parse_history(torn, "JSON lines")
    assert caught.value.line == 1
