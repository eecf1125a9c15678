"""What `consume` prints, `produce` takes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.client.consume_group import document_of
from logboat.client.consume_records import first_query
from logboat.client.failure import Failure
from logboat.client.produce_lines import LineShape, _parsed
from logboat.client.record_format import RecordFormat
from logboat.client.sdk.errors import DeadlineExceeded, OutcomeUnknown
from logboat.client.sdk.records import Record, TopicPartition
from logboat.client.verifying import Ledger, judged

RECORD: dict[str, Any] = {
    "topic": "orders",
    "partition": 3,
    "offset": 17,
    "timestamp": 5,
    "key": None,
    "value": "v",
    "headers": [{"key": "h", "value": "x"}],
}


def test_a_format_names_fields_and_knows_the_escapes() -> None:
    line = RecordFormat(r"%t-%p@%o %d [%k] %v %h 100%%\n").line(RECORD)
    assert line == "orders-3@17 5 [] v h=x 100%\n"
    assert json.loads(RecordFormat("json").line(RECORD)) == RECORD


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
    line = RecordFormat("json").line(document_of(record))
    assert line.count("\n") == 1
    taken = _parsed(line.rstrip("\n").encode(), 1, LineShape(is_json=True))
    assert (taken.key, taken.value, taken.headers) == (key, value, tuple(headers))
    assert (taken.partition, taken.timestamp) == (2, timestamp)


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"value": 1}', '{"value": "x", "headers": 1}'])
def test_a_line_that_is_no_record_is_named(line: str) -> None:
    with pytest.raises(Failure, match="line 7"):
        _parsed(line.encode(), 7, LineShape(is_json=True))


def test_lines_have_keys_headers_and_tombstones_as_asked() -> None:
    shape = LineShape(key_separator=":", headers=(("h", b"1"),), empty_is_null=True)
    assert _parsed(b"k:v:w", 1, shape).value == b"v:w"
    assert _parsed(b"k:", 1, shape).value is None
    assert _parsed(b"k:v", 1, shape).headers == (("h", b"1"),)
    assert _parsed(b"", 1, LineShape()).value == b""


def test_offsets_are_said_in_six_ways() -> None:
    assert first_query("start") == ""
    assert first_query("end") == "tail=0"
    assert first_query("47") == "offset=47"
    assert first_query("-3") == "tail=3"
    assert first_query("@17") == "timestamp=17"
    assert first_query("@1970-01-01T00:00:01") == "timestamp=1000"
    assert first_query("@-5m").startswith("timestamp=")
    for wrong in ("middle", "@yesterday", "+x"):
        with pytest.raises(Failure):
            first_query(wrong)


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


def test_files_are_read_line_by_line(tmp_path: Path) -> None:
    import asyncio

    from logboat.client.produce_lines import _lines

    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n\nlast")

    async def read() -> list[tuple[int, bytes]]:
        return [line async for line in _lines((str(path),))]

    assert asyncio.run(read()) == [(1, b"one"), (2, b"two"), (3, b""), (4, b"last")]
