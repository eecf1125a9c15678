"""`async with Client("http://127.0.0.1:8082") as client`: the way in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from .admin import Admin
from .codecs import Bytes, Codec, Text
from .consumer import Consumer
from .deadline import Deadline
from .errors import ClientError
from .nodes import Nodes, urls_of
from .producer import Acks, Producer
from .reader import Reader
from .records import TopicPartition
from .tail import Gap, Tail
from .transport import Repeat, Transport

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # Of Python 3.13: what a codec that is not given makes of keys and values.
    K = TypeVar("K", default=str)
    V = TypeVar("V", default=bytes)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

LEARN_SECONDS = 2.0
_TEXT: Codec[Any] = Text()
_BYTES: Codec[Any] = Bytes()


class Client:
    """Talks to whichever node answers; learns the others from it.

    `urls`: any nodes; without any, those of the environment variable LOGBOAT_HTTP, else this
    machine's port 8082. `request_timeout`: seconds for every call that does not say otherwise.
    """

    def __init__(self, *urls: str, request_timeout: float = 30.0) -> None:
        self._nodes = Nodes(urls_of(urls))
        self._transport = Transport(self._nodes, Random())
        self._request_timeout = request_timeout
        self.admin = Admin(self._transport, request_timeout)

    async def __aenter__(self) -> Self:
        """Opens no connection that has to succeed: a cluster that is not up yet is found by the
        first call, which says what is wrong if it never is."""
        await self._transport.open()
        try:
            await self._learn()
        except BaseException:  # Cancelled: whoever never entered does not leave either.
            await self._transport.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Always returns; what producers still hold is lost: close those first."""
        await self._transport.close()

    async def _learn(self) -> None:
        try:
            answer = await self._transport.call(
                "GET",
                "/api/v1/cluster",
                deadline=Deadline.after(min(LEARN_SECONDS, self._request_timeout)),
                repeat=Repeat.SAFELY,
            )
        except ClientError:
            return
        addresses = [node["http"] for node in answer.document["nodes"] if node["http"]]
        self._nodes.learn(f"http://{address}" for address in addresses)

    @property
    def nodes(self) -> tuple[str, ...]:
        """All that are known; the first are asked first."""
        return self._nodes.all

    def producer(
        self,
        *,
        key: Codec[K] = _TEXT,
        value: Codec[V] = _BYTES,
        acks: Acks = "all",
        idempotent: bool = True,
        linger: float = 0.005,
        delivery_timeout: float = 30.0,
        max_batch_bytes: int = 256 << 10,
        buffer_bytes: int = 32 << 20,
    ) -> Producer[K, V]:
        """`linger`: seconds that a batch waits for more records, unless somebody waits for it.
        `buffer_bytes`: what it holds at most; `send` and `enqueue` wait while it is full."""
        return Producer(
            self._transport,
            key=key,
            value=value,
            acks=acks,
            idempotent=idempotent,
            linger=linger,
            delivery_timeout=delivery_timeout,
            max_batch_bytes=max_batch_bytes,
            buffer_bytes=buffer_bytes,
        )

    def consumer(
        self,
        *topics: str,
        group: str,
        key: Codec[K] = _TEXT,
        value: Codec[V] = _BYTES,
        start: Literal["earliest", "latest"] = "earliest",
        read_committed: bool = False,
    ) -> Consumer[K, V]:
        """`start`: where a partition begins for which the group has committed nothing."""
        return Consumer(
            self._transport,
            topics,
            group,
            key=key,
            value=value,
            start=start,
            read_committed=read_committed,
            request_timeout=self._request_timeout,
        )

    def tail(
        self,
        topic: str,
        *,
        since: str | int | None = None,
        positions: Mapping[TopicPartition, int] | None = None,
        partitions: Sequence[int] | None = None,
        key: Codec[K] = _TEXT,
        value: Codec[V] = _BYTES,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> Tail[K, V]:
        """`since`: "start", "end", "-5m" or Unix milliseconds; `positions`: those of an earlier
        tail, to go on where it stood; `partitions`: only these, else all, also later ones."""
        return Tail(
            self._transport,
            topic,
            key=key,
            value=value,
            since=since,
            positions=positions,
            partitions=partitions,
            patience=self._request_timeout,
            on_gap=on_gap,
        )

    def reader(self, *, key: Codec[K] = _TEXT, value: Codec[V] = _BYTES) -> Reader[K, V]:
        """Reads single partitions by offset, page by page."""
        return Reader(self._transport, key=key, value=value, request_timeout=self._request_timeout)

    async def lag(self, group: str) -> int:
        """What a group has yet to read, all in all."""
        return (await self.admin.groups.lag(group)).total


__all__: Sequence[str] = ["Client"]
