"""Bugs of the group coordinator, to show that each check of the group workload can fail."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from ...groups.classic_group import ClassicGroup
from ...groups.consumer.group import ConsumerGroup
from ...groups.consumer.partition_sets import PartitionSet
from ...groups.log_records import Logged, OffsetRecord
from ...groups.offsets import GroupOffsets
from ...groups.offsets_partition import OffsetsPartition
from ...wire import ErrorCode
from .replacing import replaced

JUMP = 2
SPOILT = 4
"""Generations; a group that stays so would never read everything."""


def _everybody_gets_the_first_part() -> contextlib.AbstractContextManager[None]:
    """All members of the first generations are given the assignment of one."""

    def put(original: Callable[..., Any]) -> Callable[..., Any]:
        def sync_success(self: ClassicGroup, token: int, member: Any) -> Any:
            if self.generation_id > SPOILT:
                return original(self, token, member)
            first = next(iter(self.members.values()))
            return replace(original(self, token, member), assignment=first.assignment)

        return sync_success

    return replaced(ClassicGroup, "_sync_success", put)


def _take_over_forgets_commits() -> contextlib.AbstractContextManager[None]:
    """A new coordinator reads groups from its log, and no offsets."""

    def put(original: Callable[..., None]) -> Callable[..., None]:
        def replay(self: OffsetsPartition, entry: Any, now_ms: int) -> None:
            if not (isinstance(entry, Logged) and isinstance(entry.record, OffsetRecord)):
                original(self, entry, now_ms)

        return replay

    return replaced(OffsetsPartition, "replay", put)


def _any_generation_commits() -> contextlib.AbstractContextManager[None]:
    """Nobody looks at who commits."""

    def put(_: Callable[..., ErrorCode]) -> Callable[..., ErrorCode]:
        return lambda *_, **__: ErrorCode.NONE

    return replaced(ClassicGroup, "may_commit", put)


def _committed_offsets_jump() -> contextlib.AbstractContextManager[None]:
    """Readers are told to go on a little beyond what was committed."""

    def put(original: Callable[..., Any]) -> Callable[..., Any]:
        def get(self: GroupOffsets, topic: str, partition: int) -> Any:
            found = original(self, topic, partition)
            return None if found is None else replace(found, offset=found.offset + JUMP)

        return get

    return replaced(GroupOffsets, "get", put)


@contextlib.contextmanager
def _partitions_are_given_before_they_are_free() -> Iterator[None]:
    """By the consumer protocol: nobody waits for who has yet to give something up (KIP-848)."""

    def free_of(_: Callable[..., PartitionSet]) -> Callable[..., PartitionSet]:
        return lambda _group, _member_id, partitions: partitions

    def held(_: Callable[..., bool]) -> Callable[..., bool]:
        return lambda *_, **__: False

    with (
        replaced(ConsumerGroup, "_free_of", free_of),
        replaced(ConsumerGroup, "held_by_another", held),
    ):
        yield


@contextlib.contextmanager
def _any_epoch_commits() -> Iterator[None]:
    """By the consumer protocol: nobody looks at who commits, member or not."""

    def check(_: Callable[..., ErrorCode]) -> Callable[..., ErrorCode]:
        return lambda *_, **__: ErrorCode.NONE

    def held(original: Callable[..., bool]) -> Callable[..., bool]:
        def held_by_another(self: ConsumerGroup, member_id: str, pair: tuple[UUID, int]) -> bool:
            return member_id in self.members and original(self, member_id, pair)

        return held_by_another

    with (
        replaced(ConsumerGroup, "check_commit", check),
        replaced(ConsumerGroup, "held_by_another", held),
    ):
        yield


GROUP_BUGS: Mapping[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "two-owners": _everybody_gets_the_first_part,
    "take-over-forgets-commits": _take_over_forgets_commits,
    "any-generation-commits": _any_generation_commits,
    "committed-offsets-jump": _committed_offsets_jump,
    "given-before-it-is-free": _partitions_are_given_before_they_are_free,
    "any-epoch-commits": _any_epoch_commits,
}
"""By name."""
