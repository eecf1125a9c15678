"""A member of a group in a process of its own, of any Python client. Not a test.

python group_member.py CLIENT PROTOCOL BOOTSTRAP TOPIC GROUP [INSTANCE]

It joins when it reads a line and leaves when its standard input ends; in the classic protocol its
session lasts as long as SESSION_MS of the environment says. Prints `owns 0 1` when its
partitions have changed and `read VALUE` for each record, then commits. The other languages'
programs beside it do the same.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterable
from typing import Any

SESSION_MS = int(os.environ["SESSION_MS"])
HEARTBEAT_MS = 300
POLL_S = 0.1
KAFKA_PYTHON_POLL_S = 1.0
"""A join that ends between two polls it forgets, and begins another: on a busy machine for ever."""


class Told:
    """When to begin, what was printed last, and whether to go on."""

    def __init__(self) -> None:
        sys.stdin.readline()
        self.stop = threading.Event()
        self._owned: list[int] | None = None
        threading.Thread(target=self._wait_for_the_end, daemon=True).start()

    def _wait_for_the_end(self) -> None:
        sys.stdin.read()
        self.stop.set()

    def owns(self, partitions: Iterable[Any]) -> None:
        owned = sorted(each.partition for each in partitions)
        if owned != self._owned:
            self._owned = owned
            print("owns", *owned, flush=True)

    def read(self, value: bytes | None) -> None:
        print("read", (value or b"").decode(), flush=True)


def confluent(protocol: str, bootstrap: str, topic: str, group: str, instance: str) -> None:
    from confluent_kafka import Consumer, KafkaException

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if protocol == "classic":
        settings |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
    if instance:
        settings["group.instance.id"] = instance
    told, consumer = Told(), Consumer(settings)
    consumer.subscribe([topic])
    while not told.stop.is_set():
        message = consumer.poll(POLL_S)
        told.owns(consumer.assignment())
        if message is not None and message.error() is None:
            told.read(message.value())
            try:
                consumer.commit(message, asynchronous=False)
            except KafkaException as error:
                print("refused", error, flush=True)
    consumer.close()


def kafka_python(protocol: str, bootstrap: str, topic: str, group: str, instance: str) -> None:
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    told = Told()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=instance or None,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    while not told.stop.is_set():
        records = consumer.poll(timeout_ms=int(KAFKA_PYTHON_POLL_S * 1_000))
        told.owns(consumer.assignment())
        for message in (each for batch in records.values() for each in batch):
            told.read(message.value)
        if records:
            try:
                consumer.commit()
            except KafkaError as error:
                print("refused", error, flush=True)
    consumer.close()


async def aiokafka(protocol: str, bootstrap: str, topic: str, group: str, instance: str) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import KafkaError

    told = Told()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=instance or None,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    while not told.stop.is_set():
        records = await consumer.getmany(timeout_ms=int(POLL_S * 1_000))
        told.owns(consumer.assignment())
        for message in (each for batch in records.values() for each in batch):
            told.read(message.value)
        if records:
            try:
                await consumer.commit()
            except KafkaError as error:
                print("refused", error, flush=True)
    await consumer.stop()


def main() -> None:
    client, protocol, bootstrap, topic, group, *instance = sys.argv[1:]
    arguments = (protocol, bootstrap, topic, group, *(instance or [""]))
    if client == "aiokafka":
        asyncio.run(aiokafka(*arguments))
    else:
        {"confluent": confluent, "kafka-python": kafka_python}[client](*arguments)
    print("left", flush=True)


if __name__ == "__main__":
    main()
