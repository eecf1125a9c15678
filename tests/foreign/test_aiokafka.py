"""aiokafka: old versions of every API, asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from logboat.testing import LocalCluster


@pytest.mark.processes
@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
async def test_aiokafka_produces_and_consumes_in_a_group(
    cluster: LocalCluster, fresh: Callable[[str], str], codec: str | None
) -> None:
    topic = fresh("aiokafka")
    values = [f"value {number}".encode() * 10 for number in range(100)]
    producer = AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        acks="all",
        enable_idempotence=True,
        compression_type=codec,
    )
    await producer.start()
    try:
        for value in values:
            await producer.send_and_wait(topic, value, key=b"same")
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap_servers,
        group_id=fresh("g"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        async with asyncio.timeout(60):
            read = [(await consumer.getone()).value for _ in values]
        await consumer.commit()
    finally:
        await consumer.stop()
    assert read == values
