"""`with SyncClient(...)`: the same names without `await`, on one private loop thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

from .admin import GroupLag, GroupSummary, ResetRow, TopicInfo, TopicSummary
from .client import Client
from .codecs import Codec
from .consumer import Consumer, ConsumerState, ConsumerStats, Health
from .loop_thread import LoopThread
from .producer import CloseReport, Producer, ProducerStats
from .reader import Extent, Page, Reader
from .records import Headers, Record, RecordMetadata, TopicPartition
from .tail import Gap

K = TypeVar("K")
V = TypeVar("V")


class SyncClient:
    """Nothing runs before `with`; Ctrl-C ends whatever waits."""

    def __init__(self, *urls: str, request_timeout: float = 30.0) -> None:
        self._client = Client(*urls, request_timeout=request_timeout)
        self._loop = LoopThread()
        self.admin = SyncAdmin(self._client, self._loop)

    def __enter__(self) -> Self:
        self._loop.start()
        try:
            self._loop.run(self._client.__aenter__())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._loop.run(self._client.close())
        self._loop.stop()

    @property
    def nodes(self) -> tuple[str, ...]:
        return self._client.nodes

    def lag(self, group: str) -> int:
        """What a group has yet to read, all in all."""
        return self._loop.run(self._client.lag(group))

    def producer(self, **settings: Any) -> SyncProducer[Any, Any]:
        """Settings as those of `Client.producer`."""
        return SyncProducer(self._client.producer(**settings), self._loop)

    def consumer(self, *topics: str, group: str, **settings: Any) -> SyncConsumer[Any, Any]:
        """Settings as those of `Client.consumer`."""
        return SyncConsumer(self._client.consumer(*topics, group=group, **settings), self._loop)

    def tail(
        self,
        topic: str,
        *,
        since: str | int | None = None,
        positions: Mapping[TopicPartition, int] | None = None,
        partitions: Sequence[int] | None = None,
        key: Codec[Any] | None = None,
        value: Codec[Any] | None = None,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> Iterator[Record[Any, Any]]:
        """For ever; see `Client.tail`."""
        codecs = {name: codec for name, codec in (("key", key), ("value", value)) if codec}
        tail = self._client.tail(
            topic, since=since, positions=positions, partitions=partitions, on_gap=on_gap, **codecs
        )
        return self._loop.iterate(aiter(tail))

    def reader(self, **codecs: Codec[Any]) -> SyncReader[Any, Any]:
        """Codecs as those of `Client.reader`."""
        return SyncReader(self._client.reader(**codecs), self._loop)


class SyncAdmin:
    def __init__(self, client: Client, loop: LoopThread) -> None:
        self._admin = client.admin
        self._loop = loop
        self.topics = SyncTopics(client, loop)
        self.groups = SyncGroups(client, loop)

    def cluster(self) -> dict[str, Any]:
        return self._loop.run(self._admin.cluster())


class SyncTopics:
    def __init__(self, client: Client, loop: LoopThread) -> None:
        self._admin = client.admin.topics
        self._loop = loop

    def create(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> TopicInfo:
        return self._loop.run(
            self._admin.create(
                name, partitions=partitions, replication=replication, configs=configs
            )
        )

    def list(self, *, internal: bool = False) -> list[TopicSummary]:
        return self._loop.run(self._admin.list(internal=internal))

    def describe(self, name: str) -> TopicInfo:
        return self._loop.run(self._admin.describe(name))

    def delete(self, name: str) -> None:
        self._loop.run(self._admin.delete(name))


class SyncGroups:
    def __init__(self, client: Client, loop: LoopThread) -> None:
        self._admin = client.admin.groups
        self._loop = loop

    def list(self) -> list[GroupSummary]:
        return self._loop.run(self._admin.list())

    def lag(self, group: str) -> GroupLag:
        return self._loop.run(self._admin.lag(group))

    def reset(
        self,
        group: str,
        to: Literal["earliest", "latest"] | Mapping[str, Any],
        *,
        topics: Sequence[str] | None = None,
        execute: bool = False,
    ) -> tuple[ResetRow, ...]:
        return self._loop.run(self._admin.reset(group, to, topics=topics, execute=execute))

    def delete(self, group: str) -> None:
        self._loop.run(self._admin.delete(group))


class SyncProducer(Generic[K, V]):
    def __init__(self, producer: Producer[K, V], loop: LoopThread) -> None:
        self._producer = producer
        self._loop = loop

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._loop.run(self._producer.__aexit__(kind, error, None))

    @property
    def stats(self) -> ProducerStats:
        return self._producer.stats

    def send(
        self,
        topic: str,
        value: V | None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """See `Producer.send`."""
        return self._loop.run(
            self._producer.send(
                topic, value, key=key, partition=partition, headers=headers, timestamp=timestamp
            )
        )

    def send_all(self, topic: str, values: Iterable[V | None]) -> Iterator[RecordMetadata]:
        """See `Producer.send_all`. `values` is read in the client's thread."""
        return self._loop.iterate(self._producer.send_all(topic, values))

    def flush(self) -> None:
        self._loop.run(self._producer.flush())

    def close(self, within: float = 30.0) -> CloseReport:
        return self._loop.run(self._producer.close(within))


class SyncConsumer(Generic[K, V]):
    def __init__(self, consumer: Consumer[K, V], loop: LoopThread) -> None:
        self._consumer = consumer
        self._loop = loop

    def __enter__(self) -> Self:
        self._loop.run(self._consumer.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._loop.run(self._consumer.close())

    def __iter__(self) -> Iterator[Record[K, V]]:
        return self._loop.iterate(aiter(self._consumer))

    def batches(
        self, *, max_records: int = 500, max_wait: float = 0.5
    ) -> Iterator[list[Record[K, V]]]:
        return self._loop.iterate(
            self._consumer.batches(max_records=max_records, max_wait=max_wait)
        )

    def commit(self, *records: Record[K, V]) -> None:
        self._loop.run(self._consumer.commit(*records))

    def close(self, within: float = 5.0) -> None:
        self._loop.run(self._consumer.close(within))

    @property
    def stats(self) -> ConsumerStats:
        return self._consumer.stats

    @property
    def state(self) -> ConsumerState:
        return self._consumer.state

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._consumer.assignment

    def health(self) -> Health:
        async def look() -> Health:
            return self._consumer.health()

        return self._loop.run(look())


class SyncReader(Generic[K, V]):
    def __init__(self, reader: Reader[K, V], loop: LoopThread) -> None:
        self._reader = reader
        self._loop = loop

    def partitions(self, topic: str) -> int:
        return self._loop.run(self._reader.partitions(topic))

    def extent(self, place: TopicPartition) -> Extent:
        return self._loop.run(self._reader.extent(place))

    def offset_at(self, place: TopicPartition, timestamp: int) -> int:
        return self._loop.run(self._reader.offset_at(place, timestamp))

    def page(self, place: TopicPartition, offset: int, *, wait: float = 0.0) -> Page[K, V]:
        return self._loop.run(self._reader.page(place, offset, wait=wait))
