"""Idempotent producers: case P36, and the state as a function of the log."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.partitions.storage import RecordsRejected
from logboat.partitions.storage.producer_states import (
    Marker,
    Origin,
    ProducerBatch,
    ProducerStates,
    RememberedBatch,
    SnapshotDamaged,
    Undo,
)
from logboat.wire import ErrorCode

PID = 9


def sent(
    sequence: int, *, count: int = 2, offset: int = 0, epoch: int = 0, transactional: bool = False
) -> ProducerBatch:
    return ProducerBatch(PID, epoch, sequence, offset, offset + count - 1, 1000, transactional)


def seven_batches() -> ProducerStates:
    """Batches of two records at sequences 0, 2, ... 12 and offsets 100, 102, ..."""
    states = ProducerStates()
    for sequence in range(0, 14, 2):
        batch = sent(sequence, offset=100 + sequence)
        assert states.check(batch, Origin.CLIENT) is None
        states.apply(batch)
    return states


def refused(states: ProducerStates, batch: ProducerBatch) -> ErrorCode:
    before = states.entries()
    with pytest.raises(RecordsRejected) as caught:
        states.check(batch, Origin.CLIENT)
    assert states.entries() == before
    return caught.value.error


def test_a_repeat_of_the_last_five_batches_is_answered_with_its_offset() -> None:
    states = seven_batches()
    for sequence in (12, 10, 8, 6, 4):
        first = states.check(sent(sequence, offset=999), Origin.CLIENT)
        assert first is not None
        assert (first.base_offset, first.last_offset) == (100 + sequence, 101 + sequence)


def test_older_repeats_gaps_and_overlaps_are_out_of_order() -> None:
    states = seven_batches()
    for batch in (sent(2), sent(0), sent(20), sent(12, count=4), sent(13), sent(4, count=1)):
        assert refused(states, batch) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_lower_epoch_is_fenced_and_a_new_one_starts_at_zero() -> None:
    states = seven_batches()
    assert refused(states, sent(14, epoch=-1)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(states, sent(14, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    bumped = sent(0, epoch=1, offset=114)
    assert states.check(bumped, Origin.CLIENT) is None
    states.apply(bumped)
    assert refused(states, sent(14)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(states, sent(12)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert states.check(sent(0, epoch=1), Origin.CLIENT) is not None


def test_sequences_wrap_to_zero_after_the_largest() -> None:
    states = ProducerStates()
    wrapping = sent(2147483646, count=4, offset=0)
    assert wrapping.last_sequence == 1
    states.apply(wrapping)
    assert states.check(sent(2147483646, count=4), Origin.CLIENT) is not None
    assert states.check(sent(2, offset=4), Origin.CLIENT) is None
    assert refused(states, sent(0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    at_the_end = ProducerStates()
    at_the_end.apply(sent(2147483646, count=2))
    assert at_the_end.check(sent(0, offset=2), Origin.CLIENT) is None


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert ProducerStates().check(sent(77), Origin.CLIENT) is None


def test_a_silent_producer_expires_unless_its_transaction_is_open() -> None:
    states = seven_batches()
    states.expire(now_ms=1999, expiration_ms=1000)
    assert len(states) == 1
    states.expire(now_ms=2000, expiration_ms=1000)
    assert len(states) == 0
    states.apply(sent(0, transactional=True))
    states.expire(now_ms=9999, expiration_ms=1000)
    assert len(states) == 1


def test_s6_a_snapshot_has_kafkas_bytes() -> None:
    states = ProducerStates()
    states.apply(ProducerBatch(5, 2, 7, 40, 42, 1234, False))
    data = states.snapshot()
    assert data[:2] == b"\x00\x01"
    assert data[6:] == bytes.fromhex(
        "00000001"  # one entry
        "0000000000000005" "0002" "00000009" "000000000000002a" "00000002"
        "00000000000004d2" "ffffffff" "ffffffffffffffff"
    )  # fmt: skip
    assert ProducerStates.load(data, 43).entries() == states.entries()


@pytest.mark.parametrize("cut", [0, 5, 9, 30, -1])
def test_a_damaged_snapshot_is_recognised(cut: int) -> None:
    data = seven_batches().snapshot()
    with pytest.raises(SnapshotDamaged):
        ProducerStates.load(data[:cut], 114)
    flipped = bytearray(data)
    flipped[cut] ^= 1
    with pytest.raises(SnapshotDamaged):
        ProducerStates.load(flipped, 114)


def test_windows_are_refilled_from_the_batches_below_a_snapshot() -> None:
    states = seven_batches()
    loaded = ProducerStates.load(states.snapshot(), 114)
    assert loaded.entries() != states.entries()
    loaded.refill_windows([sent(sequence, offset=100 + sequence) for sequence in range(0, 14, 2)])
    assert loaded.entries() == states.entries()


def test_an_open_transaction_holds_the_last_stable_offset_back() -> None:
    states = ProducerStates()
    states.apply(sent(0, offset=10, transactional=True))
    assert states.last_stable_offset(50) == 10
    assert refused(states, sent(2, offset=12)) is ErrorCode.INVALID_TXN_STATE
    marker = Marker(PID, 0, 20, 2000, 3, aborted=True)
    states.check_marker(marker)
    _, completed = states.apply_marker(marker)
    assert completed is not None
    assert (completed.first_offset, completed.last_offset, completed.aborted) == (10, 20, True)
    assert states.last_stable_offset(15) == 10
    assert states.last_stable_offset(21) == 21
    with pytest.raises(RecordsRejected) as caught:
        states.check_marker(marker._replace(coordinator_epoch=2))
    assert caught.value.error is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def late(states: ProducerStates, epoch: int, transaction_version: int) -> bool:
    try:
        states.check_marker(Marker(PID, epoch, 50, 2000, 3, aborted=True), transaction_version)
    except RecordsRejected as rejected:
        return rejected.error is ErrorCode.INVALID_PRODUCER_EPOCH
    return False


def test_a_marker_of_the_open_transactions_own_epoch_is_late_from_version_2_on() -> None:
    """KIP-890: it belongs to the transaction before, whose marker carries this one's epoch."""
    states = ProducerStates()
    states.apply(sent(0, epoch=4, offset=10, transactional=True))
    assert [late(states, epoch, 2) for epoch in (3, 4, 5)] == [True, True, False]
    assert [late(states, epoch, 0) for epoch in (3, 4, 5)] == [True, False, False]
    states.apply_marker(Marker(PID, 5, 11, 2000, 3, aborted=True))
    assert not late(states, 5, 2), "the same marker again (KAFKA-19999)"


def test_a_marker_of_the_last_epoch_is_never_late() -> None:
    """KAFKA-20090: there is no larger one."""
    states = ProducerStates()
    states.apply(sent(0, epoch=32767, offset=10, transactional=True))
    assert not late(states, 32767, 2)


def test_a_marker_of_a_new_epoch_forgets_the_batches_of_the_old_one() -> None:
    states = ProducerStates()
    states.apply(sent(0, epoch=4, offset=10, transactional=True))
    states.apply_marker(Marker(PID, 5, 12, 2000, 3, aborted=False))
    assert refused(states, sent(2, epoch=5, offset=13)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(sent(0, epoch=5, offset=13), Origin.CLIENT) is None
    states = ProducerStates()
    states.apply(sent(0, epoch=4, offset=10, transactional=True))
    states.apply_marker(Marker(PID, 4, 12, 2000, 3, aborted=False))
    assert states.check(sent(2, epoch=4, offset=13), Origin.CLIENT) is None


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 1), st.booleans(), st.integers(1, 3)),
        max_size=25,
    ),
    st.integers(0, 25),
)
def test_s3_rolling_back_gives_the_state_before(
    steps: list[tuple[int, int, bool, int]], keep: int
) -> None:
    states, offset = ProducerStates(), 0
    undos: list[Undo] = []
    at_keep, keep_offset = states.entries(), 0
    for number, (producer_id, epoch, transactional, count) in enumerate(steps):
        if number == keep:
            at_keep, keep_offset, undos = states.entries(), offset, []
        last = states.entry(producer_id)
        sequence = last.last_sequence + 1 if last else 0
        undos.append(
            states.apply(
                ProducerBatch(
                    producer_id, epoch, sequence, offset, offset + count - 1, 1, transactional
                )
            )
        )
        offset += count
    if keep >= len(steps):
        at_keep, keep_offset, undos = states.entries(), offset, []
    states.roll_back(undos, keep_offset)
    assert states.entries() == at_keep
    open_transactions = [
        entry.transaction_first_offset
        for entry in at_keep.values()
        if entry.transaction_first_offset >= 0
    ]
    assert states.last_stable_offset(1000) == min(open_transactions, default=1000)


def test_a_remembered_batch_knows_its_first_sequence_across_the_wrap() -> None:
    assert RememberedBatch(1, 13, 3, 0).base_sequence == 2147483646
