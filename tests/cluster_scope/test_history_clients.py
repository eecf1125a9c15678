"""The clients' own codec, against the product's: two that share no line must agree."""

from __future__ import annotations

import pytest

from logboat.jepsen_style.clients.batches import encode_batch, scan, values_of
from logboat.jepsen_style.clients.primitives import Malformed
from logboat.wire.records import Record, batches, decode_records
from logboat.wire.records import encode_batch as encode_by_wire

VALUES = [b"a", b"", b"x" * 300]


def test_wire_reads_what_the_clients_write() -> None:
    data = encode_batch(VALUES, timestamp_ms=77, producer_id=5, producer_epoch=1, base_sequence=9)
    (batch,) = batches(memoryview(data))
    assert [record.value for record in decode_records(batch.view)] == VALUES


def test_the_clients_read_what_wire_writes() -> None:
    data = bytes(encode_by_wire([Record(value=value, timestamp=1) for value in VALUES]))
    assert values_of(data) == list(enumerate(VALUES))


def test_a_batch_cut_off_at_the_end_is_left_out() -> None:
    whole = encode_batch(VALUES, timestamp_ms=1)
    assert values_of(whole + whole[:-1]) == list(enumerate(VALUES))


def test_a_damaged_batch_is_never_taken_for_one() -> None:
    damaged = bytearray(encode_batch(VALUES, timestamp_ms=1))
    damaged[70] ^= 1
    assert list(scan(damaged)) == []
    with pytest.raises(Malformed):
        values_of(bytes(damaged))
