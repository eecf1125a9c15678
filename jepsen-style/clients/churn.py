"""A topic that comes and goes: made, written, altered, read, deleted, and made again by its name.

What the cluster promises of it, the client can check alone, since nobody else touches the name:

* made is made: after a deletion that was acknowledged the name is free (RULES A6, A7);
* what was acknowledged in a life of the topic is read in it, each record at its offset;
* nothing of an earlier life is read in a later one.

A request by name may take effect long after its connection is lost, and then hit a later life. So a
name is given up when a request that changes something has ended unknown, or when some node has not
been heard to say that the topic is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random

from . import requests
from .batches import encode_batch, values_of
from .cluster import ASK_S, RETRY_S, ClusterClient, NoAnswer, NotAsked
from .journal import Witness
from .primitives import Malformed, Reader, Writer
from .producer import ACKS_ALL
from .requests import Api, FetchPosition, TopicPartition, error_name

BATCHES = 6
"""Of each life."""
BATCH_RECORDS = 2
GONE_S = 3.0
"""All nodes have said so within this, or the name is given up."""
SEGMENT_MS = ("300", "1000", "60000")
"""Settings that follow each other."""

NOT_MADE = frozenset({"INVALID_REPLICATION_FACTOR", "NOT_CONTROLLER"})
"""Nothing happened."""


class Unknown(Exception):
    """It may have happened, or may happen yet."""


class ChurnedTopic:
    """One name after the other, and many lives of each; see the module."""

    def __init__(
        self,
        name: str,
        client: ClusterClient,
        witness: Witness,
        *,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str],
        idempotent: bool,
        alter: str,
        interval_s: float,
        wall_ms: Callable[[], int],
        dice: Random,
    ) -> None:
        """`alter`: another topic whose settings change with this one's; none when empty."""
        self.lives = 0
        """That went from creation to deletion."""
        self.reborn = 0
        """Of them, those under a name that had one before."""
        self.acknowledged = 0
        self.stopping = False
        self._prefix = name
        self._client = client
        self._witness = witness
        self._numbers = range(partitions)
        self._replication_factor = replication_factor
        self._configs = dict(configs)
        self._idempotent = idempotent
        self._altered = [alter] if alter else []
        self._interval_s = interval_s
        self._wall_ms = wall_ms
        self._dice = dice
        self._names = 0
        self._name = f"{name}.0"
        self._lives_of_name = 0
        self._node_turn = 0
        self._values = 0
        self._written: dict[TopicPartition, dict[int, bytes]] = {}
        """Of this life: what was acknowledged, by offset."""
        self._sent: dict[bytes, None] = {}
        """Of this life: all that may stand in it."""
        self._may_come_late = False
        """A batch of this life may be on its way yet, to a topic of this name."""

    async def run(self) -> None:
        """Until `stopping` is set, and the life then led is over."""
        while not self.stopping:
            try:
                await self._live()
            except Unknown:
                self._names += 1
                self._lives_of_name = 0
                self._name = f"{self._prefix}.{self._names}"

    async def _live(self) -> None:
        self._written.clear()
        self._sent.clear()
        self._may_come_late = False
        await self._make()
        for number in range(BATCHES):
            await self._pause()
            await self._write(TopicPartition(self._name, number % len(self._numbers)))
            if number == BATCHES // 2:
                await self._alter()
        await self._read()
        await self._delete()
        self.lives += 1
        self.reborn += self._lives_of_name > 0
        self._lives_of_name += 1
        if self._may_come_late:
            raise Unknown
        await self._hear_that_it_is_gone()

    async def _pause(self) -> None:
        await asyncio.sleep(self._interval_s * (0.5 + self._dice.random()))

    # Requests by name

    async def _ask_one(self, api: Api, body: Writer) -> Reader:
        """The next node that can be asked; raises Unknown when it does not answer."""
        while True:
            nodes = self._client.node_ids
            self._node_turn += 1
            try:
                return await self._client.ask(nodes[self._node_turn % len(nodes)], api, body)
            except NotAsked:
                await asyncio.sleep(RETRY_S)
            except NoAnswer as error:
                raise Unknown from error

    async def _make(self) -> None:
        body = requests.create_topic_request(
            self._name,
            partitions=len(self._numbers),
            replication_factor=self._replication_factor,
            configs=self._configs,
            timeout_ms=int(ASK_S * 750),
        )
        while True:
            answer = await self._ask_one(Api.CREATE_TOPICS, body)
            error = error_name(requests.create_topic_response(answer)[0])
            if error == "NONE":
                self._client.forget(self._name)
                return
            if error == "TOPIC_ALREADY_EXISTS":
                self._witness.violation(f"churn: {self._name} exists, and is nobody's")
            if error not in NOT_MADE:
                raise Unknown
            await asyncio.sleep(RETRY_S)

    async def _delete(self) -> None:
        body = requests.delete_topic_request(self._name, timeout_ms=int(ASK_S * 750))
        while True:
            error = error_name(
                requests.delete_topic_response(await self._ask_one(Api.DELETE_TOPICS, body))
            )
            if error == "NONE":
                return
            if error == "UNKNOWN_TOPIC_OR_PARTITION" and await self._is_gone_everywhere():
                self._witness.violation(f"churn: {self._name} is gone, and nobody deleted it")
            if error not in (*NOT_MADE, "UNKNOWN_TOPIC_OR_PARTITION"):
                raise Unknown
            # A node that lags behind does not know the topic yet.
            await asyncio.sleep(RETRY_S)

    async def _alter(self) -> None:
        """What came of it does not matter: a setting has no memory."""
        configs = {"segment.ms": self._dice.choice(SEGMENT_MS)}
        for topic in (self._name, *self._altered):
            try:
                body = requests.alter_topic_request(topic, configs)
                requests.alter_topic_response(
                    await self._ask_one(Api.INCREMENTAL_ALTER_CONFIGS, body)
                )
            except Unknown:
                pass

    async def _hear_that_it_is_gone(self) -> None:
        """Raises Unknown when not every node says so in time."""
        try:
            async with asyncio.timeout(GONE_S):
                while True:
                    if await self._is_gone_everywhere():
                        return
                    await asyncio.sleep(RETRY_S)
        except TimeoutError as error:
            raise Unknown from error

    async def _is_gone_everywhere(self) -> bool:
        body = requests.metadata_request([self._name])
        for node_id in self._client.node_ids:
            try:
                answer = await self._client.ask(node_id, Api.METADATA, body, within=ASK_S / 2)
            except (NotAsked, NoAnswer):
                return False
            if requests.metadata_response(answer).partitions:
                return False
        return True

    # Records

    async def _write(self, partition: TopicPartition) -> None:
        """One batch, until it is acknowledged; without idempotence it may stand there twice."""
        names = [f"{self._prefix}/{self._values + number}" for number in range(BATCH_RECORDS)]
        self._values += BATCH_RECORDS
        values = [name.encode() for name in names]
        self._sent.update(dict.fromkeys(values))
        batch = await self._batch(values)
        while True:
            error, base_offset = await self._produce(partition, batch)
            if error == "NONE":
                break
            await self._client.look_again(partition)
        written = self._written.setdefault(partition, {})
        written.update({base_offset + number: value for number, value in enumerate(values)})
        self.acknowledged += len(values)

    async def _batch(self, values: list[bytes]) -> bytes:
        if not self._idempotent:
            return encode_batch(values, timestamp_ms=self._wall_ms())
        while True:
            try:
                # A new producer for each batch: their ids are part of the churn.
                producer_id, producer_epoch = await self._client.producer_id()
                break
            except NoAnswer:
                await asyncio.sleep(RETRY_S)
        return encode_batch(
            values,
            timestamp_ms=self._wall_ms(),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0,
        )

    async def _produce(self, partition: TopicPartition, batch: bytes) -> tuple[str, int]:
        body = requests.produce_request(
            partition, batch, acks=ACKS_ALL, timeout_ms=int(ASK_S * 750)
        )
        try:
            leader = await self._client.leader(partition)
            answer = await self._client.ask(leader.leader, Api.PRODUCE, body)
        except NotAsked as error:
            return str(error), -1
        except NoAnswer as error:
            self._may_come_late = True
            return str(error), -1
        code, base_offset = requests.produce_response(answer)
        return error_name(code), base_offset

    async def _read(self) -> None:
        """All that was acknowledged in this life."""
        for partition, written in self._written.items():
            position, last = 0, max(written)
            while position <= last:
                found = await self._fetch(partition, position)
                if found is None:
                    await self._client.look_again(partition)
                    continue
                for offset, value in found:
                    self._check(partition, offset, value)
                position = max([position, *(offset + 1 for offset, _ in found)])

    async def _fetch(
        self, partition: TopicPartition, position: int
    ) -> list[tuple[int, bytes]] | None:
        try:
            leader = await self._client.leader(partition)
            wanted = {partition: FetchPosition(leader.leader_epoch, position)}
            body = requests.fetch_request(wanted, max_wait_ms=100, max_bytes=1 << 20)
            answer = await self._client.ask(leader.leader, Api.FETCH, body)
            (fetched,) = requests.fetch_response(answer).values()
            if fetched.error:
                return None
            return [item for item in values_of(fetched.records) if item[0] >= position]
        except (NotAsked, NoAnswer):
            return None
        except Malformed as error:
            self._witness.violation(f"corrupt: {partition.key} was served so: {error}")
            return None

    def _check(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        expected = self._written[partition].get(offset)
        if expected is not None and value != expected:
            self._witness.violation(
                f"lost: {partition.key} at {offset} holds {value!r}, acknowledged was {expected!r}"
            )
        if value not in self._sent:
            self._witness.violation(
                f"churn: {value!r} at {offset} of {partition.key} is of an earlier life"
            )
