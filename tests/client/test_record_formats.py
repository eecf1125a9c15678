"""What `consume` prints, `produce` takes back."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from logboat.client.failure import ExitStatus, Failure
from logboat.client.input_lines import input_lines
from logboat.client.line_format import LineFormat
from logboat.client.produce_lines import Line, LineShape, NoRecord, parsed
from logboat.client.read_from import Place, ReadFrom
from logboat.client.record_format import RecordFormat
from logboat.client.sdk.errors import DeadlineExceeded, OutcomeUnknown
from logboat.client.sdk.records import Record, TopicPartition
from logboat.client.verifying import Ledger, judged

RECORD: Record[bytes, bytes] = Record("orders", 3, 17, 5, None, b"v", (("h", b"x"),))
PLACE: dict[str, Any] = {"topic": "orders", "partition": 3, "offset": 17, "timestamp": 5}


def test_a_format_names_fields_and_knows_the_escapes() -> None:
    line = RecordFormat(r"%t-%p@%o %d [%k] %v %h 100%%\n").line(RECORD)
    assert line == b"orders-3@17 5 [] v h=x 100%\n"
    document = {**PLACE, "key": None, "value": "v", "headers": [{"key": "h", "value": "x"}]}
    assert json.loads(RecordFormat("json").line(RECORD)) == document
    assert json.loads(RecordFormat("json", meta_only=True).line(RECORD)) == PLACE


def test_keys_and_values_are_printed_as_the_bytes_they_are() -> None:
    record = Record("t", 0, 0, 0, b"\xff\x00", b"\n\xfe", ())
    assert RecordFormat("%k=%v").line(record) == b"\xff\x00=\n\xfe"


def test_a_field_that_is_none_is_a_usage_error() -> None:
    with pytest.raises(Failure, match="%x"):
        RecordFormat("%x")


optional_bytes = st.none() | st.binary(max_size=20)


@given(
    key=optional_bytes,
    value=optional_bytes,
    headers=st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3),
    timestamp=st.integers(0, 2**62),
)
def test_a_json_line_carries_any_record_exactly(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    timestamp: int,
) -> None:
    record = Record("t", 2, 9, timestamp, key, value, tuple(headers))
    line = RecordFormat("json").line(record)
    assert line.count(b"\n") == 1
    taken = parsed(line.rstrip(b"\n"), 1, LineShape(is_json=True))
    assert (taken.key, taken.value, taken.headers) == (key, value, tuple(headers))
    assert (taken.partition, taken.timestamp) == (2, timestamp)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "{}",
        '{"value": 1}',
        '{"value": "x", "headers": 1}',
        '{"value": "x", "headers": [{"key": 1}]}',
        '{"value": "x", "partition": "0"}',
        '{"value": "x", "partition": true}',
        '{"value": "x", "timestamp": -1}',
        '{"value": "x", "value_encoding": "hex"}',
        '{"value": "x", "value_encoding": "base64"}',
        '{"value": "\\ud800"}',
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_record_is_named(line: str) -> None:
    with pytest.raises(NoRecord, match="line 7"):
        parsed(line.encode(), 7, LineShape(is_json=True))


def test_lines_have_keys_headers_and_tombstones_as_asked() -> None:
    shape = LineShape(key_separator=":", headers=(("h", b"1"),), empty_is_null=True)
    assert parsed(b"k:v:w", 1, shape).value == b"v:w"
    assert parsed(b"k:", 1, shape).value is None
    assert parsed(b"k:v", 1, shape).headers == (("h", b"1"),)
    assert parsed(b"", 1, LineShape()).value == b""


def taken(text: str, line: bytes, **others: Any) -> Line:
    return parsed(line, 7, LineShape(format=LineFormat.parse(text), **others))


@pytest.mark.parametrize(
    ("text", "line", "key", "value"),
    [
        ("%k %v", b"k v w", b"k", b"v w"),
        (r"%k\t%v\n", b"k \tv", b"k ", b"v"),
        ("%k\t%v\n", b"k\tv", b"k", b"v"),
        ("%v<-%k", b"v<-k<-l", b"k<-l", b"v"),
        ("[%k] %v.", b"[k]] v..", b"k]", b"v."),
        ("%k%%%v", b"k%v", b"k", b"v"),
        (r"%k\\%v\r\n", b"k\\v\r", b"k", b"v"),
        ("%k=%v", b"=", b"", b""),
        ("%k=%v", b"\xff=\xfe\x00", b"\xff", b"\xfe\x00"),
        ("%k\udcff%v", b"k\xffv", b"k", b"v"),
        ("%v", b"", None, b""),
        ("%k", b"k", b"k", b""),
    ],
)
def test_a_line_is_taken_apart_as_its_format_says(
    text: str, line: bytes, key: bytes | None, value: bytes
) -> None:
    assert taken(text, line) == Line(key, value, (), None, None)


def test_what_a_format_does_not_say_is_as_given_for_all_lines() -> None:
    assert taken("%v", b"v", key="k", partition=2) == Line(b"k", b"v", (), 2, None)
    assert taken("%p %v", b"007 v", key="k", headers=(("h", b""),)) == Line(
        b"k", b"v", (("h", b""),), 7, None
    )
    assert taken("%k:%v", b"k:", empty_is_null=True).value is None
    assert taken("%k", b"k", empty_is_null=True).value is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("%k: %v", b"k:v"),
        ("[%k] %v", b"k] v"),
        ("%k=%v;", b"k=v"),
        ("=%v=", b"="),
        ("%p %v", b" v"),
        ("%p %v", b"-1 v"),
        ("%p %v", b"1_0 v"),
        ("%p %v", "² v".encode()),
        ("%p %v", b"2147483648 v"),
        ("%p %v", b"9" * 5_000 + b" v"),
    ],
)
def test_a_line_that_is_not_of_the_format_is_named(text: str, line: bytes) -> None:
    with pytest.raises(NoRecord, match=r"^line 7"):
        taken(text, line)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has none"),
        ("text 100%%", "has none"),
        ("json", "--json"),
        (r"\n", "has none"),
        ("%x %v", "'%x' is no field"),
        ("%k %h", "'%h' is no field"),
        ("%v %", "'%' is no field"),
        ("%k%v", "two fields"),
        ("%k %v %k", "%k stands in it twice"),
        (r"%k\n%v", "line break"),
        (r"\n%v", "line break"),
        (r"%v\n\n", "line break"),
    ],
)
def test_a_format_that_takes_nothing_apart_is_a_usage_error(text: str, said: str) -> None:
    with pytest.raises(Failure, match=said) as told:
        LineFormat.parse(text)
    assert told.value.status is ExitStatus.USAGE


line_bytes = st.binary(max_size=20).map(lambda data: data.replace(b"\n", b""))
# Few letters, that separators and what stands beside them have much in common.
few_letters = st.text("ab:%\\nt", max_size=4)


@given(
    key=line_bytes | few_letters.map(str.encode),
    value=line_bytes | few_letters.map(str.encode),
    begin=few_letters,
    separator=few_letters.filter(bool),
    end=few_letters,
    line_break=st.sampled_from(["", r"\n"]),
)
def test_what_consume_prints_in_a_format_is_read_back_in_it(
    key: bytes, value: bytes, begin: str, separator: str, end: str, line_break: str
) -> None:
    begin, middle, last = (
        text.replace("\\", "\\\\").replace("%", "%%") for text in (begin, separator, end)
    )
    text = f"{begin}%k{middle}%v{last}{line_break}"
    # Not only is it not in the key, it does not begin there either: `a:` before `::`.
    assume((key + separator.encode()).index(separator.encode()) == len(key))
    line = RecordFormat(text).line(Record("t", 2, 9, 5, key, value, ()))
    assert line.endswith(b"\n") == bool(line_break)
    assert taken(text, line.removesuffix(b"\n")) == Line(key, value, (), None, None)


def test_offsets_are_said_in_six_ways() -> None:
    assert ReadFrom.parse("start") == ReadFrom(Place.START)
    assert ReadFrom.parse("end") == ReadFrom(Place.END)
    assert ReadFrom.parse("47") == ReadFrom(Place.OFFSET, 47)
    assert ReadFrom.parse("+3") == ReadFrom(Place.AFTER_START, 3)
    assert ReadFrom.parse("-3") == ReadFrom(Place.BEFORE_END, 3)
    assert ReadFrom.parse("@17") == ReadFrom(Place.TIME, 17)
    assert ReadFrom.parse("@1970-01-01T00:00:01") == ReadFrom(Place.TIME, 1_000)
    assert abs(time.time() * 1000 - 300_000 - ReadFrom.parse("@-5m").number) < 60_000


@pytest.mark.parametrize(
    "wrong",
    ["middle", "", "+", "-", "+x", "-5m", "@", "@yesterday", "@1066-10-14", "1.5", "²", "9" * 20],
)
def test_an_offset_that_is_none_is_a_usage_error(wrong: str) -> None:
    with pytest.raises(Failure) as told:
        ReadFrom.parse(wrong)
    assert told.value.status is ExitStatus.USAGE


def test_a_verdict_counts_what_is_lost_replaced_and_doubled() -> None:
    place = TopicPartition("t", 0)
    ledger = Ledger({place: {0: "a", 1: "b", 2: "c"}})
    assert judged(ledger, {place: {0: "a", 1: "b", 2: "c"}}).good
    assert judged(ledger, {place: {0: "a", 1: "b"}}).lost == 1
    assert judged(ledger, {place: {0: "a", 1: "x", 2: "c"}}).replaced == 1
    assert judged(ledger, {place: {0: "a", 1: "b", 2: "c", 5: "a"}}).doubled == 1


def test_what_may_have_been_written_does_not_count_as_refused() -> None:
    ledger = Ledger()
    ledger.note_failure(OutcomeUnknown("the answer was lost"))
    ledger.note_failure(DeadlineExceeded("it was never sent"))
    assert (ledger.unknown, ledger.refused) == (1, 1)


async def lines_of(*files: str) -> list[tuple[int, bytes]]:
    return [line async for line in input_lines(files)]


async def test_files_are_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo\n\nlast")
    (tmp_path / "b").write_bytes(b"\n")
    read = await lines_of(str(tmp_path / "a"), str(tmp_path / "b"), os.devnull)
    assert read == [(1, b"one"), (2, b"two"), (3, b""), (4, b"last"), (5, b"")]


async def test_a_line_longer_than_a_block_stays_whole(tmp_path: Path) -> None:
    long = os.urandom(300_000).replace(b"\n", b"")
    (tmp_path / "a").write_bytes(long + b"\nshort")
    assert await lines_of(str(tmp_path / "a")) == [(1, long), (2, b"short")]


async def test_lines_of_a_pipe_come_when_they_are_written() -> None:
    out, into = os.pipe()
    try:
        lines = input_lines([f"/dev/fd/{out}"])
        os.write(into, b"one\ntw")
        assert await anext(lines) == (1, b"one")
        second = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0)
        assert not second.done()
        os.write(into, b"o\n")
        assert await second == (2, b"two")
        os.close(into)
        with pytest.raises(StopAsyncIteration):
            await anext(lines)
    finally:
        os.close(out)


@pytest.mark.parametrize("name", ["absent", "."])
async def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(Failure, match="cannot read"):
        await lines_of(str(tmp_path / name))


async def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logboat.client.input_lines.LONGEST_LINE", 1_000)
    (tmp_path / "a").write_bytes(bytes(2_000))
    with pytest.raises(Failure, match="line 1 is longer"):
        await lines_of(str(tmp_path / "a"))
