"""S2: a transaction's first batch is appended only with the guard that was given out for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logboat.partitions.storage import NOT_ASKED, ProducerStates, RecordsRejected, VerificationGuard
from logboat.partitions.storage.producer_states import Marker, Origin, ProducerBatch
from logboat.wire import ErrorCode

PID = 7
DAY_MS = 86_400_000


class Log:
    """The states of one log, with as much of a log around them as they ask for."""

    def __init__(self) -> None:
        self.states = ProducerStates()

    def ask(self, sequence: int = 0, epoch: int = 0, *, v2: bool = False) -> VerificationGuard:
        return self.states.begin_verification(
            PID, epoch, sequence, supports_epoch_bump=v2, now_ms=0
        )

    def append(
        self, guard: VerificationGuard | None, sequence: int = 0, epoch: int = 0, **rest: bool
    ) -> None:
        offset = self.states.map_end_offset
        batch = ProducerBatch(
            PID, epoch, sequence, offset, offset, 0, rest.get("transactional", True)
        )
        assert self.states.check(batch, Origin.CLIENT, guard) is None
        self.states.apply(batch)

    def end(self, epoch: int = 0, *, aborted: bool = False) -> None:
        self.states.apply_marker(Marker(PID, epoch, self.states.map_end_offset, 0, 0, aborted))

    def refuses(self, guard: VerificationGuard | None, sequence: int = 0, epoch: int = 0) -> int:
        before = self.states.entry(PID)
        with pytest.raises(RecordsRejected) as caught:
            self.append(guard, sequence, epoch)
        assert self.states.entry(PID) == before
        return caught.value.error


def test_s2_a_verified_batch_opens_its_transaction_and_those_behind_it_need_no_guard() -> None:
    log = Log()
    log.append(log.ask())
    assert log.ask(1) is NOT_ASKED
    log.append(NOT_ASKED, 1)
    log.end()
    assert log.refuses(NOT_ASKED, 2) == ErrorCode.INVALID_TXN_STATE, "the transaction has ended"


def test_s2_without_a_guard_nothing_is_asked_for() -> None:
    """As long as nobody asks a coordinator, and for what coordinators write themselves."""
    log = Log()
    log.append(None)
    log.end()
    log.append(None, 1)


def test_s2_a_batch_that_comes_after_the_abort_marker_opens_nothing() -> None:
    """KAFKA-14402: verified, and only then aborted."""
    log = Log()
    guard = log.ask()
    log.end(aborted=True)
    assert log.refuses(guard) == ErrorCode.INVALID_TXN_STATE


def test_s2_the_answer_for_one_transaction_does_not_open_the_next() -> None:
    """ABA: verified; abort marker; the next transaction asks; the old answer arrives."""
    log = Log()
    old = log.ask()
    log.end(aborted=True)
    new = log.ask()
    assert new is not old
    assert log.refuses(old) == ErrorCode.INVALID_TXN_STATE
    log.append(new)


def test_s2_those_that_asked_at_once_share_a_guard() -> None:
    log = Log()
    first, second = log.ask(0), log.ask(1)
    assert first is second
    log.append(first, 0)
    log.append(second, 1)


def test_s2_a_later_batch_waits_for_the_first_one_that_was_seen() -> None:
    """KAFKA-14920: the question about sequence 0 fails, that about sequence 5 does not."""
    log = Log()
    guard = log.ask(0)
    assert log.ask(5) is guard
    assert log.refuses(guard, 5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append(guard, 0)


@pytest.mark.parametrize("v2", [False, True])
def test_s2_in_the_second_protocol_an_unknown_producer_begins_at_zero(v2: bool) -> None:
    """KAFKA-18202."""
    log = Log()
    guard = log.ask(7, v2=v2)
    if v2:
        assert log.refuses(guard, 7) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    else:
        log.append(guard, 7)


def test_s2_an_old_epoch_is_fenced_before_anybody_is_asked() -> None:
    log = Log()
    log.append(log.ask(epoch=3), epoch=3)
    log.end(epoch=3)
    with pytest.raises(RecordsRejected) as caught:
        log.ask(epoch=2)
    assert caught.value.error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.refuses(NOT_ASKED, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_s2_a_new_epoch_needs_a_guard_of_its_own() -> None:
    log = Log()
    old = log.ask(epoch=0)
    new = log.ask(epoch=1)
    assert new is not old
    assert log.refuses(old, epoch=1) == ErrorCode.INVALID_TXN_STATE
    log.append(new, epoch=1)


def test_s2_a_marker_spares_the_guard_of_the_transaction_that_follows_it() -> None:
    """In the second protocol the marker bears the epoch with which the next one has begun."""
    log = Log()
    log.append(log.ask(epoch=0, v2=True), epoch=0)
    following = log.ask(epoch=1, v2=True)
    log.end(epoch=1)
    log.append(following, epoch=1)


def test_s2_in_the_first_protocol_a_marker_takes_every_guard_away() -> None:
    log = Log()
    guard = log.ask(epoch=1)
    log.end(epoch=1)
    assert log.refuses(guard, epoch=1) == ErrorCode.INVALID_TXN_STATE


def test_s2_a_duplicate_needs_no_guard() -> None:
    log = Log()
    log.append(log.ask())
    log.end()
    first = ProducerBatch(PID, 0, 0, 0, 0, 0, True)
    found = log.states.check(first, Origin.CLIENT, NOT_ASKED)
    assert found is not None
    assert found.base_offset == 0


def test_s2_guards_are_forgotten_with_their_producers_and_with_the_log() -> None:
    forget: list[Callable[[ProducerStates], None]] = [
        lambda states: states.expire(DAY_MS, DAY_MS),
        lambda states: states.clear(0),
    ]
    for way in forget:
        log = Log()
        guard = log.ask()
        way(log.states)
        assert log.refuses(guard) == ErrorCode.INVALID_TXN_STATE
