"""What a heartbeat changes: the state table of KRaft (RULES B6).

| now                 | asks                                         | next                       |
|---------------------|----------------------------------------------|----------------------------|
| fenced              | wants shutdown                               | shut down now              |
| fenced              | wants unfence, has read its own registration | unfenced                   |
| fenced              | anything else                                | fenced                     |
| unfenced            | wants fence                                  | fenced                     |
| unfenced            | wants shutdown, leads nothing                | shut down now              |
| unfenced            | wants shutdown, still leads                  | controlled shutdown        |
| controlled shutdown | leads nothing and every active broker has    | shut down now              |
|                     | read past the change                         |                            |
| controlled shutdown | anything else                                | controlled shutdown (wait) |
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from .image import BrokerImage, ClusterImage


class NextState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUT_DOWN_NOW = "shut down now"


def next_state(
    image: ClusterImage,
    broker: BrokerImage,
    *,
    wants_fence: bool,
    wants_shutdown: bool,
    metadata_index: int,
    index_read_by: Callable[[int], int],
) -> NextState:
    """`metadata_index`: what the broker's own image has reached; `index_read_by`: any broker's."""
    if broker.fenced:
        if wants_shutdown:
            return NextState.SHUT_DOWN_NOW
        # An image older than the registration may show the broker as leader in an epoch of its
        # former life (RULES B1).
        caught_up = metadata_index >= broker.broker_epoch
        return NextState.FENCED if wants_fence or not caught_up else NextState.UNFENCED
    if broker.in_controlled_shutdown:
        done = not _leads(image, broker.node_id) and all(
            index_read_by(other.node_id) >= broker.controlled_shutdown_index
            for other in image.brokers.values()
            if other.active
        )
        return NextState.SHUT_DOWN_NOW if done else NextState.CONTROLLED_SHUTDOWN
    if wants_fence:
        return NextState.FENCED
    if wants_shutdown:
        leads = _leads(image, broker.node_id)
        return NextState.CONTROLLED_SHUTDOWN if leads else NextState.SHUT_DOWN_NOW
    return NextState.UNFENCED


def _leads(image: ClusterImage, node_id: int) -> bool:
    return any(
        partition.leader == node_id
        for topic in image.topics.values()
        for partition in topic.partitions
    )
