"""Where requests wait: woken by offsets, bounded by deadlines, forgotten when given up."""

from __future__ import annotations

import asyncio

from logboat.partitions.waiting_room import FetchRoom, FetchWait, OffsetRoom, PendingAnswers
from logboat.wire import ErrorCode
from tests.metadata.virtual_loop import run


def test_waiters_are_answered_when_their_offset_is_reached_smallest_first() -> None:
    room = OffsetRoom(limit=10)
    answered: list[int] = []
    for end in (30, 10, 20):
        room.wait(end, lambda _error, end=end: answered.append(end))  # type: ignore[misc]
    room.release(20, ErrorCode.NONE)
    assert answered == [10, 20]
    assert len(room) == 1


def test_a_cut_fails_exactly_those_who_wait_for_what_was_cut() -> None:
    room = OffsetRoom(limit=10)
    answers: dict[int, ErrorCode] = {}
    for end in (10, 20):
        room.wait(end, lambda error, end=end: answers.update({end: error}))  # type: ignore[misc]
    room.fail_beyond(10, ErrorCode.KAFKA_STORAGE_ERROR)
    assert answers == {20: ErrorCode.KAFKA_STORAGE_ERROR}
    room.release(10, ErrorCode.NONE)
    assert answers[10] is ErrorCode.NONE


def test_a_room_is_full_at_its_limit() -> None:
    room = OffsetRoom(limit=2)
    first = room.wait(10, lambda _error: None)
    room.wait(10, lambda _error: None)
    assert room.full
    first.give_up()
    assert not room.full


def test_those_who_gave_up_do_not_pile_up() -> None:
    room = OffsetRoom(limit=100_000)
    for _ in range(10_000):
        room.wait(10, lambda _error: None).give_up()
    assert len(room) == 0
    assert len(room._heap) < 200


def test_a_request_waits_for_all_its_partitions() -> None:
    async def scenario() -> None:
        rooms = [OffsetRoom(limit=10), OffsetRoom(limit=10)]
        answers: list[ErrorCode] = []
        pending = PendingAnswers()
        for room in rooms:
            pending.add(room, 5, answers.append)
        waiting = asyncio.create_task(pending.wait(asyncio.get_running_loop().time() + 10))
        await asyncio.sleep(1)
        rooms[0].release(5, ErrorCode.NONE)
        await asyncio.sleep(1)
        assert not waiting.done()
        rooms[1].release(5, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        await waiting
        assert answers == [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]

    run(scenario())


def test_at_the_deadline_the_rest_is_timed_out() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        room = OffsetRoom(limit=10)
        answers: list[ErrorCode] = []
        pending = PendingAnswers()
        pending.add(room, 5, answers.append)
        pending.add(room, 6, answers.append)
        room.release(5, ErrorCode.NONE)
        began = loop.time()
        await pending.wait(began + 3)
        assert loop.time() == began + 3
        assert answers == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]
        assert len(room) == 0
        room.release(6, ErrorCode.NONE)
        assert len(answers) == 2

    run(scenario())


def test_a_cancelled_request_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        room = OffsetRoom(limit=10)
        pending = PendingAnswers()
        pending.add(room, 5, lambda _error: None)
        waiting = asyncio.create_task(pending.wait(asyncio.get_running_loop().time() + 10))
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert len(room) == 0

    run(scenario())


def test_a_fetch_hears_which_partitions_moved_each_once() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        rooms = [FetchRoom(), FetchRoom()]
        wait = FetchWait(loop.time() + 10)
        for position, room in enumerate(rooms):
            room.enter(wait, position)
        loop.call_later(1, rooms[1].wake_all)
        loop.call_later(1, rooms[0].wake_all)
        loop.call_later(1, rooms[1].wake_all)
        assert await wait.moved() == [1, 0]
        rooms[0].leave(wait, 0)
        loop.call_later(1, rooms[0].wake_all)
        assert await wait.moved() is None

    run(scenario())


def test_a_hastened_fetch_does_not_wait_out_its_time() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        wait = FetchWait(began + 10)
        loop.call_later(1, wait.hasten, began + 2)
        assert await wait.moved() is None
        assert loop.time() == began + 2

    run(scenario())
