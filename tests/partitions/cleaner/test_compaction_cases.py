"""Cases R11 and P15: what outlives compaction is what was written, to the byte and the millisecond.

R11 takes the whole kind of fault: any part of a batch may go, its first record, its last or one in
the middle, and times may run backwards, so that the batch's base time belongs to a record that is
gone, or lies behind one that stays.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.wire.compression import Compression
from logboat.wire.records import Batch, Record, crc_of, decode_records, encode_batch
from tests.partitions.cleaner.compaction_scene import CONFIG, NOW_MS, Scene

DELTAS = (0, -50_000, 7_000)
"""Of the records of a batch to its base time: case R11's."""

HEADERS: list[tuple[str, bytes | None]] = [
    ("x", b"1"),
    ("x", b"2"),
    ("", b"e"),
    ("n", None),
    ("z", b""),
    ("ключ", b"\x00\xff"),
]
"""Case P15's."""


def triple(compression: Compression, timestamps: tuple[int, ...] = DELTAS) -> bytearray:
    return encode_batch(
        [
            Record(
                key=b"k%d" % number,
                value=b"value %d" % number,
                headers=[("h", b"%d" % number), ("h", None)],
                timestamp=NOW_MS + delta,
            )
            for number, delta in enumerate(timestamps, 1)
        ],
        compression=compression,
        producer_id=9,
        producer_epoch=4,
        base_sequence=70,
    )


def seen(record: Record) -> tuple[object, ...]:
    return record.offset, record.timestamp, record.key, record.value, tuple(record.headers)


async def compacted_without(
    scene: Scene, data: bytearray, doomed: list[int], others: int = 3
) -> tuple[Batch, Batch, int]:
    """(the batch as it was, what became of it, its base offset) after newer values came for the
    records with these numbers, from 1."""
    scene.put(("before", "x"))
    base_offset = scene.append(data)
    before = next(b for b in scene.batches() if b.header.base_offset == base_offset)
    scene.put(*[(f"k{number}", "newer") for number in doomed])
    for number in range(others):
        scene.put((f"other{number}", "x" * 300))
    scene.roll()
    scene.put(("active", "x"))
    assert await scene.clean()
    after = next(b for b in scene.batches() if b.header.base_offset == base_offset)
    return before, after, base_offset


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
@pytest.mark.parametrize("doomed", [[1], [2], [3], [1, 2], [1, 3], [2, 3]], ids=str)
async def test_r11_survivors_keep_their_times_and_the_batch_its_range(
    doomed: list[int], compression: Compression
) -> None:
    scene = await Scene.begin(replace(CONFIG, segment_bytes=2000))
    before, after, base_offset = await compacted_without(scene, triple(compression), doomed)
    expected = [seen(r) for n, r in enumerate(decode_records(before.view), 1) if n not in doomed]
    left = decode_records(after.view)
    assert [seen(record) for record in left] == expected
    header = after.header
    assert (header.base_offset, header.last_offset) == (base_offset, base_offset + 2)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 4, 70)
    assert header.max_timestamp == max(record.timestamp for record in left)
    assert header.compression is compression
    assert header.crc == crc_of(after.view)
    await scene.close()


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
async def test_r11_a_look_up_by_time_finds_the_survivors_where_they_were(
    compression: Compression,
) -> None:
    scene = await Scene.begin(replace(CONFIG, segment_bytes=2000))
    data = triple(compression, (1_000_000, 0, 2_000_000))
    _, _, base_offset = await compacted_without(scene, data, [1])
    for reopened in (False, True):
        if reopened:
            await scene.reopen()
        for wanted, offset in ((1_000_000, 2), (1_000_001, 2), (2_000_000, 2)):
            found = scene.log.offset_for_timestamp(NOW_MS + wanted)
            assert found is not None
            assert (found.offset, found.timestamp_ms) == (base_offset + offset, NOW_MS + 2_000_000)
        assert scene.log.offset_for_timestamp(NOW_MS + 2_000_001) is None
    await scene.close()


@settings(max_examples=60, deadline=None)
@given(
    times=st.lists(st.integers(-(2**33), 2**33), min_size=1, max_size=6),
    doomed=st.sets(st.integers(1, 6)),
    compression=st.sampled_from([Compression.NONE, Compression.GZIP, Compression.ZSTD]),
)
async def test_r11_whatever_goes_nothing_of_the_rest_moves(
    times: list[int], doomed: set[int], compression: Compression
) -> None:
    scene = await Scene.begin(replace(CONFIG, segment_bytes=2000, timestamp_after_max_ms=2**62))
    data = triple(compression, tuple(times))
    gone = sorted(number for number in doomed if number <= len(times))
    before, after, _ = await compacted_without(scene, data, gone or [7])
    expected = [seen(r) for n, r in enumerate(decode_records(before.view), 1) if n not in gone]
    assert [seen(record) for record in decode_records(after.view)] == expected
    assert after.header.last_offset == before.header.last_offset
    if expected:
        assert after.header.max_timestamp == max(r.timestamp for r in decode_records(after.view))
    await scene.close()


@pytest.mark.parametrize("log_append_time", [False, True])
@pytest.mark.parametrize("compression", list(Compression), ids=lambda codec: codec.name)
async def test_p15_headers_keep_order_duplicates_and_nulls_through_compaction(
    compression: Compression, log_append_time: bool
) -> None:
    """Also 2,000 of them, and none at all."""
    scene = await Scene.begin(
        replace(CONFIG, segment_bytes=100_000, log_append_time=log_append_time)
    )
    many: list[tuple[str, bytes | None]] = [("h", b"%d" % number) for number in range(2000)]
    records = [
        Record(key=b"k%d" % number, value=b"v", headers=headers, timestamp=NOW_MS)
        for number, headers in enumerate([HEADERS[:1], HEADERS, many, HEADERS[:0]])
    ]
    base_offset = scene.append(encode_batch(records, compression=compression))
    scene.put(("k0", "newer"))
    scene.roll()
    scene.put(("active", "x"))
    assert await scene.clean()
    (batch,) = [b for b in scene.batches() if b.header.base_offset == base_offset]
    left = decode_records(batch.view)
    assert [list(record.headers) for record in left] == [HEADERS, many, []]
    assert [record.offset - base_offset for record in left] == [1, 2, 3]
    await scene.close()
