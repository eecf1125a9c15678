"""Topics that come and go: their client lives with a true cluster, and sees through a lying one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from logboat.jepsen_style.clients import ChurnedTopic, ClusterClient, TopicPartition
from logboat.jepsen_style.clients.batches import encode_batch, values_of
from logboat.jepsen_style.clients.cluster import NoAnswer
from logboat.jepsen_style.clients.primitives import Reader, Writer
from logboat.jepsen_style.clients.requests import Api
from logboat.jepsen_style.simulation import World
from logboat.jepsen_style.simulation.cluster import Cluster
from logboat.jepsen_style.simulation.dice import stream

OK, NO_SUCH_TOPIC, EXISTS, NOT_LEADER = 0, 3, 36, 6


class Violations:
    """A witness."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def acknowledged(self, partition: TopicPartition, offset: int, value: bytes) -> None: ...

    def consumed(self, partition: TopicPartition, offset: int, value: bytes) -> None: ...

    def deleting(self, partition: TopicPartition, before: int) -> None: ...

    def may_begin_at(self, partition: TopicPartition) -> int:
        return 0

    def may_end_before(self, partition: TopicPartition) -> bool:
        return False

    def leads_in(self, partition: TopicPartition, node_id: int) -> int | None:
        return None

    def violation(self, text: str) -> None:
        self.told.append(text)


class OneNode(ClusterClient):
    """A client and the whole cluster behind it: topics of one partition, in memory."""

    def __init__(self) -> None:
        super().__init__({1: ("nowhere", 1)})
        self.topics: dict[str, list[bytes]] = {}
        self.silent_once = False
        """The next deletion is carried out and not answered."""

    async def ask(
        self,
        node_id: int,
        api: Api,
        body: Writer,
        *,
        within: float = 2.0,
        version: int | None = None,
    ) -> Reader:
        await asyncio.sleep(0)
        request = Reader(bytes(body.data))
        return Reader(bytes(_ANSWERS[api](self, request).data))

    def create(self, name: str) -> int:
        if name in self.topics:
            return EXISTS
        self.topics[name] = []
        return OK

    def delete(self, name: str) -> int:
        return NO_SUCH_TOPIC if self.topics.pop(name, None) is None else OK

    def append(self, name: str, values: list[bytes]) -> int:
        log = self.topics[name]
        log += values
        return len(log) - len(values)

    # Answers by the protocol guide, in the clients' versions.

    def _on_create(self, request: Reader) -> Writer:
        (name,) = request.array(_created_name)
        code = self.create(name)
        return Writer().int32(0).array([name], lambda w, n: w.string(n).int16(code).string(None))

    def _on_delete(self, request: Reader) -> Writer:
        (name,) = request.array(Reader.string)
        code = self.delete(name or "")
        if self.silent_once:
            self.silent_once = False
            raise NoAnswer("lost")
        return Writer().int32(0).array([name], lambda w, n: w.string(n).int16(code))

    def _on_alter(self, request: Reader) -> Writer:
        return (
            Writer()
            .int32(0)
            .array([OK], lambda w, code: w.int16(code).string(None).int8(2).string("t"))
        )

    def _on_metadata(self, request: Reader) -> Writer:
        (name,) = request.array(Reader.string)
        known = name in self.topics
        writer = Writer().int32(0).array([], Writer.string).string(None).int32(1)

        def partition(writer: Writer, number: int) -> None:
            writer.int16(OK).int32(number).int32(1).int32(0)
            writer.array([1], Writer.int32).array([1], Writer.int32).array([], Writer.int32)

        return writer.array(
            [name],
            lambda w, n: (
                w.int16(OK if known else NO_SUCH_TOPIC)
                .string(n)
                .int8(0)
                .array([0] if known else [], partition)
            ),
        )

    def _on_produce(self, request: Reader) -> Writer:
        request.string()
        request.int16()
        request.int32()
        ((name, batches),) = request.array(
            lambda r: (r.string() or "", r.array(lambda p: (p.int32(), p.blob() or b"")[1]))
        )
        base = self.append(name, [value for _, value in values_of(batches[0])])
        return Writer().array(
            [name],
            lambda w, n: w.string(n).array(
                [base], lambda p, b: p.int32(0).int16(OK).int64(b).int64(-1).int64(0)
            ),
        )

    def _on_fetch(self, request: Reader) -> Writer:
        log = self.topics[self._name]
        data = bytearray(encode_batch(log, timestamp_ms=0)) if log else bytearray()
        return (
            Writer()
            .int32(0)
            .int16(OK)
            .int32(0)
            .array(
                [self._name],
                lambda w, n: w.string(n).array(
                    [bytes(data)],
                    lambda p, blob: (
                        p.int32(0)
                        .int16(OK)
                        .int64(len(log))
                        .int64(len(log))
                        .int64(0)
                        .array([], Writer.int64)
                        .int32(-1)
                        .blob(blob)
                    ),
                ),
            )
        )

    @property
    def _name(self) -> str:
        return next(iter(self.topics))


def _created_name(reader: Reader) -> str:
    name = reader.string() or ""
    reader.int32()
    reader.int16()
    reader.array(Reader.string)
    reader.array(lambda r: (r.string(), r.string()))
    return name


_ANSWERS: dict[Api, Callable[[OneNode, Reader], Writer]] = {
    Api.CREATE_TOPICS: OneNode._on_create,
    Api.DELETE_TOPICS: OneNode._on_delete,
    Api.INCREMENTAL_ALTER_CONFIGS: OneNode._on_alter,
    Api.METADATA: OneNode._on_metadata,
    Api.PRODUCE: OneNode._on_produce,
    Api.FETCH: OneNode._on_fetch,
}


class KeepsRecords(OneNode):
    """A deletion leaves the records for the next life of the name."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, list[bytes]] = {}

    def delete(self, name: str) -> int:
        self.kept[name] = self.topics[name]
        return super().delete(name)

    def create(self, name: str) -> int:
        code = super().create(name)
        self.topics[name] = list(self.kept.get(name, []))
        return code


class LosesARecord(OneNode):
    """What stands at offset 1 is another record than was acknowledged."""

    def append(self, name: str, values: list[bytes]) -> int:
        base = super().append(name, values)
        self.topics[name][1] = self.topics[name][0]
        return base


class KeepsTheName(OneNode):
    """A deletion is acknowledged, and the topic is there again when it is to be made anew."""

    def create(self, name: str) -> int:
        code = super().create(name)
        return EXISTS if self.deleted else code

    deleted = 0

    def delete(self, name: str) -> int:
        self.deleted += 1
        return super().delete(name)


def churned(client: ClusterClient, witness: Violations, *, partitions: int = 1) -> ChurnedTopic:
    return ChurnedTopic(
        "passing",
        client,
        witness,
        partitions=partitions,
        replication_factor=3,
        configs={},
        idempotent=False,
        alter="",
        interval_s=0.001,
        wall_ms=lambda: 0,
        dice=stream(1, "churn"),
    )


async def _some_lives(client: OneNode, witness: Violations) -> ChurnedTopic:
    topic = churned(client, witness)
    running = asyncio.create_task(topic.run())
    while topic.lives < 3 and not witness.told:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    topic.stopping = True
    await running
    return topic


async def test_an_honest_cluster_is_believed() -> None:
    witness = Violations()
    topic = await _some_lives(OneNode(), witness)
    assert witness.told == []
    assert topic.reborn == topic.lives - 1


@pytest.mark.parametrize(
    ("liar", "told"),
    [(KeepsRecords, "earlier life"), (LosesARecord, "lost: "), (KeepsTheName, "exists")],
)
async def test_a_lie_is_seen(liar: type[OneNode], told: str) -> None:
    witness = Violations()
    await _some_lives(liar(), witness)
    assert told in witness.told[0]


async def test_a_name_is_given_up_when_its_deletion_ended_unknown() -> None:
    witness, client = Violations(), OneNode()
    client.silent_once = True
    topic = await _some_lives(client, witness)
    assert witness.told == []
    assert topic.reborn == topic.lives - 1
    assert topic._name == "passing.1"


def test_topics_come_and_go_on_a_simulated_cluster() -> None:
    witness = Violations()
    with World(5) as world:
        cluster = Cluster(world)
        cluster.start()
        world.run(1.5)
        client = ClusterClient(cluster.addresses)
        topic = churned(client, witness, partitions=2)
        running = cluster.client_host.spawn(topic.run())
        world.run_until(lambda: topic.lives >= 3, within=20.0)
        topic.stopping = True
        world.run_until(running.done, within=10.0)
        client.close()
    assert witness.told == []
    assert topic.reborn >= 2
