"""RULES B4 and B6: sessions and what a heartbeat changes."""

from __future__ import annotations

import pytest

from logboat.metadata.broker_life import NextState, next_state
from logboat.metadata.controller import ControllerSettings
from logboat.metadata.sessions import Sessions
from tests.metadata.cluster_builder import Cluster


def test_b4_session_ends_a_timeout_after_the_last_word() -> None:
    sessions = Sessions(timeout=9)
    sessions.touch(1, 10, now=0)
    sessions.touch(2, 11, now=5)
    assert sessions.next_deadline() == 9
    assert sessions.expired(8.9) == []
    assert sessions.expired(9) == [(1, 10)]
    assert not sessions.lives(1, 9)
    assert sessions.lives(2, 9)
    sessions.touch(1, 10, now=9)
    assert sessions.expired(9) == []
    assert sessions.next_deadline() == 14


def test_b4_granted_session_is_as_short_as_it_was_given() -> None:
    sessions = Sessions(timeout=9)
    sessions.grant(1, 10, until=3)
    assert sessions.expired(3) == [(1, 10)]
    assert sessions.metadata_index(1) == -1


def test_b4_short_session_is_two_heartbeats_and_an_election() -> None:
    settings = ControllerSettings(heartbeat_interval=2, session_timeout=9, election_timeout=1.2)
    assert settings.short_session == pytest.approx(5.2)
    assert ControllerSettings(session_timeout=1).short_session == 1


def test_b4_proof_of_death_ends_a_session_at_once() -> None:
    sessions = Sessions(timeout=9)
    sessions.touch(1, 10, now=0)
    sessions.expire(1, now=1)
    sessions.expire(2, now=1)
    assert sessions.expired(1) == [(1, 10)]
    sessions.end(1)
    assert sessions.next_deadline() is None


def test_silence_while_nobody_listened_is_forgiven() -> None:
    sessions = Sessions(timeout=9)
    sessions.touch(1, 10, now=0)
    sessions.forgive(20)
    assert sessions.expired(28) == []
    assert sessions.expired(29) == [(1, 10)]


def test_what_a_broker_has_read_grows_within_an_incarnation_only() -> None:
    sessions = Sessions(timeout=9)
    sessions.touch(1, 10, now=0, metadata_index=50)
    sessions.touch(1, 10, now=1, metadata_index=40)
    assert sessions.metadata_index(1) == 50
    sessions.touch(1, 60, now=2)
    assert sessions.metadata_index(1) == -1


FENCED, UNFENCED, SHUTTING = "fenced", "unfenced", "shutting down"


@pytest.mark.parametrize(
    ("now", "leads", "wants_fence", "wants_shutdown", "caught_up", "others_read", "then"),
    [
        (FENCED, False, False, True, True, True, NextState.SHUT_DOWN_NOW),
        (FENCED, False, True, True, False, False, NextState.SHUT_DOWN_NOW),
        (FENCED, False, False, False, True, True, NextState.UNFENCED),
        (FENCED, False, False, False, False, True, NextState.FENCED),
        (FENCED, False, True, False, True, True, NextState.FENCED),
        (UNFENCED, True, False, False, True, True, NextState.UNFENCED),
        (UNFENCED, True, True, False, True, True, NextState.FENCED),
        (UNFENCED, False, False, True, True, False, NextState.SHUT_DOWN_NOW),
        (UNFENCED, True, False, True, True, True, NextState.CONTROLLED_SHUTDOWN),
        (SHUTTING, False, False, True, True, True, NextState.SHUT_DOWN_NOW),
        (SHUTTING, False, False, True, True, False, NextState.CONTROLLED_SHUTDOWN),
    ],
)
def test_b6_state_table(
    now: str,
    leads: bool,
    wants_fence: bool,
    wants_shutdown: bool,
    caught_up: bool,
    others_read: bool,
    then: NextState,
) -> None:
    cluster = Cluster()
    if leads:
        cluster.create((1, 2, 3))
    if now == FENCED:
        cluster.fence(1)
    elif now == SHUTTING:
        cluster.shut_down(1)
    broker = cluster.broker(1)

    def read(_: int) -> int:
        return cluster.index if others_read else cluster.index - 1

    assert (
        next_state(
            cluster.image,
            broker,
            wants_fence=wants_fence,
            wants_shutdown=wants_shutdown,
            metadata_index=broker.broker_epoch if caught_up else broker.broker_epoch - 1,
            index_read_by=read,
        )
        is then
    )


def test_b6_fenced_brokers_need_not_read_that_another_one_goes() -> None:
    cluster = Cluster()
    cluster.fence(3)
    cluster.shut_down(1)
    state = next_state(
        cluster.image,
        cluster.broker(1),
        wants_fence=False,
        wants_shutdown=True,
        metadata_index=cluster.index,
        index_read_by=lambda node_id: cluster.index if node_id == 2 else -1,
    )
    assert state is NextState.SHUT_DOWN_NOW
