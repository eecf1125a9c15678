"""Writes the records of one partition, in order, a batch at a time.

A batch on its way is decided before the next one leaves, so order holds also where a batch is sent
again. An idempotent lane numbers its records: the log then recognises what it already has, and a
lost answer is no reason to write twice or to give up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson

from .answers import as_error
from .backoff import Backoff
from .batches import Identity, Pending, Queue, encode_batch
from .deadline import Deadline
from .errors import (
    ClientError,
    DeadlineExceeded,
    OutcomeUnknown,
    RecordTooLarge,
    Refused,
    TopicNotFound,
)
from .identities import Identities
from .records import RecordMetadata, TopicPartition
from .topics import Topics, topic_path
from .transport import Repeat, Transport

NDJSON = {"Content-Type": "application/x-ndjson"}
SEQUENCES = 2**31

_IDENTITY_SPENT = frozenset(
    {"UNKNOWN_PRODUCER_ID", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH"}
)
"""The log does not know this id's past here (any more)."""


class Lane:
    """`settled` is told of every batch that is decided, whichever way; its records' futures are for
    it to end only where there is an error."""

    def __init__(
        self,
        place: TopicPartition,
        transport: Transport,
        topics: Topics,
        identities: Identities | None,
        *,
        acks: str,
        linger: float,
        max_batch_bytes: int,
        settled: Callable[[list[Pending], BaseException | None], None],
    ) -> None:
        self.place = place
        self.queue = Queue(max_batch_bytes)
        self._transport = transport
        self._topics = topics
        self._identities = identities
        self._acks = acks
        self._linger = linger
        self._settled = settled
        self.idle = True
        """Nobody runs `run`."""
        self._ready = asyncio.Event()
        self._identity: Identity | None = None
        self._must_begin_anew = False
        self._sequence = 0

    def add(self, record: Pending) -> None:
        if self.queue.add(record):
            self._ready.set()

    def hurry(self) -> None:
        """Somebody waits: what is there leaves without lingering."""
        self._ready.set()

    def give_up(self) -> None:
        """Nothing of what still waits was sent."""
        while self.queue:
            never_sent = DeadlineExceeded("the producer was closed before it was sent")
            self._settled(self.queue.take(), never_sent)

    async def run(self) -> None:
        """Until the queue is empty. Never raises for what happens to a batch."""
        try:
            await self._run()
        finally:
            self.idle = True

    async def _run(self) -> None:
        while self.queue:
            if not self.queue.full and self._linger > 0:
                await self._gather()
            batch = self.queue.take()
            try:
                await self._write(batch)
            except ClientError as error:
                self._settled(batch, error)
            except asyncio.CancelledError:
                self._settled(batch, OutcomeUnknown("the producer was closed while it was written"))
                raise
            except Exception as error:  # A mistake of ours: nobody may wait for ever because of it.
                self._settled(batch, error)
                self._begin_anew()

    async def _gather(self) -> None:
        try:
            async with asyncio.timeout(self._linger):
                await self._ready.wait()
        except TimeoutError:
            pass
        self._ready.clear()

    async def _write(self, batch: list[Pending]) -> None:
        """Raises ClientError: OutcomeUnknown where the batch may have been written."""
        deadline = Deadline(min(record.expires_at for record in batch))
        backoff = Backoff(self._transport.rng)
        perhaps = False
        failure: ClientError = DeadlineExceeded("its delivery timeout is up before it was sent")
        while not deadline.passed:
            try:
                base_offset = await self._attempt(batch, deadline)
            except OutcomeUnknown as error:
                if self._identities is None:
                    raise
                perhaps, failure = True, error
            except RecordTooLarge:
                if len(batch) == 1 or perhaps:
                    raise
                self.queue.put_back(batch)
                self.queue.max_batch_records = max(1, len(batch) // 2)
                return
            except Refused as error:
                failure = error
                if error.kafka_error in _IDENTITY_SPENT and not perhaps and self._identity:
                    self._begin_anew()
                elif not error.retriable:
                    raise self._final(failure, perhaps) from None
            except ClientError as error:
                raise self._final(error, perhaps) from None
            else:
                self._place(batch, base_offset)
                return
            await asyncio.sleep(min(backoff.next_wait(), deadline.left))
        raise self._final(failure, perhaps)

    def _final(self, failure: ClientError, perhaps: bool) -> ClientError:
        """What is known of a batch that is given up. Its numbers are used again only if it is sure
        that the log does not have it."""
        if not perhaps:
            return failure
        self._begin_anew()
        if isinstance(failure, OutcomeUnknown):
            return failure
        return OutcomeUnknown(f"it may have been written: {failure.message}", node=failure.node)

    def _begin_anew(self) -> None:
        self._identity = None
        self._must_begin_anew = True
        self._sequence = 0

    async def _attempt(self, batch: list[Pending], deadline: Deadline) -> int:
        """The offset of the first record."""
        topic, partition = self.place
        if self._identities is not None and self._identity is None:
            fresh = self._identities.fresh if self._must_begin_anew else self._identities.first
            self._identity = await fresh(deadline)
        body = encode_batch(batch, partition, self._identity, self._sequence)
        answer = await self._transport.call(
            "POST",
            f"{topic_path(topic)}/records",
            params={"acks": self._acks},
            body=body,
            headers=NDJSON,
            deadline=deadline,
            repeat=Repeat.NEVER if self._identities is None else Repeat.SAFELY,
        )
        verdict = _verdict(answer.body)
        if verdict.get("outcome") == "applied":
            return int(verdict["base_offset"])
        error = as_error(int(verdict.get("error_code", 500)) % 1000, verdict, answer.node)
        if isinstance(error, TopicNotFound):
            self._topics.forget(topic)
        raise error

    def _place(self, batch: list[Pending], base_offset: int) -> None:
        if self._identity is not None:
            self._sequence = (self._sequence + len(batch)) % SEQUENCES
        topic, partition = self.place
        for offset, record in enumerate(batch, base_offset):
            if not record.placed.done():
                record.placed.set_result(RecordMetadata(topic, partition, offset, record.timestamp))
        self._settled(batch, None)


def _verdict(body: bytes) -> dict[str, Any]:
    """The answer to the one line that was sent."""
    line, _, _ = body.partition(b"\n")
    try:
        verdict = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise OutcomeUnknown(f"the node answered {line[:80]!r}") from None
    if not isinstance(verdict, dict):
        raise OutcomeUnknown(f"the node answered {line[:80]!r}")
    return verdict
