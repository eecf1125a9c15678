"""`cluster up --topic NAME:PARTITIONS:REPLICAS`: topics that are there when the cluster is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..failure import TIMED_OUT_STATUSES, ExitStatus, Failure
from ..terminal import counted
from .probe import Answer, ask
from .state import ClusterState, NodeState

FORM = "NAME[:PARTITIONS[:REPLICAS]]"

LEGAL_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
"""Kafka's rule."""

COUNT = re.compile(r"[1-9][0-9]{0,8}")

CREATION_SECONDS = 20.0
"""More than a node waits for the controller."""


@dataclass(frozen=True, slots=True)
class FirstTopic:
    """A topic as it was asked for; None: the cluster's default."""

    name: str
    partitions: int | None = None
    replicas: int | None = None

    @staticmethod
    def parse(text: str) -> FirstTopic:
        """Raises Failure."""
        name, *counts = text.split(":")
        if len(counts) > 2:
            raise _unusable(text, f"is not {FORM}")
        if not LEGAL_NAME.fullmatch(name):
            raise _unusable(text, f"{name!r} is no name: 1 to 249 letters, digits, '.', '_', '-'")
        return FirstTopic(name, *(_count(text, count) for count in counts))

    def difference(self, document: dict[str, Any]) -> str | None:
        """From a topic that is there, in words."""
        there = (document["partition_count"], document["replication_factor"])
        if (self.partitions or there[0], self.replicas or there[1]) == there:
            return None
        wanted = [
            counted(count, what)
            for count, what in ((self.partitions, "partition"), (self.replicas, "replica"))
            if count is not None
        ]
        return f"it has {in_words(document)}, not {' and '.join(wanted)}"


def first_topics(texts: Sequence[str]) -> tuple[FirstTopic, ...]:
    """Raises Failure, with status USAGE."""
    topics = tuple(map(FirstTopic.parse, texts))
    names = [topic.name for topic in topics]
    for name in names:
        if names.count(name) > 1:
            raise Failure(f"--topic names {name} more than once", ExitStatus.USAGE)
    return topics


def refuse_more_replicas(topics: Sequence[FirstTopic], nodes: int) -> None:
    """Than there will be nodes to hold them. Raises Failure."""
    for topic in topics:
        if topic.replicas is not None and topic.replicas > nodes:
            raise Failure(
                f"topic {topic.name} cannot have {topic.replicas} replicas: "
                f"the cluster has {counted(nodes, 'node')}",
                ExitStatus.USAGE,
            )


def make_topics(topics: Sequence[FirstTopic], state: ClusterState) -> str | None:
    """Create those that are not there. Why some node does not serve one of them yet, or None:
    whichever node a client asks first, it knows the topics, and their leaders are at work.

    Raises Failure when a topic is refused, or is there and another one."""
    for topic in topics:
        first = ask(state.nodes[0].http, _path(topic))
        if first is not None and first.status == 404:
            _create(topic, state.nodes[0])
    for topic in topics:
        for node in state.nodes:
            if (reason := _why_not_served(topic, node)) is not None:
                return reason
    return None


def topic_documents(state: ClusterState, topics: Sequence[FirstTopic]) -> list[dict[str, Any]]:
    """What the topics are like, for people and programs."""
    found = []
    for topic in topics:
        answer = ask(state.nodes[0].http, _path(topic))
        if answer is not None and answer.status == 200:
            keys = ("name", "partition_count", "replication_factor")
            found.append({key: answer.body[key] for key in keys})
    return found


def in_words(document: dict[str, Any]) -> str:
    partitions, replicas = document["partition_count"], document["replication_factor"]
    return f"{counted(partitions, 'partition')} and {counted(replicas, 'replica')}"


def _why_not_served(topic: FirstTopic, node: NodeState) -> str | None:
    answer = ask(node.http, _path(topic))
    if answer is None or answer.status != 200:
        return f"node {node.node_id} does not know topic {topic.name}"
    difference = topic.difference(answer.body)
    if difference is not None:
        raise Failure(
            f"there is a topic {topic.name}, but {difference}; leave it out of --topic, or delete "
            "it first"
        )
    for partition in answer.body["partitions"]:
        leader, local = partition["leader"], partition["local"]
        at_work = local is not None and local["role"] == "leader"
        if leader < 0 or (leader == node.node_id and not at_work):
            return f"partition {partition['partition']} of {topic.name} has no leader"
    return None


def _create(topic: FirstTopic, node: NodeState) -> None:
    """Unless somebody was quicker, or nobody could say. Raises Failure when it is refused."""
    body = {
        "name": topic.name,
        "partitions": topic.partitions,
        "replication_factor": topic.replicas,
    }
    answer = ask(
        node.http, "/api/v1/topics", method="POST", body=body, timeout_seconds=CREATION_SECONDS
    )
    if answer is not None and _is_final(answer):
        said = answer.body.get("message") if isinstance(answer.body, dict) else None
        raise Failure(f"topic {topic.name} is refused: {said or f'HTTP {answer.status}'}")


def _is_final(answer: Answer) -> bool:
    """A refusal that asking again does not change."""
    return 400 <= answer.status < 500 and answer.status not in (409, 429, *TIMED_OUT_STATUSES)


def _path(topic: FirstTopic) -> str:
    return f"/api/v1/topics/{topic.name}"


def _count(text: str, count: str) -> int:
    if not COUNT.fullmatch(count):
        raise _unusable(text, f"{count!r} is no number from 1 on")
    return int(count)


def _unusable(text: str, why: str) -> Failure:
    return Failure(f"--topic {text}: {why}", ExitStatus.USAGE)
