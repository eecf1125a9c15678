"""Room, nodes, waits and queries by themselves."""

from __future__ import annotations

import asyncio
import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.client.sdk.answers import as_error
from logboat.client.sdk.backoff import LONGEST_SECONDS, Backoff
from logboat.client.sdk.batches import OVERHEAD_BYTES, Pending, Queue
from logboat.client.sdk.deadline import Deadline
from logboat.client.sdk.errors import DeadlineExceeded, NotEnoughReplicas, OutcomeUnknown
from logboat.client.sdk.nodes import Nodes, urls_of
from logboat.client.sdk.room import Room
from logboat.client.sdk.tail import first_query


@given(st.lists(st.integers(1, 50), max_size=40), st.randoms(use_true_random=False))
def test_room_is_never_more_than_it_is_and_everybody_gets_a_turn(
    sizes: list[int], chance: Random
) -> None:
    async def play() -> None:
        room = Room(60)
        held: list[int] = []
        served = 0

        async def one(size: int) -> None:
            nonlocal served
            await room.take(size, Deadline.after(60))
            held.append(size)
            served += 1
            assert room.used <= 60

        tasks = [asyncio.create_task(one(size)) for size in sizes]
        while served < len(sizes):
            await asyncio.sleep(0)
            if held and chance.random() < 0.7:
                room.give_back(held.pop(chance.randrange(len(held))))
        await asyncio.gather(*tasks)
        for size in held:
            room.give_back(size)
        assert room.used == 0

    asyncio.run(play())


async def test_who_gives_up_waiting_for_room_takes_none() -> None:
    room = Room(10)
    await room.take(10, Deadline.after(1))
    with pytest.raises(DeadlineExceeded):
        await room.take(5, Deadline.after(0.01))
    room.give_back(10)
    assert room.used == 0
    assert room.try_take(10)


async def test_batches_are_bounded_and_keep_their_order() -> None:
    queue = Queue(1_000)
    loop = asyncio.get_running_loop()
    for number in range(30):
        size = OVERHEAD_BYTES + number
        queue.add(Pending(None, b"%d" % number, (), 0, size, 0.0, loop.create_future()))
    seen: list[bytes | None] = []
    while queue:
        batch = queue.take()
        assert sum(record.size for record in batch) <= 1_000
        if len(seen) < 5:
            queue.put_back(batch)
            batch = queue.take()
        seen += [record.value for record in batch]
    assert seen == [b"%d" % number for number in range(30)]


def test_waits_grow_to_a_limit_and_a_nodes_own_word_is_taken() -> None:
    backoff = Backoff(Random(1))
    waits = [backoff.next_wait() for _ in range(30)]
    assert all(0 <= wait <= LONGEST_SECONDS for wait in waits)
    assert max(waits[10:]) > 0.5
    assert backoff.next_wait(7.0) == 7.0


def test_a_node_that_failed_is_asked_last_and_new_ones_are_learned() -> None:
    nodes = Nodes(["http://a:1", "http://b:1"])
    nodes.failed("http://b:1")  # Not its turn: somebody else's old failure.
    assert nodes.current == "http://a:1"
    nodes.failed("http://a:1")
    assert nodes.current == "http://b:1"
    nodes.learn(["http://c:1", "http://b:1"])
    assert nodes.current == "http://b:1"
    assert nodes.all == ("http://c:1", "http://b:1", "http://a:1")


def test_addresses_come_from_the_environment_where_none_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOGBOAT_HTTP", "http://a:1,http://b:2/")
    assert urls_of([]) == ["http://a:1", "http://b:2"]
    monkeypatch.delenv("LOGBOAT_HTTP")
    assert urls_of([]) == ["http://127.0.0.1:8082"]


def test_errors_have_the_kind_that_says_what_may_be_done() -> None:
    refused = as_error(503, {"kafka_error": "NOT_ENOUGH_REPLICAS", "retriable": True}, "n")
    assert isinstance(refused, NotEnoughReplicas)
    assert isinstance(as_error(504, {"outcome": "unknown", "retriable": True}, "n"), OutcomeUnknown)
    assert as_error(503, "<html>", "n").retriable
    assert not as_error(400, None, "n").retriable
    assert as_error(500, {"error_code": 50003}, "n").retriable


def test_a_tail_begins_where_it_is_told() -> None:
    assert first_query("start") == {"from": "earliest"}
    assert first_query(None) == first_query("end") == {"from": "latest"}
    assert first_query(17) == {"timestamp": "17"}
    ago = int(first_query("-5m")["timestamp"])
    assert abs(time.time() * 1000 - 300_000 - ago) < 5_000
    with pytest.raises(ValueError, match="yesterday"):
        first_query("yesterday")
