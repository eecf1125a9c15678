"""Record type 4 of `__consumer_offsets`: ConsumerGroupPartitionMetadata."""

from __future__ import annotations

from uuid import UUID

from ..schema import Struct, array, int32, string, uuid
from ..versioned import CoordinatorKey, Versioned


class ConsumerGroupPartitionMetadataKey(CoordinatorKey, versions="0", record_type=4):
    """Key of the record for the topics of a consumer group (KIP-848) (no longer written)."""

    group_id: str = string()


class ConsumerGroupPartitionMetadataValue(Versioned, versions="0", flexible="0+"):
    """The topics of a consumer group (KIP-848) (no longer written)."""

    class TopicMetadata(Struct):
        topic_id: UUID = uuid()
        topic_name: str = string()
        num_partitions: int = int32()

        class PartitionMetadata(Struct):
            partition: int = int32()
            racks: list[str] = array(string)

        partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)

    topics: list[TopicMetadata] = array(TopicMetadata)

    PartitionMetadata = TopicMetadata.PartitionMetadata
