"""How soon members of the consumer protocol are asked to beat again."""

from __future__ import annotations

from logboat.groups.consumer.pace import AFTER_DEADLINE_MS, SOON_MS, YOUNG_MS, next_interval_ms
from tests.groups.test_consumer_group import SETTINGS, Client, Coordinator, seen

USUAL_MS = 5_000
LONG_AGO_MS = 60_000


def interval(
    *, members: int = 2, on_its_way: bool = False, age_ms: int = LONG_AGO_MS, fenced_in_ms: int
) -> int:
    return next_interval_ms(
        usual_ms=USUAL_MS,
        members=members,
        on_its_way=on_its_way,
        epoch_age_ms=age_ms,
        fenced_in_ms=fenced_in_ms,
    )


def test_a_settled_group_beats_as_it_is_configured() -> None:
    assert interval(fenced_in_ms=40_000) == USUAL_MS


def test_who_has_yet_to_reach_its_target_is_asked_to_come_soon() -> None:
    assert interval(on_its_way=True, fenced_in_ms=40_000) == SOON_MS
    assert interval(age_ms=YOUNG_MS - 1, fenced_in_ms=40_000) == SOON_MS


def test_a_large_group_does_not_drown_its_coordinator() -> None:
    assert interval(members=500, on_its_way=True, fenced_in_ms=40_000) == 1_000
    assert interval(members=5_000, on_its_way=True, fenced_in_ms=40_000) == USUAL_MS


def test_who_will_take_over_from_a_silent_member_comes_right_after_its_end() -> None:
    assert interval(fenced_in_ms=700) == 700 + AFTER_DEADLINE_MS
    assert interval(fenced_in_ms=-1) == SOON_MS


def test_a_group_asks_for_haste_until_its_members_are_where_they_shall_be() -> None:
    coordinator, a, b = Coordinator(seen(t=2)), Client("a"), Client("b")
    coordinator.now_ms = 100_000
    coordinator.beat(a)
    group = coordinator.group
    assert group.next_interval_ms(group.members["a"], coordinator.now_ms) == SOON_MS
    coordinator.now_ms += YOUNG_MS
    coordinator.settle(a)
    # A session of a second, shorter than the usual interval, is what remains.
    expected = SETTINGS.session_timeout_ms + AFTER_DEADLINE_MS
    assert group.next_interval_ms(group.members["a"], coordinator.now_ms) == expected
    coordinator.beat(b)
    coordinator.now_ms += YOUNG_MS
    assert group.next_interval_ms(group.members["b"], coordinator.now_ms) == SOON_MS
