"""librdkafka, five batches in flight, and a leader that refuses some of them and takes the next.

Each record is there once, in order, at the offset that was acknowledged. Without the care of
`partitions/refused_batches.py` some were acknowledged and not there (the first ones of a producer),
others there twice (those of one partition, while another one's were out of order).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from logboat.partitions.leader import LeaderState
from logboat.partitions.partition import Partition
from logboat.partitions.roles import Refused
from logboat.wire import ErrorCode
from tests.node.running_node import port, running_node

TOPIC = "whims"
PARTITIONS = 2
PRODUCERS = 12
RECORDS = 40
SECONDS = 60.0

EAGER = {
    "enable.idempotence": True,
    "linger.ms": 0,
    "batch.num.messages": 1,
    "retry.backoff.ms": 1,
    "retry.backoff.max.ms": 5,
    "topic.metadata.refresh.fast.interval.ms": 5,
}

Where = tuple[int, int]
"""Partition and offset."""

NOT_TOLD = -1
"""librdkafka concludes from a batch's success that those ahead of it were written, too."""


async def test_every_record_is_there_once_whatever_was_refused(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        servers = f"127.0.0.1:{port(node)}"
        await asyncio.to_thread(create_topic, servers)
        for number in range(PARTITIONS):
            make_whimsical(node.replicas.find(TOPIC, number), Random(number))
        acknowledged = await asyncio.to_thread(produce, servers)
        there = await asyncio.to_thread(read_back, servers)
    assert len(acknowledged) == PRODUCERS * RECORDS
    assert sorted(there.values()) == sorted(acknowledged), "each once"
    for where, key in there.items():
        assert acknowledged[key] in (where, (where[0], NOT_TOLD))
    for number in range(PARTITIONS):
        for producer in range(PRODUCERS):
            mine = [key for (partition, _), key in there.items() if partition == number]
            order = [int(key[4:]) for key in mine if key.startswith(b"%02d" % producer)]
            assert order == sorted(order)


def make_whimsical(partition: Partition, dice: Random) -> None:
    """As at an election: refused without an append, or appended and then told that the leader is
    another one."""
    require, await_answer = partition.require_appendable, partition.await_answer

    def require_appendable(acks: int) -> LeaderState:
        if dice.random() < 0.2:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return require(acks)

    def answer(appended: Any, *, on_answer: Any, **rest: Any) -> None:
        if dice.random() < 0.1:
            on_answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            await_answer(appended, on_answer=on_answer, **rest)

    partition.require_appendable = require_appendable  # type: ignore[method-assign]
    partition.await_answer = answer  # type: ignore[method-assign]


def create_topic(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        made.result(SECONDS)


def produce(servers: str) -> dict[bytes, Where]:
    """Where each record was acknowledged, by its key."""
    acknowledged: dict[bytes, Where] = {}

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        key, partition, offset = message.key(), message.partition(), message.offset()
        assert key is not None
        assert partition is not None
        acknowledged[key] = partition, NOT_TOLD if offset is None else offset

    producers = [Producer({"bootstrap.servers": servers, **EAGER}) for _ in range(PRODUCERS)]
    for number, producer in enumerate(producers):
        for record in range(RECORDS):
            producer.produce(
                TOPIC,
                key=b"%02d-%03d" % (number, record),
                partition=record % PARTITIONS,
                on_delivery=on_delivery,
            )
    for producer in producers:
        assert producer.flush(SECONDS) == 0
    return acknowledged


def read_back(servers: str) -> dict[Where, bytes]:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False}
    )
    there: dict[Where, bytes] = {}
    try:
        for number in range(PARTITIONS):
            _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, number), SECONDS)
            consumer.assign([TopicPartition(TOPIC, number, 0)])
            while (number, end - 1) not in there:
                message = consumer.poll(SECONDS)
                assert message is not None
                assert message.error() is None, message.error()
                if message.partition() == number:
                    key, offset = message.key(), message.offset()
                    assert key is not None
                    assert offset is not None
                    there[number, offset] = key
    finally:
        consumer.close()
    return there
