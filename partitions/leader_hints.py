"""Where the leader is: told together with an error, so that clients need not ask (KIP-951)."""

from __future__ import annotations

from uuid import UUID

from ..metadata.image import NO_LEADER, BrokerImage, ClusterImage
from ..wire import ErrorCode

_ERRORS = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class LeaderHints:
    """Collects the leaders told in one response, and where they are."""

    def __init__(self, image: ClusterImage, wanted: bool) -> None:
        """`wanted`: does this version of the response carry hints?"""
        self._image = image
        self._wanted = wanted
        self._nodes: dict[int, BrokerImage] = {}

    def wanted_for(self, error: ErrorCode) -> bool:
        return self._wanted and error in _ERRORS

    def leader_of(self, topic: str, topic_id: UUID, partition: int) -> tuple[int, int] | None:
        """(node id, leader epoch), as far as this node knows."""
        image = self._image.topic_by_id(topic_id) if not topic else self._image.topics.get(topic)
        if image is None or not 0 <= partition < len(image.partitions):
            return None
        found = image.partitions[partition]
        broker = self._image.brokers.get(found.leader)
        if found.leader != NO_LEADER and broker is not None:
            self._nodes[found.leader] = broker
        return found.leader, found.leader_epoch

    def nodes(self) -> list[BrokerImage]:
        return list(self._nodes.values())
