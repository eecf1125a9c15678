"""Whom a step of a plan means: by number, or by what a node is at that moment."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from ..cluster.probe import Answer, ask_all
from ..node_api import NodeApi, topic_path

ROLES_HELP = (
    "a node's number, a list of them, all, any, controller, leader of TOPIC/PARTITION, "
    "follower of TOPIC/PARTITION (one of them), followers of TOPIC/PARTITION"
)
LOOK_SECONDS = 2.0
"""A node that says nothing for so long is not asked about the others."""

_OF_PARTITION = re.compile(r"(leader|follower|followers) of ([A-Za-z0-9._-]{1,249})/(\d{1,6})")
_PLAIN = ("all", "any", "controller")


@dataclass(frozen=True, slots=True)
class Who:
    """Either numbers, or a role, perhaps in a partition."""

    text: str
    """As the plan says it."""
    numbers: tuple[int, ...] = ()
    role: str | None = None
    topic: str | None = None
    partition: int = 0


def who_of(said: object) -> Who | None:
    """None for what means nobody."""
    numbers = said if isinstance(said, list) else [said]
    if numbers and all(type(one) is int and one >= 0 for one in numbers):
        unique = tuple(dict.fromkeys(numbers))
        return Who("node " + ", ".join(map(str, unique)), numbers=unique)
    if not isinstance(said, str):
        return None
    text = " ".join(said.split())
    if text in _PLAIN:
        return Who(text, role=text)
    match = _OF_PARTITION.fullmatch(text)
    if match is None:
        return None
    return Who(text, role=match[1], topic=match[2], partition=int(match[3]))


class View:
    """The cluster, as the nodes that answer see it at this moment."""

    def __init__(self, nodes: Mapping[int, NodeApi], dice: Random) -> None:
        self._nodes = nodes
        self._dice = dice

    def find(self, who: Who) -> list[int]:
        """In ascending order; empty when nobody is that now."""
        match who.role:
            case None:
                return [one for one in who.numbers if one in self._nodes]
            case "all":
                return sorted(self._nodes)
            case "any":
                return [self._dice.choice(sorted(self._nodes))]
            case "controller":
                return self._controller()
            case role:
                assert who.topic is not None
                return self._in_partition(role, who.topic, who.partition)

    def others_than(self, node_id: int, who: Who | None) -> list[int]:
        """`None`: all of them."""
        found = sorted(self._nodes) if who is None else self.find(who)
        return [one for one in found if one != node_id]

    def _controller(self) -> list[int]:
        answers = self._ask("/api/v1/cluster")
        if not answers:
            return []
        # Who lags behind names an earlier one.
        newest = max(answers, key=lambda one: int(one["metadata_index"]))
        controller = newest["controller_id"]
        return [controller] if controller in self._nodes else []

    def _in_partition(self, role: str, topic: str, number: int) -> list[int]:
        partitions = [
            one["partitions"][number]
            for one in self._ask(topic_path(topic))
            if number < len(one["partitions"])
        ]
        if not partitions:
            return []
        newest = max(partitions, key=lambda one: (one["leader_epoch"], one["partition_epoch"]))
        leader = newest["leader"]
        if role == "leader":
            return [leader] if leader in self._nodes else []
        followers = sorted(one for one in newest["replicas"] if one != leader)
        if role == "followers" or not followers:
            return followers
        return [self._dice.choice(followers)]

    def _ask(self, path: str) -> Sequence[Any]:
        addresses = [api.address for api in self._nodes.values()]
        answers: Sequence[Answer | None] = ask_all(addresses, path, timeout_seconds=LOOK_SECONDS)
        return [one.body for one in answers if one is not None and one.status == 200]
