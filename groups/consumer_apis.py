"""ConsumerGroupHeartbeat and ConsumerGroupDescribe on wire objects, and what becomes of members
that still speak the classic protocol in such a group (KIP-848)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from ..wire import ErrorCode
from ..wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedAssignment,
    DescribedPartitions,
)
from ..wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ..wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from .classic_group import ClassicGroup, Join
from .consumer import classic_members
from .consumer.conversion import downgraded, may_downgrade, upgraded
from .consumer.embedded import CONSUMER_PROTOCOL
from .consumer.group import Beat, ConsumerGroup
from .consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
)
from .consumer.partition_sets import NOTHING, PartitionSet, partition_set
from .consumer.refusal import Refused
from .consumer.request_checks import check_heartbeat
from .consumer.seen_topics import SeenTopics
from .coordinator_core import Held, now_ms
from .effects import JoinAnswer
from .log_records import GroupRecord, LogRecord, group_value
from .offset_apis import OffsetApis
from .settings import ClientContext
from .states import GroupState

log = logging.getLogger(__name__)

HeartbeatAssignment = ConsumerGroupHeartbeatResponse.Assignment
HeartbeatTopic = ConsumerGroupHeartbeatResponse.TopicPartitions
DescribedGroup = ConsumerGroupDescribeResponse.DescribedGroup
DescribedMember = DescribedGroup.Member

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""ConsumerGroupDescribe version 1: how a member speaks (KIP-1099)."""


ASK_AGAIN = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
"""Said to every member ten times a second while a coordinator moves: no news for a log."""


class ConsumerApis(OffsetApis):
    async def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, version: int, client: ClientContext
    ) -> ConsumerGroupHeartbeatResponse:
        """ConsumerGroupHeartbeat 0-1: answered when what it changed is replicated."""
        try:
            check_heartbeat(request, self._settings.consumer.assignors)
            if request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH):
                return await self._leave_consumer_group(request)
            return await self._beat(request, self._beat_of(request, client))
        except Refused as refused:
            if refused.error not in ASK_AGAIN:
                log.info(
                    "group %s: %s is refused: %s", request.group_id, request.member_id, refused
                )
            return ConsumerGroupHeartbeatResponse(
                error_code=refused.error, error_message=refused.sentence
            )

    async def _beat(
        self, request: ConsumerGroupHeartbeatRequest, beat: Beat
    ) -> ConsumerGroupHeartbeatResponse:
        held, seen = await self._seen(request.group_id, beat.regex)
        group, classic = self._group_that_beats(held, request)
        group.settings = self._consumer_settings(group.group_id)
        before: list[LogRecord] = []
        if classic is not None:
            before = [GroupRecord(group.group_id, None)]
        if classic is not None and classic.members:
            before += group.all_records(self._clock.now_ms())
            group.begin_sessions(now_ms())
        member, assignment, records = group.heartbeat(
            beat, seen, now_ms=now_ms(), wall_ms=self._clock.now_ms()
        )
        if classic is not None:
            self._end_classic(held, classic, ErrorCode.REBALANCE_IN_PROGRESS)
        held.state.consumer_groups[group.group_id] = group
        self._see_to_assignment(held, group)
        error = await self._settle(held, [*before, *records])
        self._arm_timer(held, group)
        if error is not ErrorCode.NONE:
            return ConsumerGroupHeartbeatResponse(error_code=error)
        if group.has_no_assignment_yet:
            await self._first_assignment(held, group)
            return await self._beat(request, beat)
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=group.next_interval_ms(member, now_ms()),
            assignment=None if assignment is None else _told(assignment),
        )

    def _see_to_assignment(self, held: Held, group: ConsumerGroup) -> None:
        """That of a large group takes more than one turn of the loop."""
        if group.is_assigning and held.assigning.get(group.group_id) is not group:
            held.assigning[group.group_id] = group
            name = f"group-assignment-{group.group_id}"
            held.tasks.spawn(self._assign_in_slices(held, group), name=name)

    async def _assign_in_slices(self, held: Held, group: ConsumerGroup) -> None:
        """Until it is in force, or the group is no longer the one that this node coordinates."""
        group_id = group.group_id
        while group.is_assigning:
            await asyncio.sleep(0)
            if held.state.consumer_groups.get(group_id) is not group:
                break
            records = group.assign_on(now_ms=now_ms(), wall_ms=self._clock.now_ms())
            if records:
                self._append_or_reload(held, records)
        if held.assigning.get(group_id) is group:
            del held.assigning[group_id]

    async def _first_assignment(self, held: Held, group: ConsumerGroup) -> None:
        """Until it is in force, or the group is no longer the one that this node coordinates. Who
        waits for it has joined already and then beats again: it is another turn of the loop, and
        the first answer that tells an epoch."""
        while group.is_assigning and group.has_no_assignment_yet:
            if held.state.consumer_groups.get(group.group_id) is not group:
                return
            await asyncio.sleep(0)

    def _beat_of(self, request: ConsumerGroupHeartbeatRequest, client: ClientContext) -> Beat:
        owned = None
        if request.topic_partitions is not None:
            owned = partition_set(
                (topic.topic_id, number)
                for topic in request.topic_partitions
                for number in topic.partitions
            )
        names = request.subscribed_topic_names
        return Beat(
            member_id=request.member_id or str(UUID(int=self._rng.getrandbits(128), version=4)),
            epoch=request.member_epoch,
            instance_id=request.instance_id,
            rack_id=request.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            topics=None if names is None else tuple(names),
            regex=request.subscribed_topic_regex,
            assignor=request.server_assignor,
            owned=owned,
            client_id=client.client_id,
            client_host=client.host,
        )

    async def _seen(self, group_id: str, regex: str | None) -> tuple[Held, SeenTopics]:
        """The group's partition and the topics it sees; both are of now, when this returns."""
        matches: dict[str, tuple[str, ...]] = {}
        while True:
            held = self._held_for(group_id)
            group = held.state.consumer_groups.get(group_id)
            wanted = [*(sorted(group.regexes) if group is not None else ()), *filter(None, [regex])]
            image = self._image()
            if all(pattern in matches for pattern in wanted):
                return held, SeenTopics(image, matches)
            matches = await self._patterns.matching(wanted, image.topics)

    def _held_for(self, group_id: str) -> Held:
        found = self._find(group_id)
        if not isinstance(found, Held):
            raise Refused(found, f"this node does not coordinate {group_id!r} now")
        return found

    def _group_that_beats(
        self, held: Held, request: ConsumerGroupHeartbeatRequest
    ) -> tuple[ConsumerGroup, ClassicGroup | None]:
        """The group, and the classic one in whose place it comes; nothing is changed yet."""
        group_id, settings = request.group_id, self._settings.consumer
        group = held.state.consumer_groups.get(group_id)
        if group is not None:
            return group, None
        if request.member_epoch != JOINING_EPOCH:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id!r}")
        classic = held.state.groups.get(group_id)
        if classic is None or classic.state is GroupState.EMPTY:
            return ConsumerGroup(group_id, settings), classic
        converted = upgraded(classic, self._image(), settings)
        if converted is None:
            raise Refused(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"group {group_id!r} is a classic group that can not become a consumer group",
            )
        return converted, classic

    def _end_classic(self, held: Held, classic: ClassicGroup, error: ErrorCode) -> None:
        held.state.groups.pop(classic.group_id)
        self._carry_out(held, classic, classic.die(error))

    async def _leave_consumer_group(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        held = self._held_for(request.group_id)
        group = held.state.consumer_groups.get(request.group_id)
        if group is None:
            sentence = f"there is no consumer group {request.group_id!r}"
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, sentence)
        group.known(request.member_id, request.instance_id)
        if request.member_epoch == LEAVING_EPOCH:
            error = await self._settle(held, self._without_member(held, group, request.member_id))
        else:
            records = group.leave(request.member_id, request.instance_id, request.member_epoch)
            error = await self._settle(held, records)
        return ConsumerGroupHeartbeatResponse(
            error_code=error, member_id=request.member_id, member_epoch=request.member_epoch
        )

    # --- members go -------------------------------------------------------------------------

    def _without_member(
        self, held: Held, group: ConsumerGroup, member_id: str
    ) -> Sequence[LogRecord]:
        """Remove a member; when only classic ones are left, the group becomes classic again."""
        if may_downgrade(group, without=member_id, max_size=self._settings.max_size):
            return self._downgrade(held, group, without=member_id)
        records = group.remove(member_id)
        self._arm_timer(held, group)
        return records

    def _downgrade(
        self, held: Held, group: ConsumerGroup, *, without: str | None
    ) -> list[LogRecord]:
        classic = downgraded(group, self._image(), self._settings, without=without, now_ms=now_ms())
        classic.since_wall_ms = self._clock.now_ms()
        value = group_value(classic, (), wall_ms=classic.since_wall_ms)
        del held.state.consumer_groups[group.group_id]
        held.state.groups[group.group_id] = classic
        if without is not None:
            self._carry_out(held, classic, classic.begin_rebalance(now_ms()))
        self._arm_timer(held, classic)
        return [*group.all_tombstones(), GroupRecord(group.group_id, value)]

    def _fence_overdue(self, held: Held, group: ConsumerGroup, due_ms: int) -> None:
        for member_id in group.overdue(due_ms):
            if held.state.consumer_groups.get(group.group_id) is not group:
                return
            log.info("group %s: %s is fenced, it was silent or slow", group.group_id, member_id)
            self._append_or_reload(held, self._without_member(held, group, member_id))

    # --- classic members ----------------------------------------------------------------------

    async def _join_consumer_group(self, group_id: str, join: Join) -> JoinAnswer:
        if join.requires_known_member_id and not join.member_id and join.instance_id is None:
            return JoinAnswer(join.token, ErrorCode.MEMBER_ID_REQUIRED, join.fresh_member_id)
        try:
            held, seen = await self._seen(group_id, None)
            group = held.state.consumer_groups.get(group_id)
            if group is None:
                return JoinAnswer(join.token, ErrorCode.REBALANCE_IN_PROGRESS, join.member_id)
            member, replaced, records = classic_members.join(
                group, join, seen, now_ms=now_ms(), wall_ms=self._clock.now_ms()
            )
            self._see_to_assignment(held, group)
        except Refused as refused:
            return JoinAnswer(join.token, refused.error, join.member_id)
        written: list[LogRecord] = list(records)
        if replaced is not None and may_downgrade(
            group, without="", max_size=self._settings.max_size
        ):
            written += self._downgrade(held, group, without=None)
        else:
            self._arm_timer(held, group)
        error = await self._settle(held, written)
        if error is not ErrorCode.NONE:
            return JoinAnswer(join.token, error, member.member_id)
        if group.has_no_assignment_yet:
            await self._first_assignment(held, group)
            return await self._join_consumer_group(
                group_id, replace(join, member_id=member.member_id)
            )
        return JoinAnswer(
            join.token,
            ErrorCode.NONE,
            member.member_id,
            generation_id=member.epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol=join.protocols[0][0],
        )

    async def _sync_consumer_group(
        self, held: Held, group: ConsumerGroup, request: SyncGroupRequest
    ) -> SyncGroupResponse:
        error = classic_members.generation_problem(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        if error is not ErrorCode.NONE:
            return SyncGroupResponse(error_code=error)
        image = self._image()
        error, assignment = classic_members.sync(group, request.member_id, image, now_ms())
        protocols = group.members[request.member_id].classic
        self._arm_timer(held, group)
        return SyncGroupResponse(
            error_code=error,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=protocols.protocols[0][0] if protocols is not None else None,
            assignment=assignment,
        )

    def _classic_heartbeat(
        self, held: Held, group: ConsumerGroup, member_id: str, instance: str | None, epoch: int
    ) -> ErrorCode:
        error = classic_members.generation_problem(group, member_id, instance, epoch)
        if error is ErrorCode.NONE:
            error = classic_members.heartbeat(group, member_id, now_ms())
            self._arm_timer(held, group)
        return error

    async def _leave_as_classic(
        self, held: Held, group: ConsumerGroup, member_id: str, instance_id: str | None
    ) -> ErrorCode:
        """An administrator removes a static member by its instance id alone (KIP-345)."""
        if not member_id and instance_id is not None:
            holder = group.static_member(instance_id)
            member_id = holder.member_id if holder is not None else ""
        try:
            group.known(member_id, instance_id)
        except Refused as refused:
            return refused.error
        return await self._settle(held, self._without_member(held, group, member_id))

    # --- describing ----------------------------------------------------------------------------

    async def consumer_group_describe(
        self, request: ConsumerGroupDescribeRequest, version: int
    ) -> ConsumerGroupDescribeResponse:
        """ConsumerGroupDescribe 0-1."""
        return ConsumerGroupDescribeResponse(
            groups=[self._describe_consumer_group(group_id) for group_id in request.group_ids]
        )

    def _describe_consumer_group(self, group_id: str) -> DescribedGroup:
        found = self._find(group_id)
        if not isinstance(found, Held):
            return DescribedGroup(error_code=found, group_id=group_id)
        group = found.state.consumer_groups.get(group_id)
        if group is None:
            return DescribedGroup(
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"there is no consumer group {group_id!r}",
                group_id=group_id,
            )
        return DescribedGroup(
            group_id=group_id,
            group_state=group.phase.value,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=group.assignor,
            members=[self._describe_member(group, member) for member in group.members.values()],
        )

    def _describe_member(self, group: ConsumerGroup, member: ConsumerMember) -> DescribedMember:
        return DescribedMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.topics),
            subscribed_topic_regex=member.regex or None,
            assignment=self._named(member.assigned),
            target_assignment=self._named(group.targets.get(member.member_id, NOTHING)),
            member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
        )

    def _named(self, partitions: PartitionSet) -> DescribedAssignment:
        names = self._image().topic_names
        return DescribedAssignment(
            topic_partitions=[
                DescribedPartitions(
                    topic_id=topic_id, topic_name=names[topic_id], partitions=list(numbers)
                )
                for topic_id, numbers in partitions.items()
                if topic_id in names
            ]
        )


def _told(assignment: PartitionSet) -> HeartbeatAssignment:
    return HeartbeatAssignment(
        topic_partitions=[
            HeartbeatTopic(topic_id=topic_id, partitions=list(numbers))
            for topic_id, numbers in assignment.items()
        ]
    )
