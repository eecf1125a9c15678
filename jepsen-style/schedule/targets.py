"""Who plays a role at the moment in which a fault strikes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .schedule import OFFSETS_TOPIC, Target

Place = tuple[str, int]
"""A topic and the number of a partition."""


class ClusterView(Protocol):
    """What an executor knows of its cluster; None and nobody where nothing is known."""

    @property
    def node_ids(self) -> Sequence[int]: ...

    def replicas(self, topic: str, partition: int) -> Sequence[int]: ...

    def leader(self, topic: str, partition: int) -> int | None: ...

    def controller(self) -> int | None: ...

    def partitions(self, topic: str) -> int: ...


def nodes_of(target: Target, view: ClusterView) -> tuple[int, ...]:
    """The nodes hit; none when nobody plays that role now."""
    if target.role == "all":
        return tuple(view.node_ids)
    if target.role == "node":
        return (target.number,)
    if target.role == "controller":
        controller = view.controller()
        return () if controller is None else (controller,)
    topic, partition = target.topic, target.partition
    if target.role == "coordinator":
        if not view.partitions(OFFSETS_TOPIC):
            return ()
        topic, partition = OFFSETS_TOPIC, partition_of(target.group, view.partitions(OFFSETS_TOPIC))
    leader = view.leader(topic, partition)
    if target.role != "follower":
        return () if leader is None else (leader,)
    followers = [node for node in view.replicas(topic, partition) if node != leader]
    return (followers[target.number % len(followers)],) if followers else ()


def role_of(
    target: Target, view: ClusterView, groups: Sequence[str], partitions: Sequence[Place]
) -> str:
    """For a node that is named by its number: what it is now, the rarest first. It may lead one of
    these partitions, or coordinate one of these groups."""
    if target.role != "node":
        return target.role
    if any(target.number in nodes_of(Target("coordinator", group=one), view) for one in groups):
        return "coordinator"
    if target.number == view.controller():
        return "controller"
    return "leader" if any(view.leader(*at) == target.number for at in partitions) else "follower"


def partition_of(group: str, partitions: int) -> int:
    """Where a group's offsets are: Java's hash of its name, as every Kafka broker counts."""
    value = 0
    for character in group:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions
