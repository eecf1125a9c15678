"""Case P15: headers are a list. Duplicates, their order, an empty name, null and empty values come
back as they were sent, on every way that a record can take."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Assigned
from confluent_kafka.admin import AdminClient, NewTopic

from logboat.testing import LocalCluster

Headers = list[tuple[str, bytes | None]]

SOME: Headers = [
    ("x", b"1"),
    ("x", b"2"),
    ("", b"e"),
    ("n", None),
    ("z", b""),
    ("ключ", b"\x00\xff"),
]
MANY: Headers = [("h", b"%d" % number) for number in range(2000)]
SENT = [SOME, MANY, []]
TIMEOUT_S = 60.0

WAYS: list[dict[str, str]] = [
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"compression.type": "zstd"},
    {"compression.type": "gzip", "message.timestamp.type": "LogAppendTime"},
    {"cleanup.policy": "compact"},
]


@pytest.mark.processes
@pytest.mark.parametrize("config", WAYS, ids=lambda config: "+".join(config.values()) or "plain")
async def test_p15_headers_come_back_as_they_were_sent(
    cluster: LocalCluster, fresh: Callable[[str], str], config: dict[str, str]
) -> None:
    topic = fresh("headers")
    servers = cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(topic, 1, config=config)]).values():
        made.result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 50})
    for number, headers in enumerate(SENT):
        producer.produce(topic, b"v", key=b"%d" % number, headers=headers)
    assert producer.flush(TIMEOUT_S) == 0
    assert by_confluent(servers, topic) == SENT
    assert await by_aiokafka(servers, topic) == SENT
    assert by_http(cluster.http_urls[0], topic) == SENT


def by_confluent(servers: str, topic: str) -> list[Headers]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "unused"})
    consumer.assign([Assigned(topic, 0, 0)])
    try:
        found: list[Headers] = []
        for message in consumer.consume(len(SENT), TIMEOUT_S):
            assert message.error() is None
            headers: Any = message.headers() or []
            found.append(headers)
        return found
    finally:
        consumer.close()


async def by_aiokafka(servers: str, topic: str) -> list[Headers]:
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    await consumer.start()
    try:
        return [list((await consumer.getone()).headers) for _ in SENT]
    finally:
        await consumer.stop()


def by_http(url: str, topic: str) -> list[Headers]:
    path = f"{url}/api/v1/topics/{topic}/partitions/0/records?offset=0&header_encoding=base64"
    with urllib.request.urlopen(path, timeout=TIMEOUT_S) as response:
        document = json.load(response)
    return [
        [
            (header["key"], None if header["value"] is None else base64.b64decode(header["value"]))
            for header in record["headers"]
        ]
        for record in document["records"]
    ]
