"""Record batches: layout, checks, and what a broker writes into them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.wire import ErrorCode, WireError
from logboat.wire.compression import Compression
from logboat.wire.control_records import EndTxnMarker
from logboat.wire.records import (
    HEADER_SIZE,
    BadCrc,
    BadMagic,
    Batch,
    ControlType,
    InvalidBatch,
    Record,
    RecordsError,
    TimestampType,
    TruncatedBatch,
    assign_append_time,
    assign_offsets,
    batches,
    check_crc,
    check_from_client,
    control_type,
    crc_of,
    decode_records,
    encode_batch,
    encode_end_txn_marker,
    parse_header,
    writable,
)

LIBRDKAFKA_BATCH = bytes.fromhex(
    "0000000000000000" "0000006e" "00000000" "02" "fb59c98a" "0000" "00000003"
    "0000018bcfe56800" "0000018bcfe56805" "ffffffffffffffff" "ffff" "ffffffff" "00000004"
    "22000000046b300476300402680278026e01"
    "22000202046b310476310402680278026e01"
    "22000404046b320476320402680278026e01"
    "0c000a06010100"
)  # fmt: skip
"""What librdkafka 2.16 sent for RECORDS, byte for byte, as its mock broker stored it."""

RECORDS = [
    *(
        Record(
            key=f"k{number}".encode(),
            value=f"v{number}".encode(),
            headers=[("h", b"x"), ("n", None)],
            timestamp=1_700_000_000_000 + number,
            offset=number,
        )
        for number in range(3)
    ),
    Record(key=None, value=None, timestamp=1_700_000_000_005, offset=3),
]


def only(buffer: bytes | bytearray | memoryview) -> Batch:
    (batch,) = batches(buffer)
    return batch


def some_records(count: int = 5) -> list[Record]:
    return [
        Record(key=b"k%d" % number, value=b"v" * number, timestamp=1000 + number)
        for number in range(count)
    ]


def with_crc(batch: bytearray) -> bytearray:
    batch[17:21] = crc_of(batch).to_bytes(4, "big")
    return batch


def test_a_batch_has_the_bytes_of_librdkafka() -> None:
    assert encode_batch(RECORDS, leader_epoch=0) == LIBRDKAFKA_BATCH
    batch = only(LIBRDKAFKA_BATCH)
    check_crc(batch)
    check_from_client(batch.header)
    assert decode_records(batch.view) == RECORDS


def test_s1_the_header_says_what_the_batch_holds() -> None:
    header = parse_header(
        encode_batch(
            some_records(4),
            base_offset=100,
            leader_epoch=7,
            producer_id=9,
            producer_epoch=3,
            base_sequence=2**31 - 2,
            transactional=True,
            timestamp_type=TimestampType.LOG_APPEND_TIME,
        )
    )
    assert (header.base_offset, header.last_offset, header.next_offset) == (100, 103, 104)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1003)
    assert (header.partition_leader_epoch, header.producer_id, header.producer_epoch) == (7, 9, 3)
    assert (header.base_sequence, header.last_sequence) == (2**31 - 2, 1)  # sequences wrap
    assert header.is_transactional
    assert header.has_producer_id
    assert not header.is_control
    assert not header.has_delete_horizon
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.compression is Compression.NONE
    assert header.records_count == 4


def test_batches_are_found_one_behind_the_other() -> None:
    first, second = encode_batch(some_records(2)), encode_batch(some_records(3), base_offset=2)
    found = list(batches(first + second))
    assert [(batch.position, batch.header.base_offset) for batch in found] == [
        (0, 0),
        (len(first), 2),
    ]
    assert [bytes(batch.view) for batch in found] == [first, second]
    assert list(batches(b"")) == []


def test_a_partial_tail_is_an_error_unless_asked_for() -> None:
    whole = encode_batch(some_records(2))
    for cut in range(1, len(whole)):
        tail = bytes(whole[:cut])
        assert len(list(batches(whole + tail, partial_tail=True))) == 1
        with pytest.raises(TruncatedBatch):
            list(batches(whole + tail))


def test_offsets_are_assigned_without_touching_the_checksum() -> None:
    data = encode_batch(some_records())
    before = only(data).header
    assign_offsets(data, before, base_offset=2**40, leader_epoch=12)
    batch = only(data)
    check_crc(batch)
    assert batch.header == before._replace(base_offset=2**40, partition_leader_epoch=12)
    assert [record.offset for record in decode_records(data)] == [2**40 + n for n in range(5)]


def test_append_time_renews_the_checksum_and_hides_create_times() -> None:
    data = encode_batch(some_records(), compression=Compression.GZIP)
    after = assign_append_time(data, only(data).header, now_ms=123_456)
    batch = only(data)
    check_crc(batch)
    assert batch.header == after
    assert after.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert after.compression is Compression.GZIP
    assert after.base_timestamp == 1000
    assert {record.timestamp for record in decode_records(data)} == {123_456}


def test_a_readonly_buffer_is_copied_before_it_is_written_to() -> None:
    data = bytes(encode_batch(some_records()))
    copy = writable(data)
    assign_offsets(copy, parse_header(copy), base_offset=9, leader_epoch=1)
    assert parse_header(data).base_offset == 0
    own = bytearray(data)
    assert writable(own).obj is own


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_another_magic_is_refused(magic: int) -> None:
    data = encode_batch(some_records())
    data[16] = magic
    with pytest.raises(BadMagic) as refused:
        list(batches(data))
    assert refused.value.error_code is ErrorCode.INVALID_RECORD
    with pytest.raises(BadMagic):
        parse_header(data[:30])  # old formats are shorter than a header


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31), 2**31 - 1])
def test_an_impossible_length_is_refused(length: int) -> None:
    data = encode_batch(some_records())
    data[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(TruncatedBatch) as refused:
        list(batches(data))
    assert refused.value.error_code is ErrorCode.CORRUPT_MESSAGE


def test_a_flipped_bit_is_seen_by_the_checksum() -> None:
    data = encode_batch(some_records())
    for position in range(17, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        with pytest.raises(BadCrc) as refused:
            check_crc(only(damaged))
        assert refused.value.error_code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("records_count", 0),
        ("records_count", -1),
        ("records_count", 4),
        ("last_offset_delta", 5),
        ("last_offset_delta", -1),
        ("attributes", 0x20),
        ("attributes", 0x05),
        ("producer_id", 7),
    ],
)
def test_a_broker_refuses_a_header_that_contradicts_itself(field: str, value: int) -> None:
    header = parse_header(encode_batch(some_records()))
    check_from_client(header)
    with pytest.raises(InvalidBatch) as refused:
        check_from_client(header._replace(**{field: value}))
    assert refused.value.error_code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("count", [0, 1, 4, 6, 1000, 2**31 - 1, -1])
def test_another_number_of_records_than_declared_is_refused(count: int) -> None:
    data = encode_batch(some_records())
    data[57:61] = count.to_bytes(4, "big", signed=True)
    with pytest.raises(InvalidBatch):
        decode_records(data)


def test_offsets_inside_a_batch_rise() -> None:
    data = encode_batch(some_records(3))
    second = data.index(b"k1") - 2  # offset delta, key length, key
    assert data[second] == 2
    for delta in (0, 4, 6, 1):  # equal to the first, equal to the third, above the last, negative
        broken = bytearray(data)
        broken[second] = delta
        with pytest.raises(InvalidBatch, match="offset delta"):
            decode_records(broken)


def test_s11_compaction_may_leave_gaps_and_empty_batches() -> None:
    data = encode_batch(some_records(3), base_offset=10)
    data[data.index(b"k1") - 2] = 2
    data[23:27] = (9).to_bytes(4, "big")
    with pytest.raises(InvalidBatch, match="last offset delta of 9"):
        check_from_client(parse_header(data))
    assert [record.offset for record in decode_records(data)] == [10, 11, 12]
    empty = bytearray(data[:HEADER_SIZE])
    empty[8:12] = (HEADER_SIZE - 12).to_bytes(4, "big")
    empty[57:61] = bytes(4)
    assert decode_records(empty) == []
    assert parse_header(empty).last_offset == 19


def test_the_buffer_is_exactly_one_batch() -> None:
    data = encode_batch(some_records())
    with pytest.raises(TruncatedBatch):
        decode_records(data + b"\0")
    with pytest.raises(TruncatedBatch):
        decode_records(data[:-1])


def test_header_keys_are_text_and_replaced_where_they_are_not() -> None:
    data = encode_batch([Record(value=b"v", headers=[("kk", b"x")])])
    data[data.index(b"kk")] = 0xFF
    assert decode_records(data)[0].headers == [("\ufffdk", b"x")]


def test_a_batch_needs_a_record() -> None:
    with pytest.raises(ValueError, match="needs a record"):
        encode_batch([])


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_ends_a_transaction(commit: bool) -> None:
    data = encode_end_txn_marker(
        commit=commit, producer_id=5, producer_epoch=2, coordinator_epoch=17, timestamp=99
    )
    batch = only(data)
    check_crc(batch)
    assert batch.header.is_control
    assert batch.header.is_transactional
    assert (batch.header.producer_id, batch.header.producer_epoch) == (5, 2)
    assert batch.header.base_sequence == -1
    with pytest.raises(InvalidBatch, match="control batch"):
        check_from_client(batch.header)
    (record,) = decode_records(data)
    assert record.timestamp == 99
    assert record.value == b"\0\0" + (17).to_bytes(4, "big")
    assert control_type(record) is (ControlType.COMMIT if commit else ControlType.ABORT)
    assert EndTxnMarker.decode(record.value[2:], 0).coordinator_epoch == 17


def test_a_control_type_of_the_future_is_no_error_but_a_short_key_is() -> None:
    assert control_type(Record(key=b"\0\0\0\x63")) is None
    assert control_type(Record(key=b"\0\1\0\2more")) is ControlType.LEADER_CHANGE
    for key in (None, b"", b"\0\0\0"):
        with pytest.raises(InvalidBatch):
            control_type(Record(key=key))


nullable_bytes = st.none() | st.binary(max_size=40)
any_record = st.builds(
    Record,
    key=nullable_bytes,
    value=nullable_bytes,
    headers=st.lists(st.tuples(st.text(max_size=5), nullable_bytes), max_size=3),
    timestamp=st.integers(0, 2**45),
)


@settings(deadline=None)  # other work may hold the processor
@given(
    records=st.lists(any_record, min_size=1, max_size=8),
    base_offset=st.integers(0, 2**60),
    compression=st.sampled_from(Compression),
)
def test_records_round_trip(
    records: list[Record], base_offset: int, compression: Compression
) -> None:
    data = encode_batch(records, base_offset=base_offset, compression=compression)
    batch = only(data)
    check_crc(batch)
    check_from_client(batch.header)
    decoded = decode_records(data)
    assert [record.offset for record in decoded] == [
        base_offset + delta for delta in range(len(records))
    ]
    assert [(r.key, r.value, list(r.headers), r.timestamp) for r in decoded] == [
        (r.key, r.value, list(r.headers), r.timestamp) for r in records
    ]


def test_damage_raises_nothing_but_wire_errors() -> None:
    rng = random.Random(7)
    originals = [
        encode_batch(some_records(6), compression=compression) for compression in Compression
    ]
    for round_ in range(1500):
        damaged = bytearray(originals[round_ % len(originals)])
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            for batch in batches(damaged):
                decode_records(batch.view, max_bytes=100_000)
        except WireError:
            pass


def test_every_refusal_is_a_records_error() -> None:
    for error in (BadCrc, BadMagic, InvalidBatch, TruncatedBatch):
        assert issubclass(error, RecordsError)


def test_renewing_a_checksum_makes_a_batch_valid_again() -> None:
    data = encode_batch(some_records())
    data[22] |= 0x10
    with pytest.raises(BadCrc):
        check_crc(only(data))
    check_crc(only(with_crc(data)))


def test_records_of_every_size_and_place_round_trip_in_a_long_batch() -> None:
    """Common records are encoded from tables; the edges of these are nothing special."""
    sizes = [0, 1, 63, 64, 1022, 1023, 1024, 1025, 9000]
    records = [
        Record(
            key=None if number % 3 else b"k" * (number % 70),
            value=None if number % 7 == 0 else b"v" * sizes[number % len(sizes)],
            headers=() if number % 5 else [("h", b"x" if number % 2 else None)],
            timestamp=1_000 + (number // 500) * 100_000,
            offset=number,
        )
        for number in range(2_500)
    ]
    assert decode_records(encode_batch(records)) == records
