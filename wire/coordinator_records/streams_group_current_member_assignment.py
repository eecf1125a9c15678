"""Record type 22 of `__consumer_offsets`: StreamsGroupCurrentMemberAssignment."""

from __future__ import annotations

from ..schema import Struct, array, int8, int32, string
from ..versioned import CoordinatorKey, Versioned


class StreamsGroupCurrentMemberAssignmentKey(CoordinatorKey, versions="0", record_type=22):
    """Key of the record for what a member of a streams group holds now."""

    group_id: str = string()
    member_id: str = string()


class _TaskIds(Struct):
    subtopology_id: str = string()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(
        int32, default=None, nullable="0+", tag=0, tagged="0+"
    )


class StreamsGroupCurrentMemberAssignmentValue(Versioned, versions="0", flexible="0+"):
    """What a member of a streams group holds now."""

    TaskIds = _TaskIds

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    active_tasks: list[_TaskIds] = array(_TaskIds)
    standby_tasks: list[_TaskIds] = array(_TaskIds)
    warmup_tasks: list[_TaskIds] = array(_TaskIds)
    active_tasks_pending_revocation: list[_TaskIds] = array(_TaskIds)
    standby_tasks_pending_revocation: list[_TaskIds] = array(_TaskIds)
    warmup_tasks_pending_revocation: list[_TaskIds] = array(_TaskIds)
