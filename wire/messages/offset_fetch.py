"""API key 9: OffsetFetch."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, boolean, int16, int32, int64, string, uuid


class OffsetFetchRequest(Message, versions="1-10", flexible="6+"):
    """Read the offsets that groups have stored.

    v8 asks for several groups at once, v9 adds the member for KIP-848, v10 names topics by id.
    """

    group_id: str = string(versions="1-7")

    class OffsetFetchRequestTopic(Struct):
        name: str = string()
        partition_indexes: list[int] = array(int32)

    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, versions="1-7", nullable="2-7"
    )

    class OffsetFetchRequestGroup(Struct):
        group_id: str = string()
        member_id: str | None = string(default=None, versions="9+", nullable="9+", ignorable=True)
        member_epoch: int = int32(default=-1, versions="9+", ignorable=True)

        class OffsetFetchRequestTopics(Struct):
            name: str = string(versions="8-9", ignorable=True)
            topic_id: UUID = uuid(versions="10+", ignorable=True)
            partition_indexes: list[int] = array(int32)

        topics: list[OffsetFetchRequestTopics] | None = array(
            OffsetFetchRequestTopics, nullable="0+"
        )

    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, versions="8+")
    require_stable: bool = boolean(versions="7+")

    OffsetFetchRequestTopics = OffsetFetchRequestGroup.OffsetFetchRequestTopics


class OffsetFetchResponse(Message, versions="1-10", flexible="6+"):
    """The stored offsets; -1 where there is none."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True)

    class OffsetFetchResponseTopic(Struct):
        name: str = string()

        class OffsetFetchResponsePartition(Struct):
            partition_index: int = int32()
            committed_offset: int = int64()
            committed_leader_epoch: int = int32(default=-1, versions="5+", ignorable=True)
            metadata: str | None = string(nullable="0+")
            error_code: int = int16()

        partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition)

    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, versions="1-7")
    error_code: int = int16(versions="2-7", ignorable=True)

    class OffsetFetchResponseGroup(Struct):
        group_id: str = string()

        class OffsetFetchResponseTopics(Struct):
            name: str = string(versions="8-9", ignorable=True)
            topic_id: UUID = uuid(versions="10+", ignorable=True)

            class OffsetFetchResponsePartitions(Struct):
                partition_index: int = int32()
                committed_offset: int = int64()
                committed_leader_epoch: int = int32(default=-1, ignorable=True)
                metadata: str | None = string(nullable="0+")
                error_code: int = int16()

            partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions)

        topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics)
        error_code: int = int16()

    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, versions="8+")

    OffsetFetchResponsePartition = OffsetFetchResponseTopic.OffsetFetchResponsePartition
    OffsetFetchResponseTopics = OffsetFetchResponseGroup.OffsetFetchResponseTopics
    OffsetFetchResponsePartitions = OffsetFetchResponseTopics.OffsetFetchResponsePartitions
