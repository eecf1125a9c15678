"""The coordinator's APIs for members and administrators, one method each, on wire objects."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from ..wire import ErrorCode
from ..wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ..wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ..wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ..wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ..wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ..wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from .classic_group import Join, Sync
from .consumer.embedded import CONSUMER_PROTOCOL
from .consumer.group import ConsumerGroup
from .consumer_apis import ConsumerApis
from .coordinator_core import Held, now_ms
from .effects import JoinAnswer
from .log_records import GroupRecord, LogRecord, OffsetRecord
from .member import Member
from .settings import ClientContext
from .states import GroupState

FIRST_VERSION_WITH_KNOWN_MEMBER_ID = 4
"""JoinGroup: a dynamic member is first told its id, then joins with it (KIP-394)."""

FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9
"""JoinGroup: a static leader may be told to keep the assignment in force (KIP-814)."""

CLASSIC, CONSUMER = "classic", "consumer"
"""The group types of ListGroups."""

DescribedGroup = DescribeGroupsResponse.DescribedGroup
DescribedMember = DescribedGroup.DescribedGroupMember


class GroupCoordinator(ConsumerApis):
    """Answers for every group whose partition of `__consumer_offsets` this node leads."""

    async def join_group(
        self, request: JoinGroupRequest, version: int, client: ClientContext
    ) -> JoinGroupResponse:
        """JoinGroup 0-9: waits until the group's next generation begins."""
        found = self._find(request.group_id)
        error = self._check_join(request)
        if error is not ErrorCode.NONE or not isinstance(found, Held):
            refused = error if isinstance(found, Held) else found
            answer = JoinAnswer(0, refused, request.member_id)
            return _join_response(answer, version)
        consumer_group = found.state.consumer_groups.get(request.group_id)
        if consumer_group is not None and consumer_group.members:
            join = self._join_of(request, version, client, token=0)
            answer = await self._join_consumer_group(request.group_id, join)
            return _join_response(answer, version)
        if request.member_id and request.group_id not in found.state.groups:
            answer = JoinAnswer(0, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            return _join_response(answer, version)
        if consumer_group is not None:
            self._make_way(found, consumer_group)
        group = self._group(found, request.group_id)
        token, future = self._expect_join()
        effects = group.join(self._join_of(request, version, client, token), now_ms())
        self._carry_out(found, group, effects)
        client.when_gone(partial(self._on_joiner_gone, found, group, token))
        return _join_response(await future, version)

    def _make_way(self, held: Held, empty: ConsumerGroup) -> None:
        """An empty group is of whichever protocol its next member speaks."""
        del held.state.consumer_groups[empty.group_id]
        self._append_or_reload(held, empty.all_tombstones())

    def _check_join(self, request: JoinGroupRequest) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        settings = self._settings
        if not (
            settings.min_session_timeout_ms
            <= request.session_timeout_ms
            <= settings.max_session_timeout_ms
        ):
            return ErrorCode.INVALID_SESSION_TIMEOUT
        return ErrorCode.NONE

    def _join_of(
        self, request: JoinGroupRequest, version: int, client: ClientContext, token: int
    ) -> Join:
        prefix = request.group_instance_id or client.client_id
        fresh = UUID(int=self._rng.getrandbits(128), version=4)
        # Version 0 knows one timeout only.
        rebalance_timeout_ms = request.rebalance_timeout_ms
        if rebalance_timeout_ms < 0:
            rebalance_timeout_ms = request.session_timeout_ms
        return Join(
            token=token,
            member_id=request.member_id,
            fresh_member_id=f"{prefix}-{fresh}",
            instance_id=request.group_instance_id,
            client_id=client.client_id,
            client_host=client.host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=tuple((p.name, bytes(p.metadata)) for p in request.protocols),
            requires_known_member_id=version >= FIRST_VERSION_WITH_KNOWN_MEMBER_ID,
            knows_skip_assignment=version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT,
        )

    async def sync_group(self, request: SyncGroupRequest, version: int) -> SyncGroupResponse:
        """SyncGroup 0-5: waits until the leader's assignment is replicated."""
        found = self._find(request.group_id)
        if not isinstance(found, Held):
            return SyncGroupResponse(error_code=found)
        consumer_group = found.state.consumer_groups.get(request.group_id)
        if consumer_group is not None:
            return await self._sync_consumer_group(found, consumer_group, request)
        group = found.state.groups.get(request.group_id)
        if group is None:
            return SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        token, future = self._expect_sync()
        sync = Sync(
            token=token,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation_id=request.generation_id,
            protocol_type=request.protocol_type,
            protocol=request.protocol_name,
            assignments=tuple((a.member_id, bytes(a.assignment)) for a in request.assignments),
        )
        self._carry_out(found, group, group.sync(sync, now_ms()))
        answer = await future
        return SyncGroupResponse(
            error_code=answer.error,
            protocol_type=answer.protocol_type,
            protocol_name=answer.protocol,
            assignment=answer.assignment,
        )

    async def heartbeat(self, request: HeartbeatRequest, version: int) -> HeartbeatResponse:
        """Heartbeat 0-4."""
        found = self._find(request.group_id)
        if found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The member's session is restored with the group: nothing to tell it yet.
            return HeartbeatResponse(error_code=ErrorCode.NONE)
        if not isinstance(found, Held):
            return HeartbeatResponse(error_code=found)
        consumer_group = found.state.consumer_groups.get(request.group_id)
        if consumer_group is not None:
            error = self._classic_heartbeat(
                found,
                consumer_group,
                request.member_id,
                request.group_instance_id,
                request.generation_id,
            )
            return HeartbeatResponse(error_code=error)
        group = found.state.groups.get(request.group_id)
        if group is None:
            return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        error = group.heartbeat(
            request.member_id, request.group_instance_id, request.generation_id, now_ms()
        )
        self._arm_timer(found, group)
        return HeartbeatResponse(error_code=error)

    async def leave_group(self, request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
        """LeaveGroup 0-5: one member before version 3, several from then on (KIP-345)."""
        found = self._find(request.group_id)
        if not isinstance(found, Held):
            return LeaveGroupResponse(error_code=found)
        if version < 3:
            leaving = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
        else:
            leaving = request.members
        responses = []
        for identity in leaving:
            error = await self._leave(
                found, request.group_id, identity.member_id, identity.group_instance_id
            )
            responses.append(
                LeaveGroupResponse.MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=error,
                )
            )
        if version < 3:
            return LeaveGroupResponse(error_code=responses[0].error_code)
        return LeaveGroupResponse(members=responses)

    async def _leave(
        self, held: Held, group_id: str, member_id: str, instance_id: str | None
    ) -> ErrorCode:
        consumer_group = held.state.consumer_groups.get(group_id)
        if consumer_group is not None:
            return await self._leave_as_classic(held, consumer_group, member_id, instance_id)
        group = held.state.groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error, effects = group.leave(member_id, instance_id, now_ms())
        self._carry_out(held, group, effects)
        return error

    async def describe_groups(
        self, request: DescribeGroupsRequest, version: int
    ) -> DescribeGroupsResponse:
        """DescribeGroups 0-6; from version 6 an unknown group is GROUP_ID_NOT_FOUND (KIP-1043)."""
        return DescribeGroupsResponse(groups=[self._describe(g, version) for g in request.groups])

    def _describe(self, group_id: str, version: int) -> DescribedGroup:
        found = self._find(group_id)
        if not isinstance(found, Held):
            return DescribedGroup(error_code=found, group_id=group_id)
        group = found.state.groups.get(group_id)
        is_new_kind = group_id in found.state.consumer_groups
        if group is None and (is_new_kind or not found.state.knows(group_id)):
            unknown = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
            return DescribedGroup(
                error_code=unknown, group_id=group_id, group_state=GroupState.DEAD.value
            )
        if group is None:
            return DescribedGroup(group_id=group_id, group_state=GroupState.EMPTY.value)
        stable = group.state is GroupState.STABLE
        protocol = (group.protocol or "") if stable else ""
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol,
            members=[_described(m, protocol) for m in group.members.values()],
        )

    async def list_groups(self, request: ListGroupsRequest, version: int) -> ListGroupsResponse:
        """ListGroups 0-5: those of this coordinator, by state (KIP-518) and type (KIP-848)."""
        states = {state.lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        if any(not held.state.loaded for held in self._held.values()):
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        listed = []
        for held in self._held.values():
            for name in held.state.names():
                entry = _listed(held, name)
                if (not states or entry.group_state.lower() in states) and (
                    not types or entry.group_type in types
                ):
                    listed.append(entry)
        return ListGroupsResponse(groups=listed)

    async def delete_groups(
        self, request: DeleteGroupsRequest, version: int
    ) -> DeleteGroupsResponse:
        """DeleteGroups 0-3: only groups without members; their offsets go with them."""
        results = []
        for group_id in request.groups_names:
            error = await self._delete(group_id)
            results.append(
                DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)
            )
        return DeleteGroupsResponse(results=results)

    async def _delete(self, group_id: str) -> ErrorCode:
        found = self._find(group_id)
        if not isinstance(found, Held):
            return found
        group = found.state.groups.get(group_id)
        if not found.state.knows(group_id):
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group is not None and group.state is not GroupState.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        consumer_group = found.state.consumer_groups.get(group_id)
        if consumer_group is not None and consumer_group.members:
            return ErrorCode.NON_EMPTY_GROUP
        records: list[LogRecord] = [
            OffsetRecord(group_id, topic, partition, None)
            for topic, partition in found.state.offsets_of(group_id).places()
        ]
        if consumer_group is not None:
            records += consumer_group.all_tombstones()
        else:
            records.append(GroupRecord(group_id, None))
        if not found.writer.has_room(len(records)):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        self._bury(found, group_id)
        return await self._write_burial(found, records)


def _join_response(answer: JoinAnswer, version: int) -> JoinGroupResponse:
    protocol = answer.protocol
    if protocol is None and version < 7:
        protocol = ""
    return JoinGroupResponse(
        error_code=answer.error,
        generation_id=answer.generation_id,
        protocol_type=answer.protocol_type,
        protocol_name=protocol,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=m.member_id, group_instance_id=m.instance_id, metadata=m.metadata
            )
            for m in answer.members
        ],
    )


def _described(member: Member, protocol: str) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(protocol),
        member_assignment=member.assignment if protocol else b"",
    )


def _listed(held: Held, name: str) -> ListGroupsResponse.ListedGroup:
    consumer_group = held.state.consumer_groups.get(name)
    if consumer_group is not None:
        return ListGroupsResponse.ListedGroup(
            group_id=name,
            protocol_type=CONSUMER_PROTOCOL,
            group_state=consumer_group.phase.value,
            group_type=CONSUMER,
        )
    group = held.state.groups.get(name)
    return ListGroupsResponse.ListedGroup(
        group_id=name,
        protocol_type=(group.protocol_type or "") if group is not None else "",
        group_state=(group.state if group is not None else GroupState.EMPTY).value,
        group_type=CLASSIC,
    )
