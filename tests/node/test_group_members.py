"""Members of classic groups over a whole node's own port."""

from __future__ import annotations

import asyncio
from pathlib import Path

from logboat.wire import ErrorCode, RequestHeader
from logboat.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from logboat.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from logboat.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from logboat.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from logboat.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from logboat.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.node.running_node import port, running_node
from tests.node.wire_client import WireClient

NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def joins(member_id: str = "") -> JoinGroupRequest:
    """By a member with two sessions of five minutes: nothing here happens by time."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )


async def member_id_for(client: WireClient) -> str:
    """Once the coordinator is there."""
    await client.ask(FindCoordinatorRequest(key="g"), 3, FindCoordinatorResponse)
    while True:
        answer = await client.ask(joins(), 5, JoinGroupResponse)
        if answer.error_code not in NOT_YET:
            assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
            return answer.member_id


async def lone_member(client: WireClient) -> str:
    """The only one, with its assignment."""
    member_id = await member_id_for(client)
    joined = await client.ask(joins(member_id), 5, JoinGroupResponse)
    assert joined.error_code == ErrorCode.NONE
    given = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")
    sync = SyncGroupRequest(
        group_id="g", generation_id=joined.generation_id, member_id=member_id, assignments=[given]
    )
    synced = await client.ask(sync, 3, SyncGroupResponse)
    assert synced.assignment == b"all"
    return member_id


async def heartbeat(client: WireClient, member_id: str) -> ErrorCode:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    answer = await client.ask(request, 3, HeartbeatResponse)
    return ErrorCode(answer.error_code)


def leaves(client: WireClient, member_id: str) -> RequestHeader:
    identity = LeaveGroupRequest.MemberIdentity(member_id=member_id)
    return client.send(LeaveGroupRequest(group_id="g", members=[identity]), 3)


async def test_a_member_leaves_although_its_join_still_waits_for_the_others(
    tmp_path: Path,
) -> None:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    async with (
        running_node(tmp_path / "data", **settings) as node,
        await WireClient.connect(port(node)) as first,
        await WireClient.connect(port(node)) as second,
    ):
        stays = await lone_member(first)
        goes = await member_id_for(second)
        join = second.send(joins(goes), 5)
        while await heartbeat(first, stays) != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        leave = leaves(second, goes)
        # In the order in which they were asked, and now: the first member has not joined again.
        joined = await second.receive(join, JoinGroupResponse)
        assert joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        left = await second.receive(leave, LeaveGroupResponse)
        assert left.error_code == ErrorCode.NONE
        assert [member.error_code for member in left.members] == [ErrorCode.NONE]
        joined = await first.ask(joins(stays), 5, JoinGroupResponse)
        assert [member.member_id for member in joined.members] == [stays]


async def test_a_newcomer_whose_connection_ends_while_its_join_waits_is_no_member_any_more(
    tmp_path: Path,
) -> None:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    async with (
        running_node(tmp_path / "data", **settings) as node,
        await WireClient.connect(port(node)) as first,
    ):
        stays = await lone_member(first)
        async with await WireClient.connect(port(node)) as second:
            goes = await member_id_for(second)
            second.send(joins(goes), 5)
            while await members(first) != [stays, goes]:
                pass
        async with asyncio.timeout(30):
            while await members(first) != [stays]:
                pass
        joined = await first.ask(joins(stays), 5, JoinGroupResponse)
        assert [member.member_id for member in joined.members] == [stays]


async def members(client: WireClient) -> list[str]:
    request = DescribeGroupsRequest(groups=["g"])
    described = await client.ask(request, 5, DescribeGroupsResponse)
    return [member.member_id for member in described.groups[0].members]
