"""The topics as a group sees them: the image, and what matches its members' patterns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from uuid import UUID

from ...metadata.image import ClusterImage
from ...seam import frozen
from .member import Subscribed


@frozen
class SeenTopics:
    image: ClusterImage
    matches: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Pattern -> names; holds every pattern of the group and of the request in hand."""
    _ids: dict[Subscribed, frozenset[UUID]] = field(default_factory=dict)
    """Most members of a group have the same subscription."""

    def names_of(self, subscription: Subscribed) -> tuple[str, ...]:
        """What was subscribed to, whether it exists or not."""
        names, regex = subscription
        return tuple(sorted({*names, *self.matches.get(regex, ())}))

    def ids_of(self, subscription: Subscribed) -> frozenset[UUID]:
        """Of those of them that exist."""
        found = self._ids.get(subscription)
        if found is None:
            topics = self.image.topics
            names = self.names_of(subscription)
            found = frozenset(topics[name].topic_id for name in names if name in topics)
            self._ids[subscription] = found
        return found

    def counts(self, subscriptions: Iterable[Subscribed]) -> dict[UUID, int]:
        """Partitions of each topic that is read, in the order of their names: assignors follow
        it."""
        read = {name for subscription in subscriptions for name in self.names_of(subscription)}
        found = [self.image.topics.get(name) for name in sorted(read)]
        return {topic.topic_id: len(topic.partitions) for topic in found if topic is not None}

    def hash_of(self, subscriptions: Iterable[Subscribed]) -> int:
        """Changes when a topic that anybody reads appears, goes or grows; fits Kafka's int64."""
        digest = hashlib.blake2b(digest_size=8)
        for topic_id, count in self.counts(subscriptions).items():
            digest.update(topic_id.bytes + count.to_bytes(4, "big"))
        return int.from_bytes(digest.digest(), "big", signed=True)
