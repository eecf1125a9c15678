"""Record type 15 of `__consumer_offsets`: ShareGroupStatePartitionMetadata."""

from __future__ import annotations

from uuid import UUID

from ..schema import Struct, array, int32, string, uuid
from ..versioned import CoordinatorKey, Versioned


class ShareGroupStatePartitionMetadataKey(CoordinatorKey, versions="0", record_type=15):
    """Key of the record for share partitions that a share group has initialised."""

    group_id: str = string()


class _TopicPartitionsInfo(Struct):
    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class _TopicInfo(Struct):
    topic_id: UUID = uuid()
    topic_name: str = string()


class ShareGroupStatePartitionMetadataValue(Versioned, versions="0", flexible="0+"):
    """Share partitions that a share group has initialised."""

    TopicPartitionsInfo = _TopicPartitionsInfo
    TopicInfo = _TopicInfo

    initializing_topics: list[_TopicPartitionsInfo] = array(_TopicPartitionsInfo)
    initialized_topics: list[_TopicPartitionsInfo] = array(_TopicPartitionsInfo)
    deleting_topics: list[_TopicInfo] = array(_TopicInfo)
