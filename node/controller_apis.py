"""The controller's and the quorum's APIs on the inter-node listener, and for this very node."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..metadata.commands import Origin
from ..metadata.controller import Controller, ControllerAnswer
from ..wire import ApiKey, Message
from .quorum_view import QuorumView

METHODS: Mapping[ApiKey, str] = MappingProxyType(
    {
        ApiKey.BROKER_REGISTRATION: "register_broker",
        ApiKey.BROKER_HEARTBEAT: "heartbeat",
        ApiKey.ALTER_PARTITION: "alter_partition",
        ApiKey.ASSIGN_REPLICAS_TO_DIRS: "assign_replicas_to_dirs",
        ApiKey.ALLOCATE_PRODUCER_IDS: "allocate_producer_ids",
        ApiKey.CREATE_TOPICS: "create_topics",
        ApiKey.DELETE_TOPICS: "delete_topics",
        ApiKey.CREATE_PARTITIONS: "create_partitions",
        ApiKey.ALTER_CONFIGS: "alter_configs",
        ApiKey.INCREMENTAL_ALTER_CONFIGS: "incremental_alter_configs",
        ApiKey.ELECT_LEADERS: "elect_leaders",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: "alter_partition_reassignments",
        ApiKey.UNREGISTER_BROKER: "unregister_broker",
        ApiKey.ADD_RAFT_VOTER: "replace_voter",
        ApiKey.DESCRIBE_QUORUM: "describe_quorum",
    }
)

WITH_ORIGIN = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS})
"""APIs whose methods take the request's origin (RULES A5)."""


class ControllerApis:
    """`controller_client.LocalController` over the controller and the quorum of this node."""

    def __init__(self, controller: Controller, quorum: QuorumView) -> None:
        self._controller = controller
        self._quorum = quorum

    async def __call__(
        self,
        api_key: ApiKey,
        request: Message,
        version: int,
        deadline: float,
        origin: Origin | None,
    ) -> ControllerAnswer[Message]:
        owner = self._quorum if api_key == ApiKey.DESCRIBE_QUORUM else self._controller
        method = getattr(owner, METHODS[api_key])
        if api_key in WITH_ORIGIN:
            answer: ControllerAnswer[Message] = await method(request, version, deadline, origin)
        else:
            answer = await method(request, version, deadline)
        return answer
