"""Incremental fetch sessions (KIP-227), the leader's end and the follower's."""

from __future__ import annotations

from random import Random
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.partitions.fetch_session import FetchContext, FetchSessions
from logboat.partitions.follower import FetchPosition
from logboat.partitions.follower_session import LOOKED_AT_ONCE, FollowerSession
from logboat.seam import all_at_once
from logboat.wire import ErrorCode
from logboat.wire.messages.fetch import FetchRequest, FetchResponse

ME = "connection"


def topic_id(number: int) -> UUID:
    return UUID(int=number + 1)


def request(
    *numbers: int,
    session_id: int = 0,
    epoch: int = 0,
    offset: int = 0,
    forget: tuple[int, ...] = (),
) -> FetchRequest:
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchRequest.FetchTopic(
                topic_id=topic_id(0),
                partitions=[
                    FetchRequest.FetchPartition(partition=number, fetch_offset=offset)
                    for number in numbers
                ],
            )
        ],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(topic_id=topic_id(0), partitions=list(forget))
        ],
    )


def sessions(slots: int = 10) -> FetchSessions:
    return FetchSessions(slots=slots, eviction_ms=1_000, rng=Random(1))


def begin(
    cache: FetchSessions,
    asked: FetchRequest,
    *,
    version: int = 17,
    owner: object = ME,
    replica_id: int = -1,
    now_ms: int = 0,
) -> FetchContext:
    context = cache.begin(asked, version, owner=owner, replica_id=replica_id, now_ms=now_ms)
    assert isinstance(context, FetchContext), context
    return context


def error(cache: FetchSessions, asked: FetchRequest, **rest: object) -> ErrorCode:
    arguments = {"version": 17, "owner": ME, "replica_id": -1, "now_ms": 0, **rest}
    context = cache.begin(asked, **arguments)  # type: ignore[arg-type]
    assert isinstance(context, ErrorCode)
    return context


def numbers(context: FetchContext) -> list[int]:
    return [partition.partition for partition in context.partitions]


def test_a_full_request_opens_a_session() -> None:
    cache = sessions()
    context = begin(cache, request(1, 2))
    assert context.session_id != 0
    assert not context.incremental
    assert numbers(context) == [1, 2]


def test_d8_an_incremental_request_fetches_also_what_it_does_not_name() -> None:
    cache = sessions()
    opened = begin(cache, request(1, 2))
    context = begin(cache, request(2, session_id=opened.session_id, epoch=1, offset=9))
    assert context.incremental
    assert [(p.partition, p.fetch_offset) for p in context.partitions] == [(1, 0), (2, 9)]


def test_an_incremental_request_adds_and_forgets() -> None:
    cache = sessions()
    opened = begin(cache, request(1, 2))
    context = begin(cache, request(3, session_id=opened.session_id, epoch=1, forget=(1,)))
    assert numbers(context) == [2, 3]


def test_an_unknown_session_is_not_found() -> None:
    cache = sessions()
    asked = request(session_id=77, epoch=1)
    assert error(cache, asked) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_belongs_to_its_connection() -> None:
    cache = sessions()
    opened = begin(cache, request(1))
    asked = request(session_id=opened.session_id, epoch=1)
    assert error(cache, asked, owner="other") is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert error(cache, asked, replica_id=2) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_skipped_or_repeated_epoch_is_invalid_and_leaves_the_session() -> None:
    cache = sessions()
    opened = begin(cache, request(1))
    for epoch in (2, 5):
        asked = request(session_id=opened.session_id, epoch=epoch)
        assert error(cache, asked) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    begin(cache, request(session_id=opened.session_id, epoch=1))
    repeated = request(session_id=opened.session_id, epoch=1)
    assert error(cache, repeated) is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_names_and_ids_do_not_mix_in_a_session() -> None:
    cache = sessions()
    opened = begin(cache, request(1))
    asked = request(session_id=opened.session_id, epoch=1)
    assert error(cache, asked, version=12) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_last_epoch_closes_the_session() -> None:
    cache = sessions()
    opened = begin(cache, request(1))
    context = begin(cache, request(1, session_id=opened.session_id, epoch=-1))
    assert context.session_id == 0
    assert len(cache) == 0


def test_old_versions_have_no_session() -> None:
    cache = sessions()
    assert begin(cache, request(1), version=6).session_id == 0
    assert len(cache) == 0


def test_an_empty_full_request_opens_no_session() -> None:
    cache = sessions()
    assert begin(cache, request()).session_id == 0


def test_a_closed_connection_takes_its_sessions_with_it() -> None:
    cache = sessions()
    begin(cache, request(1))
    begin(cache, request(1), owner="other")
    cache.forget_owner(ME)
    assert len(cache) == 1


def test_a_full_cache_gives_no_more_sessions() -> None:
    cache = sessions(slots=1)
    begin(cache, request(1))
    assert begin(cache, request(1), owner="other").session_id == 0


def test_a_session_unused_for_long_makes_room() -> None:
    cache = sessions(slots=1)
    old = begin(cache, request(1))
    assert begin(cache, request(1), owner="other", now_ms=1_000).session_id != 0
    asked = request(session_id=old.session_id, epoch=1)
    assert error(cache, asked) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_follower_takes_the_place_of_a_consumer_but_not_of_a_follower() -> None:
    cache = sessions(slots=1)
    begin(cache, request(1))
    assert begin(cache, request(1), owner="n2", replica_id=2).session_id != 0
    assert begin(cache, request(1), owner="n3", replica_id=3).session_id == 0


def test_who_got_data_is_served_last_next_time() -> None:
    cache = sessions()
    opened = begin(cache, request(1, 2, 3))
    assert opened.session is not None
    opened.session.rotate([(topic_id(0), 1)])
    assert numbers(begin(cache, request(session_id=opened.session_id, epoch=1))) == [2, 3, 1]


# The follower's end.


def position(offset: int) -> FetchPosition:
    return FetchPosition(
        leader_epoch=3,
        fetch_offset=offset,
        last_fetched_epoch=2,
        log_start_offset=0,
        high_watermark=0,
    )


def ask(session: FollowerSession, positions: dict[int, FetchPosition]) -> FetchRequest:
    return all_at_once(
        session.request(
            {(topic_id(0), number): found for number, found in positions.items()},
            replica_id=2,
            broker_epoch=7,
            max_bytes=1 << 20,
            partition_max_bytes=1 << 20,
        )
    )


def named(asked: FetchRequest) -> list[int]:
    return [partition.partition for topic in asked.topics for partition in topic.partitions]


def test_a_follower_names_only_what_moved() -> None:
    session = FollowerSession()
    assert named(ask(session, {1: position(0), 2: position(0)})) == [1, 2]
    session.on_response(FetchResponse(session_id=5))
    asked = ask(session, {1: position(0), 2: position(9)})
    assert named(asked) == [2]
    assert (asked.session_id, asked.session_epoch) == (5, 1)


def test_f1_a_request_that_names_thousands_is_made_in_steps() -> None:
    session = FollowerSession()
    many = {(topic_id(0), number): position(0) for number in range(2_000)}

    def pauses() -> int:
        steps = session.request(
            many, replica_id=2, broker_epoch=7, max_bytes=1, partition_max_bytes=1
        )
        return sum(1 for _ in steps)

    assert pauses() == 2 * 2_000 // LOOKED_AT_ONCE, "to see which have moved, and to name them"
    session.on_response(FetchResponse(session_id=5))
    assert pauses() == 2_000 // LOOKED_AT_ONCE


def test_a_follower_forgets_what_it_left() -> None:
    session = FollowerSession()
    ask(session, {1: position(0), 2: position(0)})
    session.on_response(FetchResponse(session_id=5))
    asked = ask(session, {2: position(0)})
    assert [topic.partitions for topic in asked.forgotten_topics_data] == [[1]]


def test_a_follower_begins_anew_when_the_leader_has_forgotten() -> None:
    session = FollowerSession()
    ask(session, {1: position(0)})
    session.on_response(FetchResponse(session_id=5))
    ask(session, {1: position(0)})
    assert not session.on_response(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    asked = ask(session, {1: position(0)})
    assert named(asked) == [1]
    assert (asked.session_id, asked.session_epoch) == (0, 0)


def test_without_a_session_every_request_is_full() -> None:
    session = FollowerSession()
    ask(session, {1: position(0)})
    session.on_response(FetchResponse(session_id=0))
    assert named(ask(session, {1: position(0)})) == [1]


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(st.dictionaries(st.integers(0, 5), st.integers(0, 3)), max_size=10))
def test_both_ends_always_agree(steps: list[dict[int, int]]) -> None:
    cache = sessions()
    session = FollowerSession()
    for step in steps:
        wanted = {number: position(offset) for number, offset in step.items()}
        asked = ask(session, wanted)
        asked = FetchRequest.decode(b"".join(asked.encode(18)), 18)
        context = begin(cache, asked, version=18, replica_id=2)
        assert {p.partition: p.fetch_offset for p in context.partitions} == step
        assert session.on_response(FetchResponse(session_id=context.session_id))
