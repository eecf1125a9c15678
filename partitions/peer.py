"""How a follower and a leader reach other nodes: handed in by `node`, faked by tests.

A `Peer` is an authenticated channel to one other node (RULES B5). Requests on it are answered in
order, so long polls get a channel of their own.
"""

from __future__ import annotations

from typing import Protocol

from ..wire import ApiKey
from ..wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ..wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)


class PeerLost(Exception):
    """The channel could not be opened, broke, or gave no answer by the deadline.

    Whether the request was carried out is unknown. The peer is closed and must be made anew.
    """


class Peer(Protocol):
    async def request(
        self, api_key: ApiKey, version: int, request: object, deadline: float
    ) -> object:
        """The decoded response; `deadline` is the loop's time. Raises PeerLost."""
        ...

    def close(self) -> None:
        """Requests still waiting raise PeerLost. May be called twice."""
        ...


class PeerConnector(Protocol):
    async def connect(self, node_id: int, deadline: float) -> Peer:
        """A channel of the caller's own to `node_id`. Raises PeerLost."""
        ...


class ControllerLink(Protocol):
    """The way to the active controller, wherever it is now."""

    async def alter_partition(
        self, request: AlterPartitionRequest, deadline: float
    ) -> AlterPartitionResponse | None:
        """None: nothing is known of the outcome (lost, timed out, no controller found)."""
        ...

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest, deadline: float
    ) -> AssignReplicasToDirsResponse | None:
        """None: as above."""
        ...
