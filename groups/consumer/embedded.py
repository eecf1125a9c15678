"""The classic consumer protocol's opaque bytes, read and written by the coordinator."""

from __future__ import annotations

from ...metadata.image import ClusterImage
from ...seam import frozen
from ...wire import DecodeError
from ...wire.coordinator_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from ...wire.versioned import prefix
from .partition_sets import NOTHING, PartitionSet, partition_set

CONSUMER_PROTOCOL = "consumer"
"""The protocol type whose bytes these are; Connect's, for example, are its own."""

NEWEST = 3
"""Of subscriptions and assignments; newer ones only add fields at their ends."""

AssignedTopic = ConsumerProtocolAssignment.TopicPartition


@frozen
class Subscription:
    topics: tuple[str, ...]
    owned: PartitionSet
    """Of topics that exist; older versions cannot say and own nothing."""
    rack_id: str | None


def read_subscription(data: bytes, image: ClusterImage) -> Subscription:
    """
    Raises:
        DecodeError: no consumer wrote this.
    """
    decoded = decode_subscription(data)
    owned = [(topic.topic, topic.partitions) for topic in decoded.owned_partitions]
    topics = tuple(sorted(set(decoded.topics)))
    return Subscription(topics, _by_id(owned, image), decoded.rack_id)


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """
    Raises:
        DecodeError: no consumer wrote this.
    """
    decoded, _ = ConsumerProtocolSubscription.decode_from(data, 2, min(prefix(data), NEWEST))
    return decoded


def read_assignment(data: bytes, image: ClusterImage) -> PartitionSet:
    """
    Raises:
        DecodeError: no consumer wrote this.
    """
    if not data:
        return NOTHING
    decoded, _ = ConsumerProtocolAssignment.decode_from(data, 2, min(prefix(data), NEWEST))
    return _by_id([(t.topic, t.partitions) for t in decoded.assigned_partitions], image)


def write_assignment(assigned: PartitionSet, version: int, image: ClusterImage) -> bytes:
    """Topics that are gone are left out."""
    topics = []
    for topic_id, partitions in assigned.items():
        topic = image.topic_by_id(topic_id)
        if topic is not None:
            topics.append(AssignedTopic(topic=topic.name, partitions=list(partitions)))
    return ConsumerProtocolAssignment(assigned_partitions=topics).encode_versioned(version)


def subscription_version(data: bytes) -> int:
    """In which version this member reads its assignment; 0 when its bytes do not say."""
    try:
        return max(0, min(prefix(data), NEWEST))
    except DecodeError:
        return 0


def _by_id(topics: list[tuple[str, list[int]]], image: ClusterImage) -> PartitionSet:
    return partition_set(
        (image.topics[name].topic_id, number)
        for name, numbers in topics
        if name in image.topics
        for number in numbers
    )
