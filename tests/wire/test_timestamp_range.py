"""The walk over times says what unpacking the records would."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.wire import WireError
from logboat.wire.records import (
    HEADER_SIZE,
    InvalidBatch,
    Record,
    decode_records,
    encode_batch,
    parse_header,
    timestamp_range,
)

bytes_or_null = st.one_of(st.none(), st.binary(max_size=300))
records = st.builds(
    Record,
    key=bytes_or_null,
    value=bytes_or_null,
    headers=st.lists(st.tuples(st.text(max_size=5), bytes_or_null), max_size=3),
    timestamp=st.integers(-1, 2**62),
)


@given(st.lists(records, min_size=1, max_size=20))
def test_the_range_is_that_of_the_unpacked_records(given_: list[Record]) -> None:
    batch = encode_batch(given_)
    found = timestamp_range(parse_header(batch), bytes(batch[HEADER_SIZE:]))
    times = [record.timestamp for record in decode_records(batch)]
    assert found == (min(times), max(times))


def test_a_batch_without_records_has_no_times() -> None:
    header = parse_header(encode_batch([Record()]))._replace(records_count=0)
    assert timestamp_range(header, b"") == (-1, -1)


@given(st.binary(max_size=200), st.integers(1, 10))
def test_what_is_no_records_is_refused_or_walked_and_nothing_else(data: bytes, count: int) -> None:
    header = parse_header(encode_batch([Record()]))._replace(records_count=count)
    with contextlib.suppress(WireError):
        timestamp_range(header, data)


def test_records_that_do_not_fill_the_batch_are_refused() -> None:
    batch = encode_batch([Record(value=b"abc"), Record(value=b"d")])
    header, body = parse_header(batch), bytes(batch[HEADER_SIZE:])
    for wrong in (body[:-1], body + b"\0", b"", b"\0" + body):
        with pytest.raises(InvalidBatch):
            timestamp_range(header, wrong)
