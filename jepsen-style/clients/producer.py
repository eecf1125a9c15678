"""A producer with `acks=all`: one batch after the other, each to its end, into one partition after
the other. Idempotent or plain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random

from ..history import Outcome
from . import requests
from .batches import Keyed, Shown, encode_batch, padded, shown
from .cluster import ASK_S, RETRY_S, ClusterClient, NoAnswer, NotAsked
from .journal import Journal
from .requests import Api, TopicPartition, error_name
from .sequences import SENT_AGAIN

ACKS_ALL = -1
GIVE_UP_S = 12.0
"""An idempotent producer sends a batch again for this long; then its outcome stays unknown."""

NOT_ASKED = "not asked"


class Producer:
    """Values are `<name>:<number>`, unique in the run when names are."""

    def __init__(
        self,
        name: str,
        client: ClusterClient,
        journal: Journal,
        partitions: Sequence[TopicPartition],
        *,
        idempotent: bool,
        batch_records: int,
        record_bytes: int,
        interval_s: float,
        wall_ms: Callable[[], int],
        dice: Random,
        keys: int = 0,
        tombstones: float = 0.0,
    ) -> None:
        """`wall_ms`: the time of day, for the records' timestamps. `keys`: so many different ones
        have the records, and some of them are tombstones; 0: none has a key."""
        self._name = name
        self._client = client
        self._journal = journal
        self._partitions = list(partitions)
        self._idempotent = idempotent
        self._batch_records = batch_records
        self._record_bytes = record_bytes
        self._interval_s = interval_s
        self._wall_ms = wall_ms
        self._dice = dice
        self._keys = keys
        self._tombstones = tombstones
        self._process = journal.process()
        self._number = 0
        self._producer: tuple[int, int] | None = None
        self._sequences: dict[TopicPartition, int] = {}
        self.stopping = False

    async def run(self) -> None:
        """Until `stopping` is set, and the batch then on its way is decided."""
        turn = 0
        while not self.stopping:
            partition = self._partitions[turn % len(self._partitions)]
            turn += 1
            if self._idempotent and self._producer is None:
                try:
                    self._producer = await self._client.producer_id()
                except NoAnswer:
                    await asyncio.sleep(RETRY_S)
                    continue
            await self._send(partition)
            await asyncio.sleep(self._interval_s * (0.5 + self._dice.random()))

    async def _send(self, partition: TopicPartition) -> None:
        names = [f"{self._name}:{self._number + n}" for n in range(self._batch_records)]
        self._number += self._batch_records
        records = [self._record(name) for name in names]
        values = [shown(record) for record in records]
        batch = self._batch(partition, records)
        self._journal.sending(self._process, partition, values)
        deadline = asyncio.get_running_loop().time() + GIVE_UP_S
        earlier_unknown = False
        while True:
            error, base_offset = await self._try(partition, batch)
            if error == "NONE":
                self._journal.sent(self._process, partition, values, base_offset)
                self._sequences[partition] = self._sequences.get(partition, 0) + len(values)
                return
            again = (
                self._idempotent
                and (error in SENT_AGAIN or not error.isupper())
                and asyncio.get_running_loop().time() < deadline
            )
            if not again:
                self._give_up(partition, values, error, earlier_unknown=earlier_unknown)
                await self._client.look_again(partition)
                return
            nothing_happened = error == "NOT_ENOUGH_REPLICAS" or error.startswith(NOT_ASKED)
            earlier_unknown = earlier_unknown or not nothing_happened
            await self._client.look_again(partition)

    def _give_up(
        self,
        partition: TopicPartition,
        values: Sequence[Shown],
        error: str,
        *,
        earlier_unknown: bool,
    ) -> None:
        named = error if error.isupper() else "CONNECTION_LOST_AFTER_SEND"
        if error.startswith(NOT_ASKED):
            named = "CONNECTION_REFUSED_BEFORE_SEND"
        outcome = self._journal.not_sent(
            self._process, partition, values, named, earlier_unknown=earlier_unknown
        )
        if outcome is Outcome.INFO:
            # Its sequences are used up or not: only a new producer can tell them apart.
            self._process = self._journal.process()
            self._producer = None
            self._sequences.clear()

    def _record(self, name: str) -> bytes | Keyed:
        value = padded(name, self._record_bytes)
        if not self._keys:
            return value
        gone = self._dice.random() < self._tombstones
        return Keyed(f"k{self._dice.randrange(self._keys)}", name, None if gone else value)

    def _batch(self, partition: TopicPartition, records: Sequence[bytes | Keyed]) -> bytes:
        if self._producer is None:
            return encode_batch(records, timestamp_ms=self._wall_ms())
        producer_id, producer_epoch = self._producer
        return encode_batch(
            records,
            timestamp_ms=self._wall_ms(),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self._sequences.get(partition, 0),
        )

    async def _try(self, partition: TopicPartition, batch: bytes) -> tuple[str, int]:
        """(Kafka's name of the error, base offset), or a sentence in small letters when there was
        no answer; it begins with `not asked` when nothing was sent."""
        try:
            leader = await self._client.leader(partition)
            body = requests.produce_request(
                partition, batch, acks=ACKS_ALL, timeout_ms=int(ASK_S * 750)
            )
            answer = await self._client.ask(leader.leader, Api.PRODUCE, body)
        except NotAsked as error:
            return f"{NOT_ASKED}: {error}", -1
        except NoAnswer as error:
            return f"no answer: {error}", -1
        code, base_offset = requests.produce_response(answer)
        return error_name(code), base_offset
