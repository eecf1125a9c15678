"""What an idempotent producer sends next, and what an answer means for the batches behind it."""

from __future__ import annotations

import pytest

from logboat.jepsen_style.clients.sequences import (
    DISAGREEMENTS,
    OUT_OF_ORDER,
    Resend,
    Sending,
    Verdict,
    Window,
)

LOST = "no answer: the connection was closed"


def window(resend: Resend = Resend.ALL, *, size: int = 5, batches: int = 3) -> Window:
    made = Window(size, resend)
    for number in range(batches):
        made.add([f"{number}", f"{number}'"], process=number, deadline=9.0, timestamp_ms=1)
    return made


def send_all(window: Window) -> list[Sending]:
    sent = []
    while (sending := window.next_to_send()) is not None:
        window.on_sent(sending)
        sent.append(sending)
    return sent


def answer(window: Window, sending: Sending, error: str) -> Verdict:
    return window.on_answer(sending, error, in_doubt=True)


def test_all_that_fit_are_on_their_way_at_once_in_the_order_of_their_sequences() -> None:
    full = window(batches=5)
    assert full.room == 0
    assert [sending.base_sequence for sending in send_all(full)] == [0, 2, 4, 6, 8]
    assert full.next_to_send() is None


@pytest.mark.parametrize("resend", Resend)
def test_an_acknowledged_batch_makes_room_also_when_it_is_not_the_first(resend: Resend) -> None:
    made = window(resend, batches=5)
    _, second, *_ = send_all(made)
    assert answer(made, second, "NONE") is Verdict.ACKNOWLEDGED
    assert made.room == 1


def test_librdkafka_sends_nothing_again_before_nothing_is_under_way_then_all_in_order() -> None:
    made = window(Resend.ALL)
    first, second, third = send_all(made)
    assert answer(made, first, "NOT_ENOUGH_REPLICAS") is Verdict.AGAIN
    assert made.next_to_send() is None
    assert answer(made, second, OUT_OF_ORDER) is Verdict.AGAIN
    assert made.next_to_send() is None
    assert answer(made, third, OUT_OF_ORDER) is Verdict.AGAIN
    assert send_all(made) == [first, second, third]


def test_java_sends_the_first_again_at_once_and_those_behind_it_when_it_is_through() -> None:
    made = window(Resend.FIRST)
    first, second, third = send_all(made)
    answer(made, first, "NOT_ENOUGH_REPLICAS")
    assert send_all(made) == [first]
    answer(made, second, OUT_OF_ORDER)
    answer(made, third, OUT_OF_ORDER)
    assert made.next_to_send() is None
    answer(made, first, "NONE")
    assert send_all(made) == [second]


def test_what_java_sends_again_is_passed_by_what_was_never_sent() -> None:
    made = window(Resend.FIRST, batches=1)
    (first,) = send_all(made)
    answer(made, first, LOST)
    assert send_all(made) == [first]
    new = made.add(["n"], process=9, deadline=9.0, timestamp_ms=1)
    assert send_all(made) == [new]


def test_out_of_order_behind_a_failed_batch_leaves_no_doubt_and_is_no_disagreement() -> None:
    made = window()
    first, second, _ = send_all(made)
    for _ in range(DISAGREEMENTS + 1):
        assert answer(made, second, OUT_OF_ORDER) is Verdict.AGAIN
    assert not second.in_doubt
    answer(made, first, "NOT_LEADER_OR_FOLLOWER")
    assert first.in_doubt


def test_a_batch_that_became_the_first_after_it_was_sent_was_not_disagreed_about() -> None:
    made = window(Resend.FIRST)
    first, second, _ = send_all(made)
    answer(made, first, LOST)
    made.on_sent(first)
    answer(made, first, "NONE")
    assert answer(made, second, OUT_OF_ORDER) is Verdict.AGAIN


def test_a_broker_that_goes_on_denying_what_was_acknowledged_ends_the_sequences() -> None:
    made = window(batches=1)
    for number in range(DISAGREEMENTS):
        (first,) = send_all(made)
        verdict = answer(made, first, OUT_OF_ORDER)
        last = number + 1 == DISAGREEMENTS
        assert verdict is (Verdict.BROKEN if last else Verdict.DISAGREED)


def test_an_error_that_no_repetition_heals_ends_the_sequences() -> None:
    made = window()
    first, *_ = send_all(made)
    assert answer(made, first, "INVALID_PRODUCER_EPOCH") is Verdict.BROKEN
    assert not first.in_doubt


def test_under_another_epoch_nothing_is_sent_that_may_have_been_appended_under_this_one() -> None:
    made = window(batches=4)
    first, second, third, fourth = send_all(made)
    first.data = b"as it was sent"
    answer(made, first, "NOT_ENOUGH_REPLICAS")
    answer(made, second, LOST)
    answer(made, third, OUT_OF_ORDER)
    answer(made, fourth, "REQUEST_TIMED_OUT")
    assert made.begin_anew() == [second, fourth]
    assert [(sending, sending.base_sequence) for sending in send_all(made)] == [
        (first, 0),
        (third, 2),
    ]
    assert first.data == b""
    assert made.next_sequence == 4
