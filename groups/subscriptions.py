"""Which topics a classic group reads, as far as its members' opaque bytes can tell."""

from __future__ import annotations

from ..wire import DecodeError
from .classic_group import ClassicGroup
from .consumer.embedded import CONSUMER_PROTOCOL, decode_subscription


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
            topics.update(decode_subscription(member.metadata(group.protocol)).topics)
        except DecodeError:
            return None
    return frozenset(topics)
