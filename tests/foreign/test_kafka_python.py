"""kafka-python 3: pure Python, idempotent by default."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka import KafkaConsumer, KafkaProducer

from logboat.testing import LocalCluster

pytestmark = pytest.mark.usefixtures("foreign_leaks")
"""kafka-python's; collected before another test is blamed for them."""


@pytest.mark.processes
@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_kafka_python_produces_and_consumes_in_a_group(
    cluster: LocalCluster, fresh: Callable[[str], str], codec: str | None
) -> None:
    topic = fresh("kafka-python")
    values = [f"value {number}".encode() * 10 for number in range(100)]
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, acks="all", compression_type=codec
    )
    futures = [producer.send(topic, value, key=b"same") for value in values]
    offsets = [future.get(timeout=60).offset for future in futures]
    producer.close()
    assert offsets == list(range(len(values)))
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap_servers,
        group_id=fresh("g"),
        auto_offset_reset="earliest",
        consumer_timeout_ms=60_000,
    )
    # Values first: zip asks its last iterator only while the others have more.
    read = [message.value for _, message in zip(values, consumer, strict=False)]
    consumer.commit()
    consumer.close()
    assert read == values
