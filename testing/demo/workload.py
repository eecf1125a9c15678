"""Producing with a real client, and remembering what was acknowledged."""

from __future__ import annotations

import logging
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from ..local_cluster import NotInTime

MAX_OUTSTANDING = 20_000
"""Records that were produced and have no answer yet."""

SLICE = 500
"""Records between two looks at the condition."""

NOT_ACKNOWLEDGED = -1

UNKNOWN_OFFSET = -2
"""Acknowledged as a repetition of what the leader has, of which it no longer knows the place: it
keeps the last batches only (DUPLICATE_SEQUENCE_NUMBER)."""


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledgement as it came in."""

    number: int
    partition: int
    offset: int
    at: float
    """`time.monotonic()`."""


class Workload:
    """Record n has the key `n` and line n as its value."""

    def __init__(self, bootstrap_servers: str, topic: str, lines: list[bytes]) -> None:
        self.topic = topic
        self._lines = lines
        self._next = 0
        self.acknowledged = 0
        self.partitions = array("i", [NOT_ACKNOWLEDGED]) * len(lines)
        self.offsets = array("q", [NOT_ACKNOWLEDGED]) * len(lines)
        self.last_ack: Ack | None = None
        self.failures: list[str] = []
        self._answered = 0
        self._on_ack: Callable[[Ack], None] = lambda ack: None
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 120_000,
                # A new leader stands within a second: ask for it sooner than the defaults would.
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                **QUIET,
            },
            logger=silent_logger(),
        )

    @property
    def size(self) -> int:
        return len(self._lines)

    @property
    def produced(self) -> int:
        """Numbers below this were handed to the client."""
        return self._next

    def listen(self, on_ack: Callable[[Ack], None]) -> None:
        """Hand every further acknowledgement to `on_ack` too."""
        self._on_ack = on_ack

    def run_until(
        self, done: Callable[[], bool], what: str, *, up_to: int | None = None, seconds: float = 120
    ) -> None:
        """Produce, up to record `up_to`, until `done`. Raises NotInTime."""
        deadline = time.monotonic() + seconds
        end = self.size if up_to is None else up_to
        while not done():
            if time.monotonic() >= deadline:
                raise NotInTime(f"{what}: not within {seconds:.0f} s")
            for _ in range(SLICE):
                if self._next >= end or self._next - self._answered >= MAX_OUTSTANDING:
                    break
                self._produce_next()
            self._producer.poll(0.01 if self._next >= end else 0)

    def poll(self) -> None:
        """Take in the acknowledgements that have come."""
        self._producer.poll(0)

    def finish(self) -> None:
        """Produce the rest and wait until every record is acknowledged or given up."""
        self.run_until(lambda: self._answered == self.size, "all records answered")

    def _produce_next(self) -> None:
        number = self._next
        self._producer.produce(
            self.topic, key=b"%d" % number, value=self._lines[number], on_delivery=self._delivered
        )
        self._next += 1

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._answered += 1
        if error is not None:
            self.failures.append(str(error))
            return
        key = message.key()
        assert key is not None
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        ack = Ack(
            int(key), partition, UNKNOWN_OFFSET if offset is None else offset, time.monotonic()
        )
        self.partitions[ack.number] = ack.partition
        self.offsets[ack.number] = ack.offset
        self.acknowledged += 1
        self.last_ack = ack
        self._on_ack(ack)


QUIET: dict[str, Any] = {
    # A killed leader is the point here; librdkafka would write about it long after the verdict.
    "log_level": 0,
    "error_cb": lambda error: None,
}


def silent_logger() -> logging.Logger:
    logger = logging.getLogger("logboat.testing.demo.client")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
