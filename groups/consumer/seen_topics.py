"""The topics as a group sees them: the image, and what matches its members' patterns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from uuid import UUID

from ...metadata.image import ClusterImage
from ...seam import frozen
from .member import ConsumerMember


@frozen
class SeenTopics:
    image: ClusterImage
    matches: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Pattern -> names; holds every pattern of the group and of the request in hand."""
    _ids: dict[tuple[tuple[str, ...], str], tuple[UUID, ...]] = field(default_factory=dict)
    """By subscription, for most members of a group have the same."""

    def names_of(self, member: ConsumerMember) -> tuple[str, ...]:
        """What the member subscribed to, whether it exists or not."""
        return tuple(sorted({*member.topics, *self.matches.get(member.regex, ())}))

    def ids_of(self, member: ConsumerMember) -> tuple[UUID, ...]:
        """Of those of them that exist."""
        subscription = member.topics, member.regex
        found = self._ids.get(subscription)
        if found is None:
            topics = self.image.topics
            names = self.names_of(member)
            found = tuple(topics[name].topic_id for name in names if name in topics)
            self._ids[subscription] = found
        return found

    def counts(self, topic_ids: Iterable[UUID]) -> dict[UUID, int]:
        """Partitions of each topic, in the order of their names: assignors follow it."""
        wanted = set(topic_ids)
        return {
            topic.topic_id: len(topic.partitions)
            for _, topic in sorted(self.image.topics.items())
            if topic.topic_id in wanted
        }

    def hash_of(self, members: Iterable[ConsumerMember]) -> int:
        """Changes when a topic that anybody reads appears, goes or grows; fits Kafka's int64."""
        subscriptions = dict.fromkeys(self.ids_of(member) for member in members)
        read = {topic_id for topic_ids in subscriptions for topic_id in topic_ids}
        digest = hashlib.blake2b(digest_size=8)
        for topic_id, count in self.counts(read).items():
            digest.update(topic_id.bytes + count.to_bytes(4, "big"))
        return int.from_bytes(digest.digest(), "big", signed=True)
