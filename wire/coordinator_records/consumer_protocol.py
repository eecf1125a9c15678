"""The opaque bytes of a classic consumer group: what members say to their leader and back."""

from __future__ import annotations

from ..schema import Struct, array, binary, int32, string
from ..versioned import Versioned


class ConsumerProtocolSubscription(Versioned, versions="0-3"):
    """What a classic consumer tells its group's leader: topics and what it owns.

    Read newer versions as the newest known one: fields are only ever added at the end.
    """

    topics: list[str] = array(string)
    user_data: bytes | None = binary(default=None, nullable="0+")

    class TopicPartition(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)

    owned_partitions: list[TopicPartition] = array(TopicPartition, versions="1+", ignorable=True)
    generation_id: int = int32(default=-1, versions="2+", ignorable=True)
    rack_id: str | None = string(default=None, versions="3+", nullable="3+", ignorable=True)


class ConsumerProtocolAssignment(Versioned, versions="0-3"):
    """What the leader of a classic consumer group assigns to one member."""

    class TopicPartition(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)

    assigned_partitions: list[TopicPartition] = array(TopicPartition)
    user_data: bytes | None = binary(default=None, nullable="0+")
