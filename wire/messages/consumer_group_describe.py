"""API key 69: ConsumerGroupDescribe."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, boolean, int8, int16, int32, nested, string, uuid


class ConsumerGroupDescribeRequest(Message, versions="0-1", flexible="0+"):
    """State and members of KIP-848 groups."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class DescribedPartitions(Struct):
    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class DescribedAssignment(Struct):
    topic_partitions: list[DescribedPartitions] = array(DescribedPartitions)


class ConsumerGroupDescribeResponse(Message, versions="0-1", flexible="0+"):
    """What is known of each group."""

    TopicPartitions = DescribedPartitions
    Assignment = DescribedAssignment

    throttle_time_ms: int = int32()

    class DescribedGroup(Struct):
        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")
        group_id: str = string()
        group_state: str = string()
        group_epoch: int = int32()
        assignment_epoch: int = int32()
        assignor_name: str = string()

        class Member(Struct):
            member_id: str = string()
            instance_id: str | None = string(default=None, nullable="0+")
            rack_id: str | None = string(default=None, nullable="0+")
            member_epoch: int = int32()
            client_id: str = string()
            client_host: str = string()
            subscribed_topic_names: list[str] = array(string)
            subscribed_topic_regex: str | None = string(default=None, nullable="0+")
            assignment: DescribedAssignment = nested(DescribedAssignment)
            target_assignment: DescribedAssignment = nested(DescribedAssignment)
            member_type: int = int8(default=-1, versions="1+", ignorable=True)

        members: list[Member] = array(Member)
        authorized_operations: int = int32(default=-(2**31))

    groups: list[DescribedGroup] = array(DescribedGroup)

    Member = DescribedGroup.Member
