"""API key 3: Metadata."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, boolean, int16, int32, string, uuid


class MetadataRequest(Message, versions="0-13", flexible="9+"):
    """Which brokers, topics and partition leaders there are.

    v0: an empty topic list means all; from v1 null means all and empty means none. v4 says whether
    missing topics are made, v10 knows topics by id, v12 lets the name be null.
    """

    class MetadataRequestTopic(Struct):
        topic_id: UUID = uuid(versions="10+", ignorable=True)
        name: str | None = string(nullable="10+")

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean(default=True, versions="4+")
    include_cluster_authorized_operations: bool = boolean(versions="8-10")
    include_topic_authorized_operations: bool = boolean(versions="8+")


class MetadataResponse(Message, versions="0-13", flexible="9+"):
    """Brokers, topics and partitions as this broker knows them.

    v5 adds offline replicas, v7 leader epochs, v10 topic ids.
    """

    throttle_time_ms: int = int32(versions="3+", ignorable=True)

    class MetadataResponseBroker(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, versions="1+", nullable="1+", ignorable=True)

    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(default=None, versions="2+", nullable="2+", ignorable=True)
    controller_id: int = int32(default=-1, versions="1+", ignorable=True)

    class MetadataResponseTopic(Struct):
        error_code: int = int16()
        name: str | None = string(nullable="12+")
        topic_id: UUID = uuid(versions="10+", ignorable=True)
        is_internal: bool = boolean(versions="1+", ignorable=True)

        class MetadataResponsePartition(Struct):
            error_code: int = int16()
            partition_index: int = int32()
            leader_id: int = int32()
            leader_epoch: int = int32(default=-1, versions="7+", ignorable=True)
            replica_nodes: list[int] = array(int32)
            isr_nodes: list[int] = array(int32)
            offline_replicas: list[int] = array(int32, versions="5+", ignorable=True)

        partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
        topic_authorized_operations: int = int32(default=-(2**31), versions="8+")

    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(default=-(2**31), versions="8-10")
    error_code: int = int16(versions="13+", ignorable=True)

    MetadataResponsePartition = MetadataResponseTopic.MetadataResponsePartition
