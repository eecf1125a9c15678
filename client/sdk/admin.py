"""Topics, groups and the cluster itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from .deadline import Deadline
from .topics import topic_path
from .transport import Repeat, Transport


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    partition: int
    leader: int
    """-1: none just now."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicInfo:
    name: str
    topic_id: str
    partition_count: int
    replication_factor: int
    internal: bool
    configs: Mapping[str, str]
    partitions: tuple[PartitionInfo, ...]


@dataclass(frozen=True, slots=True)
class TopicSummary:
    name: str
    partition_count: int
    replication_factor: int
    internal: bool


@dataclass(frozen=True, slots=True)
class GroupSummary:
    group_id: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class PartitionLag:
    topic: str
    partition: int
    committed_offset: int | None
    log_end_offset: int | None
    lag: int | None
    """None: nothing is committed, or the partition cannot be asked."""
    client_id: str | None


@dataclass(frozen=True, slots=True)
class GroupLag:
    group_id: str
    state: str
    total: int
    partitions: tuple[PartitionLag, ...]


@dataclass(frozen=True, slots=True)
class ResetRow:
    topic: str
    partition: int
    before: int | None
    after: int


class _Asking:
    def __init__(self, transport: Transport, request_timeout: float) -> None:
        self._transport = transport
        self._request_timeout = request_timeout

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self._transport.call(
            method,
            path,
            json=body,
            deadline=Deadline.after(self._request_timeout),
            repeat=Repeat.SAFELY if method == "GET" else Repeat.NEVER,
        )
        return answer.document


class TopicAdmin(_Asking):
    async def create(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> TopicInfo:
        """None: the cluster's default. Raises Refused (it exists, bad settings), OutcomeUnknown."""
        wanted: dict[str, Any] = {"name": name, "configs": dict(configs or {})}
        if partitions is not None:
            wanted["partitions"] = partitions
        if replication is not None:
            wanted["replication_factor"] = replication
        return _topic(await self._ask("POST", "/api/v1/topics", wanted))

    async def list(self, *, internal: bool = False) -> list[TopicSummary]:
        document = await self._ask("GET", "/api/v1/topics")
        return [
            TopicSummary(
                one["name"], one["partition_count"], one["replication_factor"], one["internal"]
            )
            for one in document["topics"]
            if internal or not one["internal"]
        ]

    async def describe(self, name: str) -> TopicInfo:
        """Raises TopicNotFound."""
        return _topic(await self._ask("GET", topic_path(name)))

    async def delete(self, name: str) -> None:
        """Raises TopicNotFound, OutcomeUnknown."""
        await self._ask("DELETE", topic_path(name))


def _topic(document: Mapping[str, Any]) -> TopicInfo:
    return TopicInfo(
        name=document["name"],
        topic_id=document["topic_id"],
        partition_count=document["partition_count"],
        replication_factor=document["replication_factor"],
        internal=document["internal"],
        configs=document["configs"],
        partitions=tuple(
            PartitionInfo(
                one["partition"],
                one["leader"],
                one["leader_epoch"],
                tuple(one["replicas"]),
                tuple(one["isr"]),
            )
            for one in document["partitions"]
        ),
    )


def _group_path(group: str) -> str:
    return f"/api/v1/groups/{quote(group, safe='')}"


class GroupAdmin(_Asking):
    async def list(self) -> list[GroupSummary]:
        document = await self._ask("GET", "/api/v1/groups")
        return [
            GroupSummary(one["group_id"], one["state"], one["type"]) for one in document["groups"]
        ]

    async def lag(self, group: str) -> GroupLag:
        """What the group has yet to read; nobody has to join it for that."""
        document = await self._ask("GET", f"{_group_path(group)}/lag")
        return GroupLag(
            document["group_id"],
            document["state"],
            document["total_lag"],
            tuple(
                PartitionLag(
                    one["topic"],
                    one["partition"],
                    one["committed_offset"],
                    one["log_end_offset"],
                    one["lag"],
                    one["client_id"],
                )
                for one in document["partitions"]
            ),
        )

    async def reset(
        self,
        group: str,
        to: Literal["earliest", "latest"] | Mapping[str, Any],
        *,
        topics: Sequence[str] | None = None,
        execute: bool = False,
    ) -> tuple[ResetRow, ...]:
        """Where the group would go on; committed only with `execute`. Refused while it has
        members."""
        body: dict[str, Any] = {"to": to, "execute": execute}
        if topics is not None:
            body["topics"] = list(topics)
        document = await self._ask("POST", f"{_group_path(group)}/offsets:reset", body)
        return tuple(
            ResetRow(one["topic"], one["partition"], one["from"], one["to"])
            for one in document["partitions"]
        )

    async def delete(self, group: str) -> None:
        """Refused while it has members."""
        await self._ask("DELETE", _group_path(group))


class Admin(_Asking):
    def __init__(self, transport: Transport, request_timeout: float) -> None:
        super().__init__(transport, request_timeout)
        self.topics = TopicAdmin(transport, request_timeout)
        self.groups = GroupAdmin(transport, request_timeout)

    async def cluster(self) -> dict[str, Any]:
        """The overview as the node gives it: health, nodes, controller."""
        document: dict[str, Any] = await self._ask("GET", "/api/v1/cluster")
        return document
