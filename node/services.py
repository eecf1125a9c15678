"""What handlers may ask. Filled by `run.py`; everything here outlives every connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ..groups import GroupCoordinator
from ..metadata.image import BrokerImage, ClusterImage
from ..metadata.machine import MetadataMachine
from ..partitions import Replicas
from ..seam import Clock
from .config import NodeConfig
from .controller_apis import ControllerApis
from .controller_client import ControllerClient
from .known_brokers import KnownBrokers
from .producer_ids import ProducerIds
from .topic_creation import TopicCreation

OPENING_S = 1.0
"""How long an answer is held back for logs that are being made."""


@dataclass(slots=True)
class Services:
    config: NodeConfig
    clock: Clock
    machine: MetadataMachine
    replicas: Replicas
    groups: GroupCoordinator
    controller: ControllerClient
    """The active controller, wherever it is: for what clients ask of it."""
    own_controller: ControllerApis
    """The controller of this node: for what other nodes ask of it."""
    known_brokers: KnownBrokers
    producer_ids: ProducerIds
    topic_creation: TopicCreation
    http_calls: dict[str, Callable[[bytes], Awaitable[bytes]]] = field(default_factory=dict)
    """What other nodes' HTTP clients want of this one, by the part of HTTP that answers; empty
    while HTTP is not served."""

    @property
    def image(self) -> ClusterImage:
        return self.machine.image

    async def new_logs_open(self, deadline: float) -> None:
        """Wait, but not for long, until this node has made the logs its image speaks of.

        A client that creates a topic and writes to it at once would otherwise be sent away with
        NOT_LEADER_OR_FOLLOWER, and come back only after its back-off.
        """
        longest = asyncio.get_running_loop().time() + OPENING_S
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(min(deadline, longest)):
                await self.replicas.wait_recovered()

    def live_brokers(self) -> list[BrokerImage]:
        """Unfenced brokers by node id."""
        return [broker for _, broker in sorted(self.image.brokers.items()) if not broker.fenced]

    def controller_id_for_clients(self) -> int:
        """Any living broker will do, for every node forwards; the active one saves a step."""
        image = self.image
        controller = image.brokers.get(image.controller_id)
        if controller is not None and not controller.fenced:
            return image.controller_id
        return next((broker.node_id for broker in self.live_brokers()), -1)
