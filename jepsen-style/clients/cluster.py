"""Finds leaders, keeps connections, and tells *did not happen* from *may have happened*."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from . import requests
from .connection import Connection
from .primitives import Malformed, Reader, Writer
from .requests import Api, Metadata, PartitionMetadata, TopicPartition, error_name

RETRY_S = 0.05
ASK_S = 2.0
"""Longest wait for an answer; the connection is dropped then."""

FRESH_ENOUGH_S = 30.0


class NotAsked(Exception):
    """Nothing was sent: it did not happen."""


class NoAnswer(Exception):
    """It was sent, and may have happened."""


class ClusterClient:
    """One client's view of a cluster. Times are seconds of the running loop."""

    def __init__(self, bootstrap: Mapping[int, tuple[str, int]]) -> None:
        """Addresses of all nodes, by id; any of them may be dead."""
        self._addresses = dict(bootstrap)
        self._connections: dict[int, Connection] = {}
        self._partitions: dict[TopicPartition, PartitionMetadata] = {}
        self._turn = 0

    @property
    def node_ids(self) -> list[int]:
        return list(self._addresses)

    def address(self, node_id: int) -> tuple[str, int]:
        return self._addresses[node_id]

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def ask(
        self,
        node_id: int,
        api: Api,
        body: Writer,
        *,
        within: float = ASK_S,
        version: int | None = None,
    ) -> Reader:
        """`version`: another one than usual. Raises NotAsked or NoAnswer."""
        connection = self._connections.pop(node_id, None)
        try:
            async with asyncio.timeout(within):
                if connection is None:
                    try:
                        connection = await Connection.open(*self._addresses[node_id])
                    except OSError as error:
                        raise NotAsked(str(error)) from error
                answer = await connection.ask(api, body, version)
        except TimeoutError as error:
            if connection is None:
                raise NotAsked("no connection in time") from error
            # An answer that comes later would be taken for that to the next request.
            connection.close()
            raise NoAnswer("no answer in time") from error
        except (OSError, EOFError, Malformed) as error:
            assert connection is not None
            connection.close()
            raise NoAnswer(str(error)) from error
        except asyncio.CancelledError:
            if connection is not None:
                connection.close()
            raise
        if node_id in self._connections:
            connection.close()
        else:
            self._connections[node_id] = connection
        return answer

    async def ask_any(self, api: Api, body: Writer) -> Reader:
        """The nodes in turn until one answers. Raises NoAnswer when none does."""
        nodes = list(self._addresses)
        for number in range(len(nodes)):
            node_id = nodes[(self._turn + number) % len(nodes)]
            try:
                answer = await self.ask(node_id, api, body, within=ASK_S / 2)
            except (NotAsked, NoAnswer):
                continue
            self._turn = nodes.index(node_id)
            return answer
        raise NoAnswer("no node answers")

    async def metadata(self, *topics: str) -> Metadata:
        """As some node knows it. Raises NoAnswer."""
        body = requests.metadata_request(topics)
        return requests.metadata_response(await self.ask_any(Api.METADATA, body))

    async def leader(self, partition: TopicPartition) -> PartitionMetadata:
        """Whoever leads in the newest epoch heard of (KIP-320). Raises NotAsked."""
        known = self._partitions.get(partition)
        if known is not None and known.leader >= 0:
            return known
        try:
            found = (await self.metadata(partition.topic)).partitions.get(partition)
        except NoAnswer as error:
            raise NotAsked(str(error)) from error
        if found is None or found.leader < 0:
            raise NotAsked(f"{partition.key} has no leader")
        if known is None or found.leader_epoch >= known.leader_epoch:
            self._partitions[partition] = known = found
        else:
            # A node that lags behind must not send this client back to a deposed leader; ask
            # another one the next time.
            self._turn += 1
        if known.leader < 0:
            raise NotAsked(f"{partition.key} has no leader in epoch {known.leader_epoch}")
        return known

    def forget(self, topic: str) -> None:
        """A new topic has this name now, whose epochs begin anew."""
        for partition in [known for known in self._partitions if known.topic == topic]:
            del self._partitions[partition]

    async def look_again(self, partition: TopicPartition) -> None:
        """What was known of the leader did not help: forget it, keep the epoch."""
        known = self._partitions.get(partition)
        if known is not None:
            self._partitions[partition] = known._replace(leader=-1)
        self._turn += 1
        await asyncio.sleep(RETRY_S)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str],
        within: float,
    ) -> None:
        """Create it, or find that it exists. Raises TimeoutError."""
        body = requests.create_topic_request(
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=configs,
            timeout_ms=int(ASK_S * 1000),
        )
        error, message = "", ""
        try:
            async with asyncio.timeout(within):
                while error not in ("NONE", "TOPIC_ALREADY_EXISTS"):
                    try:
                        answer = await self.ask_any(Api.CREATE_TOPICS, body)
                        code, message = requests.create_topic_response(answer)
                        error = error_name(code)
                    except NoAnswer:
                        error = "no answer"
                    await asyncio.sleep(RETRY_S)
        except TimeoutError:
            raise TimeoutError(f"{name} is not created: {error} {message}") from None

    async def producer_id(self) -> tuple[int, int]:
        """A producer id and its epoch. Raises NoAnswer."""
        answer = await self.ask_any(Api.INIT_PRODUCER_ID, requests.init_producer_id_request())
        code, producer_id, producer_epoch = requests.init_producer_id_response(answer)
        if code:
            raise NoAnswer(error_name(code))
        return producer_id, producer_epoch
