"""Groups, their members and their lag as JSON documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...seam import frozen
from ...wire import DecodeError
from ...wire.coordinator_records.consumer_protocol import ConsumerProtocolAssignment
from ...wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    DescribedAssignment,
)
from ...wire.messages.describe_groups import DescribeGroupsResponse
from .partition_ends import Ends, Place

CLASSIC_MEMBER = 0
"""ConsumerGroupDescribe: a member that still speaks the classic protocol (KIP-1099)."""

ClassicGroup = DescribeGroupsResponse.DescribedGroup
ConsumerGroup = ConsumerGroupDescribeResponse.DescribedGroup


@frozen
class Committed:
    offset: int
    leader_epoch: int
    metadata: str


@frozen
class Owner:
    """Who reads a partition; empty when nobody does."""

    member_id: str | None = None
    client_id: str | None = None
    host: str | None = None


def classic_group_document(group: ClassicGroup, coordinator: int) -> dict[str, Any]:
    members = [
        {
            "member_id": member.member_id,
            "instance_id": member.group_instance_id,
            "client_id": member.client_id,
            "host": member.client_host,
            "assignment": _classic_assignment(group.protocol_type, member.member_assignment),
        }
        for member in group.members
    ]
    return {
        "group_id": group.group_id,
        "state": group.group_state,
        "type": "classic",
        "coordinator": coordinator,
        "assignor": group.protocol_data or None,
        "protocol_type": group.protocol_type,
        "members": members,
    }


def _classic_assignment(protocol_type: str, assignment: bytes) -> list[dict[str, Any]] | None:
    """None when the bytes are not those of consumers: only the members know what they mean."""
    if protocol_type != "consumer":
        return None
    if not assignment:
        return []
    try:
        decoded = ConsumerProtocolAssignment.decode_versioned(assignment)
    except DecodeError:
        return None
    return [
        {"topic": topic.topic, "partitions": sorted(topic.partitions)}
        for topic in decoded.assigned_partitions
    ]


def consumer_group_document(group: ConsumerGroup, coordinator: int) -> dict[str, Any]:
    members = [
        {
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "host": member.client_host,
            "member_epoch": member.member_epoch,
            "assignment": _assignment(member.assignment),
            "target_assignment": _assignment(member.target_assignment),
        }
        for member in group.members
    ]
    return {
        "group_id": group.group_id,
        "state": group.group_state,
        "type": "consumer",
        "coordinator": coordinator,
        "mixed": any(member.member_type == CLASSIC_MEMBER for member in group.members),
        "assignor": group.assignor_name,
        "protocol_type": "consumer",
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": members,
    }


def _assignment(assignment: DescribedAssignment) -> list[dict[str, Any]]:
    return [
        {"topic": topic.topic_name, "partitions": topic.partitions}
        for topic in assignment.topic_partitions
    ]


def owners_of(document: Mapping[str, Any]) -> dict[Place, Owner]:
    """By partition, from a group's own document."""
    return {
        (topic["topic"], partition): Owner(member["member_id"], member["client_id"], member["host"])
        for member in document["members"]
        for topic in member["assignment"] or ()
        for partition in topic["partitions"]
    }


def lag_row(
    place: Place, committed: Committed | None, ends: Ends | None, owner: Owner
) -> dict[str, Any]:
    """`lag` is null where the group has not committed or the partition cannot be asked."""
    lag = None
    if committed is not None and ends is not None:
        lag = max(0, ends.end_offset - max(committed.offset, ends.log_start_offset))
    return {
        "topic": place[0],
        "partition": place[1],
        "committed_offset": None if committed is None else committed.offset,
        "log_start_offset": None if ends is None else ends.log_start_offset,
        "log_end_offset": None if ends is None else ends.end_offset,
        "lag": lag,
        "member_id": owner.member_id,
        "client_id": owner.client_id,
        "host": owner.host,
    }
