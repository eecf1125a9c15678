"""The client against real nodes, also while they die."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest

from logboat.client import (
    Assigned,
    Client,
    Json,
    PartitionRevoked,
    Record,
    SyncClient,
    Text,
    TopicNotFound,
    TopicPartition,
)
from logboat.testing import PATIENT, LocalCluster

RECORDS = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3, settings=PATIENT) as running:
        yield running


_numbers = count()


async def topic_of(client: Client, partitions: int = 3) -> str:
    name = f"topic-{next(_numbers)}"
    await client.admin.topics.create(name, partitions=partitions, replication=3)
    return name


async def test_records_go_in_and_come_out_and_the_group_remembers(cluster: LocalCluster) -> None:
    """Complaint 12: the lag of a group is there for whoever asks, without joining it."""
    async with Client(*cluster.http_urls) as client:
        assert len(client.nodes) == 3
        topic = await topic_of(client)
        async with client.producer(value=Json()) as producer:
            for number in range(30):
                await producer.enqueue(topic, {"n": number}, key=f"k{number}")
        read: list[Record[str, object]] = []
        async with client.consumer(topic, group=f"{topic}-readers", value=Json()) as consumer:
            async for record in consumer:
                read.append(record)
                if len(read) == 30:
                    break
            assert consumer.state == "stable"
            assert consumer.health().seconds_since_answer < 30
            first = await anext(consumer.events())
            assert isinstance(first, Assigned)
            assert len(consumer.assignment) == 3
            await consumer.commit()
        assert sorted(str(record.value) for record in read) == sorted(
            str({"n": number}) for number in range(30)
        )
        lag = await client.admin.groups.lag(f"{topic}-readers")
        assert lag.total == 0
        async with client.producer() as plain:
            await plain.send(topic, b"{}")
        assert (await client.admin.groups.lag(f"{topic}-readers")).total == 1


async def test_11_a_commit_of_what_another_member_owns_now_is_refused_by_name(
    cluster: LocalCluster,
) -> None:
    async with Client(*cluster.http_urls) as client:
        topic = await topic_of(client, partitions=2)
        async with client.producer() as producer:
            for partition in (0, 1):
                await producer.send(topic, b"x", partition=partition)
        async with client.consumer(topic, group=f"{topic}-g") as first:
            mine: dict[int, Record[str, bytes]] = {}
            async for record in first:
                mine[record.partition] = record
                if len(mine) == 2:
                    break
            async with client.consumer(topic, group=f"{topic}-g") as second:
                async with asyncio.timeout(60):
                    await _share(first, second)
                (theirs,) = second.assignment
                with pytest.raises(PartitionRevoked, match=f"{topic}-{theirs.partition}"):
                    await first.commit(mine[theirs.partition])
                await first.commit(mine[1 - theirs.partition])


async def _share(first: object, second: object) -> None:
    """Both poll until each has a partition."""
    from logboat.client import Consumer

    assert isinstance(first, Consumer)
    assert isinstance(second, Consumer)
    while len(first.assignment) != 1 or len(second.assignment) != 1:
        await asyncio.gather(
            first._fill(200, only_when_empty=False), second._fill(200, only_when_empty=False)
        )


async def test_nothing_acknowledged_is_lost_or_doubled_while_nodes_die(
    cluster: LocalCluster,
) -> None:
    """Idempotent records through any node, a tail that goes on, and two kills."""
    async with Client(*cluster.http_urls, request_timeout=60) as client:
        topic = await topic_of(client)
        seen: list[str] = []

        async def follow() -> None:
            async for record in client.tail(topic, since="start", value=Text()):
                seen.append(record.value or "")
                if len(seen) == RECORDS:
                    return

        following = asyncio.create_task(follow())
        async with client.producer(value=Text(), delivery_timeout=60) as producer:
            for number in range(RECORDS):
                await producer.send(topic, f"{number}", key=f"{number}")
                if number in (RECORDS // 3, 2 * RECORDS // 3):
                    victim = cluster.wait_leader(topic, 0)
                    cluster.kill(victim)
                    await asyncio.to_thread(cluster.start, victim)
        async with asyncio.timeout(60):
            await following
        assert sorted(seen, key=int) == [str(number) for number in range(RECORDS)]


async def test_2_a_topic_that_no_node_knows_is_told_long_before_the_deadline(
    cluster: LocalCluster,
) -> None:
    async with (
        asyncio.timeout(60),
        Client(*cluster.http_urls, request_timeout=600) as client,
        client.producer(delivery_timeout=600) as producer,
    ):
        with pytest.raises(TopicNotFound):
            await producer.send("nobody-made-this", b"x")
        with pytest.raises(TopicNotFound):
            await anext(aiter(client.tail("nobody-made-this")))


def test_the_sync_client_does_the_same(cluster: LocalCluster) -> None:
    with SyncClient(*cluster.http_urls) as client:
        topic = f"topic-{next(_numbers)}"
        client.admin.topics.create(topic, partitions=1, replication=3)
        with client.producer(value=Text()) as producer:
            assert producer.send(topic, "a").offset == 0
            assert [place.offset for place in producer.send_all(topic, ["b", "c"])] == [1, 2]
        with client.consumer(topic, group=f"{topic}-g", value=Text()) as consumer:
            values = []
            for record in consumer:
                values.append(record.value)
                if len(values) == 3:
                    break
            consumer.commit()
        assert values == ["a", "b", "c"]
        place = TopicPartition(topic, 0)
        assert client.reader().extent(place) == (0, 3)
        page = client.reader(value=Text()).page(place, 1)
        assert [record.value for record in page.records] == ["b", "c"]
        assert page.next_offset == 3
        assert client.lag(f"{topic}-g") == 0
        assert client.admin.groups.lag(f"{topic}-g").total == 0
        for record in client.tail(topic, since="start", value=Text()):
            assert record.value == "a"
            break
