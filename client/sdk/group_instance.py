"""A consumer of a group as the cluster keeps it for us: Confluent's v2 paths, any node answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from .deadline import Deadline
from .errors import ClientError, GroupLost, OutcomeUnknown, PartitionRevoked, Refused
from .records import TopicPartition
from .transport import Repeat, Transport

V2 = {"Content-Type": "application/vnd.kafka.v2+json", "Accept": "application/vnd.kafka.v2+json"}
BINARY = {"Accept": "application/vnd.kafka.binary.v2+json"}

INSTANCE_NOT_FOUND = 40403
ILLEGAL_STATE = 40903


class GroupInstance:
    """Between `join` and `leave`."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    @classmethod
    async def join(
        cls,
        transport: Transport,
        group: str,
        topics: Iterable[str],
        *,
        start: str,
        read_committed: bool,
        deadline: Deadline,
    ) -> GroupInstance:
        settings = {
            "format": "binary",
            "auto.offset.reset": start,
            "enable.auto.commit": "false",
            "isolation.level": "read_committed" if read_committed else "read_uncommitted",
        }
        # One whose answer is lost is ended by the cluster when nobody calls it.
        answer = await transport.call(
            "POST",
            f"/consumers/{quote(group, safe='')}",
            json=settings,
            headers=V2,
            deadline=deadline,
            repeat=Repeat.SAFELY,
        )
        name = answer.document["instance_id"]
        instance = cls(
            transport, f"/consumers/{quote(group, safe='')}/instances/{quote(name, safe='')}"
        )
        await instance._ask("POST", "/subscription", {"topics": list(topics)}, deadline)
        return instance

    async def poll(
        self, wait_ms: int, max_bytes: int, deadline: Deadline
    ) -> list[Mapping[str, Any]]:
        """Raises GroupLost. A poll whose answer is lost is made again: the cluster hands out the
        same records, since nobody has had them."""
        params = {"timeout": str(wait_ms), "max_bytes": str(max_bytes)}
        return list(
            await self._ask("GET", "/records", None, deadline, params, wait_ms / 1000 + 10.0) or ()
        )

    async def assignment(self, deadline: Deadline) -> frozenset[TopicPartition]:
        document = await self._ask("GET", "/assignments", None, deadline)
        return frozenset(
            TopicPartition(one["topic"], one["partition"]) for one in document["partitions"]
        )

    async def commit(self, offsets: Mapping[TopicPartition, int], deadline: Deadline) -> None:
        """The offsets of the next records to read. Raises PartitionRevoked, GroupLost."""
        rows = [
            {"topic": topic, "partition": partition, "offset": offset}
            for (topic, partition), offset in offsets.items()
        ]
        await self._ask("POST", "/offsets", {"offsets": rows}, deadline)

    async def leave(self, deadline: Deadline) -> None:
        try:
            await self._ask("DELETE", "", None, deadline)
        except (GroupLost, OutcomeUnknown):
            return

    async def _ask(
        self,
        method: str,
        path: str,
        body: Any,
        deadline: Deadline,
        params: Mapping[str, str] | None = None,
        attempt_seconds: float = 10.0,
    ) -> Any:
        headers = BINARY if path == "/records" else V2
        try:
            answer = await self._transport.call(
                method,
                self._path + path,
                json=body,
                params=params,
                headers=headers,
                deadline=deadline,
                repeat=Repeat.SAFELY,
                attempt_seconds=attempt_seconds,
            )
        except Refused as error:
            raise _told_apart(error) from None
        return answer.document


def _told_apart(error: Refused) -> ClientError:
    if error.error_code == INSTANCE_NOT_FOUND:
        return GroupLost(error.message, node=error.node)
    if error.error_code == ILLEGAL_STATE:
        return PartitionRevoked(error.message, node=error.node)
    return error
