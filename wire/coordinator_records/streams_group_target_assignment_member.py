"""Record type 21 of `__consumer_offsets`: StreamsGroupTargetAssignmentMember."""

from __future__ import annotations

from ..schema import Struct, array, int32, string
from ..versioned import CoordinatorKey, Versioned


class StreamsGroupTargetAssignmentMemberKey(CoordinatorKey, versions="0", record_type=21):
    """Key of the record for what a member of a streams group shall hold."""

    group_id: str = string()
    member_id: str = string()


class _TaskIds(Struct):
    subtopology_id: str = string()
    partitions: list[int] = array(int32)


class StreamsGroupTargetAssignmentMemberValue(Versioned, versions="0", flexible="0+"):
    """What a member of a streams group shall hold."""

    TaskIds = _TaskIds

    active_tasks: list[_TaskIds] = array(_TaskIds)
    standby_tasks: list[_TaskIds] = array(_TaskIds)
    warmup_tasks: list[_TaskIds] = array(_TaskIds)
