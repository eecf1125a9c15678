"""Which topics a classic group reads, as far as its members' opaque bytes can tell."""

from __future__ import annotations

from ..wire import DecodeError
from ..wire.coordinator_records.consumer_protocol import ConsumerProtocolSubscription
from ..wire.versioned import prefix
from .classic_group import ClassicGroup

CONSUMER_PROTOCOL = "consumer"
"""The protocol type whose subscriptions Kafka's consumers write; Connect's bytes are its own."""

NEWEST_SUBSCRIPTION = 3


def speaks_consumer_protocol(group: ClassicGroup) -> bool:
    return group.protocol_type == CONSUMER_PROTOCOL


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """The topics that any member asked for; None when the members' bytes do not say.

    None means "perhaps every topic": a caller that would remove something must not.
    """
    if not speaks_consumer_protocol(group) or group.protocol is None:
        return None if group.members else frozenset()
    topics: set[str] = set()
    for member in group.members.values():
        try:
            topics.update(_topics_of(member.metadata(group.protocol)))
        except DecodeError:
            return None
    return frozenset(topics)


def _topics_of(subscription: bytes) -> list[str]:
    """Newer versions only add fields at the end, so they are read as the newest known one."""
    version = min(prefix(subscription), NEWEST_SUBSCRIPTION)
    decoded, _ = ConsumerProtocolSubscription.decode_from(subscription, 2, version)
    return decoded.topics
