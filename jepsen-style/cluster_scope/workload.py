"""The schedule's clients, on the client host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from ...seam import Clock
from ..clients import (
    OBSERVER,
    ChurnedTopic,
    ClusterClient,
    Consumer,
    Journal,
    PipelinedProducer,
    Producer,
    Resend,
    TopicPartition,
    Trimmer,
    read_replicas,
)
from ..schedule import Churn, Consumers, Producers, Schedule, Trims
from ..schedule.schedule import OFFSETS_TOPIC
from ..schedule.targets import partition_of
from ..simulation.dice import stream
from .disks import Key
from .group_work import GroupWork

Work = Callable[[ClusterClient], Coroutine[Any, Any, None]]


class ClientHost(Protocol):
    """Where clients run."""

    @property
    def clock(self) -> Clock: ...

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]: ...


class ClientSide(Protocol):
    """All that clients have of a cluster, simulated or real."""

    @property
    def addresses(self) -> Mapping[int, tuple[str, int]]: ...

    @property
    def client_host(self) -> ClientHost: ...


class Workload:
    def __init__(self, schedule: Schedule, cluster: ClientSide, journal: Journal) -> None:
        self._schedule = schedule
        self._cluster = cluster
        self._journal = journal
        self._keyed = [topic.name for topic in schedule.topics if schedule.is_compacted(topic)]
        self._producers: list[Producer | PipelinedProducer] = []
        self._consumers: list[Consumer] = []
        self._producing: list[asyncio.Task[None]] = []
        self.churned: list[ChurnedTopic] = []
        self._churning: list[asyncio.Task[None]] = []
        self.trimmers: list[Trimmer] = []
        self._trimming: list[asyncio.Task[None]] = []
        self.groups = [
            GroupWork(
                group,
                self._partitions(group.topic),
                journal,
                self._spawn,
                schedule.seed,
            )
            for group in schedule.groups
        ]
        self._reader: Consumer | None = None
        self._reading: list[asyncio.Task[None]] = []
        self._ends: Mapping[Key, int] = {}

    def _spawn(self, work: Work) -> asyncio.Task[None]:
        return self._cluster.client_host.spawn(self._with_client(work))

    async def _with_client(self, work: Work) -> None:
        client = ClusterClient(self._cluster.addresses)
        try:
            await work(client)
        finally:
            client.close()

    def _partitions(self, *topics: str) -> list[TopicPartition]:
        return [
            TopicPartition(topic.name, number)
            for topic in self._schedule.topics
            if topic.name in topics
            for number in range(topic.partitions)
        ]

    def kept_partitions(self) -> list[TopicPartition]:
        """Of all topics that live as long as the run, but for those of the cluster itself."""
        return self._partitions(*(topic.name for topic in self._schedule.topics))

    def create_topics(self, *, within_s: float) -> asyncio.Task[None]:
        """And write down what is promised of each."""
        for topic in self._schedule.kept_topics():
            self._journal.promised(
                topic.name,
                synced=self._schedule.is_synced(topic),
                replication_factor=topic.replication_factor,
                min_insync_replicas=self._schedule.min_insync_replicas(topic),
                compacted=topic.name in self._keyed,
            )

        async def create(client: ClusterClient) -> None:
            for topic in self._schedule.topics:
                await client.create_topic(
                    topic.name,
                    partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    configs=topic.configs,
                    within=within_s,
                )

        return self._spawn(create)

    def start(self) -> None:
        number = 0
        for producers in self._schedule.producers:
            for _ in range(producers.count):
                self._start_producer(f"{producers.topic}.{number}", producers)
                number += 1
        for consumers in self._schedule.consumers:
            for _ in range(consumers.count):
                self._start_consumer(consumers)
        for group in self.groups:
            group.start()
        for number, trims in enumerate(self._schedule.trims):
            self._start_trimmer(number, trims)
        for churn in self._schedule.churn:
            for place in range(churn.topics):
                self._start_churn(f"{churn.topic.name}-{place}", churn)

    def _start_producer(self, name: str, chosen: Producers) -> None:
        async def produce(client: ClusterClient) -> None:
            producer = self._producer(name, chosen, client)
            self._producers.append(producer)
            await producer.run()

        self._producing.append(self._spawn(produce))

    def _producer(
        self, name: str, chosen: Producers, client: ClusterClient
    ) -> Producer | PipelinedProducer:
        partitions = self._partitions(chosen.topic)
        wall_ms = self._cluster.client_host.clock.now_ms
        dice = stream(self._schedule.seed, f"producer:{name}")
        if chosen.in_flight == 1:
            return Producer(
                name,
                client,
                self._journal,
                partitions,
                idempotent=chosen.idempotent,
                batch_records=chosen.batch_records,
                record_bytes=chosen.record_bytes,
                interval_s=chosen.interval_ms / 1000,
                wall_ms=wall_ms,
                dice=dice,
                keys=chosen.keys,
                tombstones=chosen.tombstones,
            )
        return PipelinedProducer(
            name,
            client,
            self._journal,
            partitions,
            in_flight=chosen.in_flight,
            resend=Resend(chosen.resend),
            patience_s=chosen.patience_ms / 1000,
            batch_records=chosen.batch_records,
            record_bytes=chosen.record_bytes,
            interval_s=chosen.interval_ms / 1000,
            wall_ms=wall_ms,
            dice=dice,
        )

    def _start_consumer(self, chosen: Consumers) -> None:
        async def consume(client: ClusterClient) -> None:
            consumer = Consumer(
                client,
                self._journal,
                self._partitions(chosen.topic),
                max_wait_s=chosen.max_wait_ms / 1000,
                keyed=self._keyed,
            )
            self._consumers.append(consumer)
            await consumer.run()

        self._spawn(consume)

    def _start_churn(self, name: str, chosen: Churn) -> None:
        async def come_and_go(client: ClusterClient) -> None:
            churned = ChurnedTopic(
                name,
                client,
                self._journal.witness,
                partitions=chosen.topic.partitions,
                replication_factor=chosen.topic.replication_factor,
                configs=chosen.topic.configs,
                idempotent=chosen.idempotent,
                alter=chosen.alter,
                interval_s=chosen.interval_ms / 1000,
                wall_ms=self._cluster.client_host.clock.now_ms,
                dice=stream(self._schedule.seed, f"churn:{name}"),
            )
            self.churned.append(churned)
            await churned.run()

        self._churning.append(self._spawn(come_and_go))

    def _start_trimmer(self, number: int, chosen: Trims) -> None:
        async def trim(client: ClusterClient) -> None:
            trimmer = Trimmer(
                client,
                self._journal,
                self._partitions(chosen.topic),
                keep_records=chosen.keep_records,
                interval_s=chosen.interval_ms / 1000,
                dice=stream(self._schedule.seed, f"trimmer:{number}"),
            )
            self.trimmers.append(trimmer)
            await trimmer.run()

        self._trimming.append(self._spawn(trim))

    # The end

    def progress(self) -> Callable[[], bool]:
        """Whether every partition has acknowledged something since now."""
        before = dict(self._journal.acknowledged_in)
        partitions = self._partitions(*(chosen.topic for chosen in self._schedule.producers))

        def made() -> bool:
            now = self._journal.acknowledged_in
            return all(now.get(p.key, 0) > before.get(p.key, 0) for p in partitions)

        return made

    def stop_producers(self) -> None:
        for producer in self._producers:
            producer.stopping = True
        for churned in self.churned:
            churned.stopping = True
        for trimmer in self.trimmers:
            trimmer.stopping = True

    def producers_done(self) -> bool:
        """Whoever else changes something, too; raises what one of them did not expect."""
        tasks = [*self._producing, *self._churning, *self._trimming]
        for task in tasks:
            if task.done():
                task.result()
        return all(task.done() for task in tasks)

    def finish_groups(self) -> None:
        for group in self.groups:
            group.finish()

    def name_homes(self, partitions: int) -> None:
        """Which of so many partitions keeps what a group knows: only so can its loss excuse what
        was forgotten (RULES V1, `checkers.kafka.rulings`)."""
        for group in self.groups if partitions else ():
            home = f"{OFFSETS_TOPIC}-{partition_of(group.group_id, partitions)}"
            for name in group.names():
                self._journal.observe(OBSERVER, "group", {"group": name, "key": home})

    def groups_done(self) -> bool:
        """All that was acknowledged is committed, and the members have left."""
        return all(group.done() for group in self.groups)

    def read_everything(self, ends: Mapping[Key, int]) -> None:
        """One more consumer, from offset 0 to these ends; the others stop."""
        for consumer in self._consumers:
            consumer.stopping = True
        self._ends = ends

        async def read(client: ClusterClient) -> None:
            partitions = self.kept_partitions()
            self._reader = Consumer(
                client, self._journal, partitions, max_wait_s=0.05, keyed=self._keyed
            )
            while not self.everything_read():
                await self._reader.poll()

        self._spawn(read)

    def read_replicas(self, ends: Mapping[int, Mapping[TopicPartition, int]]) -> None:
        """All below these ends, from each of these nodes."""

        def reading(node_id: int) -> Work:
            return lambda client: read_replicas(
                client, node_id, ends[node_id], self._journal.witness
            )

        self._reading = [self._spawn(reading(node_id)) for node_id in ends]

    def replicas_read(self) -> bool:
        return all(task.done() for task in self._reading)

    def everything_read(self) -> bool:
        reader = self._reader
        return reader is not None and all(
            position >= self._ends[partition.key]
            for partition, position in reader.positions.items()
        )
