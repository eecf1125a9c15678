"""Reading everything back, and comparing it with what was acknowledged."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Message, TopicPartition

from ..local_cluster import NotInTime
from .workload import NOT_ACKNOWLEDGED, QUIET, UNKNOWN_OFFSET, Workload, silent_logger

READ_SECONDS = 120.0
MAX_COMPLAINTS = 10


@dataclass(frozen=True, slots=True)
class ReadRecord:
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(slots=True)
class Comparison:
    """Acknowledged = read + lost."""

    acknowledged: int
    read: int = 0
    """Acknowledged records that stand at their acknowledged offset, if one was told, unchanged."""
    complaints: list[str] = field(default_factory=list)
    """What else is wrong: records twice, out of order, or never produced. The first few."""

    @property
    def lost(self) -> int:
        return self.acknowledged - self.read

    @property
    def held(self) -> bool:
        return self.lost == 0 and not self.complaints

    def complain(self, sentence: str) -> None:
        if len(self.complaints) < MAX_COMPLAINTS:
            self.complaints.append(sentence)


def compare(workload: Workload, lines: list[bytes], records: Iterable[ReadRecord]) -> Comparison:
    """Every acknowledged record once, at its acknowledged offset, in order. `records` come in
    order of their offsets within each partition.

    A record without an acknowledgement may be there or not, but not twice and not out of order.
    """
    comparison = Comparison(workload.acknowledged)
    seen = bytearray(len(lines))
    last_number: dict[int, int] = {}
    for record in records:
        number = _number(record.key, len(lines))
        where = f"{record.partition}/{record.offset}"
        if number is None or record.value != lines[number]:
            comparison.complain(f"{where} holds what was never produced: {record.key!r}")
            continue
        if seen[number]:
            comparison.complain(f"record {number} is there a second time at {where}")
        elif number <= last_number.get(record.partition, -1):
            comparison.complain(f"record {number} is out of order at {where}")
        seen[number] = 1
        last_number[record.partition] = number
        acknowledged_at = (workload.partitions[number], workload.offsets[number])
        if acknowledged_at in (
            (record.partition, record.offset),
            (record.partition, UNKNOWN_OFFSET),
        ):
            comparison.read += 1
        elif acknowledged_at[1] != NOT_ACKNOWLEDGED:
            comparison.complain(f"record {number} is at {where}, acknowledged at {acknowledged_at}")
    return comparison


def _number(key: bytes | None, size: int) -> int | None:
    if key is None or not key.isdigit() or int(key) >= size:
        return None
    return int(key)


def read_everything(bootstrap_servers: str, topic: str, partitions: int) -> Iterator[ReadRecord]:
    """All records below the high watermarks as they stand now. Raises NotInTime."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "demo-reads-back",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            **QUIET,
        },
        logger=silent_logger(),
    )
    try:
        left = _ends(consumer, topic, partitions)
        starts = [TopicPartition(topic, partition, 0) for partition in left]
        consumer.assign(starts)
        deadline = time.monotonic() + READ_SECONDS
        trouble = "no error was reported"
        while left:
            if time.monotonic() >= deadline:
                raise NotInTime(
                    f"reading back: {left} not reached in {READ_SECONDS:.0f} s; {trouble}"
                )
            for message in consumer.consume(num_messages=10_000, timeout=0.2):
                if (error := message.error()) is not None:
                    # The client goes on by itself after most; the deadline judges.
                    trouble = str(error)
                else:
                    yield from _read(message, left)
    finally:
        consumer.close()


def _ends(consumer: Consumer, topic: str, partitions: int) -> dict[int, int]:
    """High watermark of each partition that holds anything."""
    ends = {}
    for partition in range(partitions):
        where = TopicPartition(topic, partition)
        _, end = consumer.get_watermark_offsets(where, timeout=30.0, cached=False)
        if end > 0:
            ends[partition] = end
    return ends


def _read(message: Message, left: dict[int, int]) -> Iterator[ReadRecord]:
    partition, offset = message.partition(), message.offset()
    if partition in left:
        yield ReadRecord(partition, offset, message.key(), message.value())
        if offset + 1 >= left[partition]:
            del left[partition]
