"""JSON without silent changes, read quickly where nothing can have changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.node.http.encodings import Encoding
from logboat.node.http.records_in import LineParser, RecordEncodings, RecordsIn, from_json
from logboat.node.http.strict_json import NotJson, exact, flat_object

TEXTS = st.text(st.sampled_from('a"\\/\n'), max_size=4)
SCALARS = TEXTS | st.integers(0, 9) | st.none() | st.booleans()
NAMES = st.sampled_from(["a", "b", 'c"', "\\"])


def members(values: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    """An object as text; names may come twice."""
    pairs = st.lists(st.tuples(NAMES.map(json.dumps), values), max_size=4)
    texts = pairs.map(lambda pairs: ",".join(f"{name}: {text}" for name, text in pairs))
    return texts.map(lambda text: "{" + text + "}")


FLAT = members(SCALARS.map(json.dumps))
LISTS = st.lists(FLAT, max_size=3).map(lambda texts: f"[{','.join(texts)}]")
DOCUMENTS = members(SCALARS.map(json.dumps) | LISTS | FLAT)


def outcome(read: Any, text: str) -> Any:
    try:
        return read(text.encode())
    except NotJson as error:
        return str(error)


@given(DOCUMENTS)
def test_what_is_read_once_is_what_reading_twice_says(text: str) -> None:
    assert outcome(flat_object, text) == outcome(exact, text)


@pytest.mark.parametrize(
    "text",
    [
        r'{"records":[{"value":"a\\"},{"value":"b\\"},{"value":"c","timestamp":1,"timestamp":2}]}',
        r'{"records":[{"value":"\""},{"value":"a","value":"b"}]}',
        r'{"records":[{"value":"\u0022\u0022","key":1,"key":2}]}',
        r'{"records":[{"value":"a"}],"records":[]}',
    ],
)
def test_a_name_that_comes_twice_hides_behind_no_escape(text: str) -> None:
    with pytest.raises(NotJson, match="twice"):
        flat_object(text.encode())


@pytest.mark.parametrize("encoding", [Encoding.STRING, Encoding.BASE64])
def test_records_read_together_are_those_read_one_by_one(encoding: Encoding) -> None:
    records: list[dict[str, Any]] = [
        {"value": "YWJj"},
        {"value": "", "key": None},
        {"value": "YQ==", "key": "Yg==", "timestamp": 0},
    ]
    document = {"records": records, "partition": 2, "value_encoding": encoding}
    encodings = RecordEncodings(key=encoding)
    together = from_json(json.dumps(document).encode(), encodings, 17)
    # A tombstone is not usual: all of them are read one by one then.
    document["records"] = [*records, {"value": None}]
    one_by_one = from_json(json.dumps(document).encode(), encodings, 17)
    assert together.records == one_by_one.records[:-1]
    assert {record.partition for record in together.records} == {2}


def test_a_batch_that_names_json_keeps_its_numbers_text() -> None:
    line = b'{"records":[{"value":-0}],"value_encoding":"json","partition":0}'
    batch = LineParser(RecordEncodings()).parse(line, 1, 17)
    assert isinstance(batch, RecordsIn)
    assert [record.value for record in batch.records] == [b"-0"]
