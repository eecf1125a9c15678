"""v3: consumer groups, their members, what each reads and how far behind it is."""

from __future__ import annotations

import re
from typing import Any

from aiohttp import web

from ....wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ....wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ....wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ..asking import of_node
from ..coordinators import ask_every_node, ask_node
from ..errors import ApiError
from ..group_reading import GroupReading
from ..group_views import (
    Owner,
    classic_group_document,
    consumer_group_document,
    lag_row,
    owners_of,
)
from ..keys import LEADERS, NODE
from ..partition_ends import partition_ends
from ..ports import HttpNode
from .resources import Document, Resources, answer

_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


async def list_groups(request: web.Request) -> web.Response:
    """Those of all nodes. Raises ApiError 503 when one of them does not answer: a list without its
    groups would look whole."""
    resources = Resources(request)
    answers, problems = await ask_every_node(
        resources.node, ListGroupsRequest(), ListGroupsResponse
    )
    for problem in problems.values():
        raise problem
    described = []
    for node_id, listed in sorted(answers.items()):
        described += await _described_by(resources.node, node_id, listed)
    described.sort(key=lambda group: str(group["group_id"]))
    data = [_group(resources, group) for group in described]
    return answer(resources.collection("KafkaConsumerGroupList", ["consumer-groups"], data))


async def _described_by(node: HttpNode, node_id: int, listed: ListGroupsResponse) -> list[Document]:
    classic = [group.group_id for group in listed.groups if group.group_type == "classic"]
    consumer = [group.group_id for group in listed.groups if group.group_type == "consumer"]
    found = []
    if classic:
        ask = ask_node(node, node_id, DescribeGroupsRequest(groups=classic), DescribeGroupsResponse)
        answers = await of_node(node_id, ask, writes=False)
        found += [classic_group_document(g, node_id) for g in answers.groups if not g.error_code]
    if consumer:
        request = ConsumerGroupDescribeRequest(group_ids=consumer)
        question = ask_node(node, node_id, request, ConsumerGroupDescribeResponse)
        others = await of_node(node_id, question, writes=False)
        found += [consumer_group_document(g, node_id) for g in others.groups if not g.error_code]
    return found


async def describe_group(request: web.Request) -> web.Response:
    resources = Resources(request)
    return answer(_group(resources, await _reading(request).described()))


async def list_consumers(request: web.Request) -> web.Response:
    resources = Resources(request)
    group = await _reading(request).described()
    data = [_consumer(resources, group, member) for member in group["members"]]
    own = ["consumer-groups", group["group_id"], "consumers"]
    return answer(resources.collection("KafkaConsumerList", own, data))


async def describe_consumer(request: web.Request) -> web.Response:
    resources = Resources(request)
    group = await _reading(request).described()
    return answer(_consumer(resources, group, _member(request, group)))


async def list_assignments(request: web.Request) -> web.Response:
    resources = Resources(request)
    group = await _reading(request).described()
    member = _member(request, group)
    data = [
        _assignment(resources, group, member, topic, partition)
        for topic, partition in _partitions(member)
    ]
    own = ["consumer-groups", group["group_id"], "consumers", member["member_id"], "assignments"]
    return answer(resources.collection("KafkaConsumerAssignmentList", own, data))


async def describe_assignment(request: web.Request) -> web.Response:
    resources = Resources(request)
    group = await _reading(request).described()
    member = _member(request, group)
    topic, text = request.match_info["topic"], request.match_info["partition"]
    for own_topic, partition in _partitions(member):
        if (own_topic, str(partition)) == (topic, text):
            return answer(_assignment(resources, group, member, topic, partition))
    raise ApiError(404, f"{topic[:249]}-{text[:20]} is not assigned to this consumer")


async def lag_summary(request: web.Request) -> web.Response:
    """404 while the group has committed nothing: there is no largest lag then."""
    resources = Resources(request)
    group, rows = await _lags(request)
    if not rows:
        raise ApiError(404, f"group {group['group_id']!r} has committed nothing yet")
    worst = max(rows, key=lambda row: row["lag"])
    own = ["consumer-groups", group["group_id"]]
    place = ["topics", worst["topic"], "partitions", worst["partition"]]
    return answer(
        resources.resource(
            "KafkaConsumerGroupLagSummary",
            [*own, "lag-summary"],
            [f"consumer-group={group['group_id']}", "lag-summary"],
            consumer_group_id=group["group_id"],
            max_lag_consumer_id=worst["member_id"] or "",
            max_lag_instance_id=_instance_of(group, worst["member_id"]),
            max_lag_client_id=worst["client_id"] or "",
            max_lag_topic_name=worst["topic"],
            max_lag_partition_id=worst["partition"],
            max_lag=worst["lag"],
            total_lag=sum(row["lag"] for row in rows),
            max_lag_consumer=resources.link(*own, "consumers", worst["member_id"] or ""),
            max_lag_partition=resources.link(*place),
        )
    )


async def list_lags(request: web.Request) -> web.Response:
    """Of the partitions that the group has committed for and that can be asked."""
    resources = Resources(request)
    group, rows = await _lags(request)
    data = [_lag(resources, group, row) for row in rows]
    own = ["consumer-groups", group["group_id"], "lags"]
    return answer(resources.collection("KafkaConsumerLagList", own, data))


async def describe_lag(request: web.Request) -> web.Response:
    resources = Resources(request)
    group, rows = await _lags(request)
    topic, text = request.match_info["topic"], request.match_info["partition"]
    for row in rows:
        if (row["topic"], str(row["partition"])) == (topic, text):
            return answer(_lag(resources, group, row))
    raise ApiError(404, f"group {group['group_id']!r} has no offset of {topic[:249]}-{text[:20]}")


def _reading(request: web.Request) -> GroupReading:
    return GroupReading(request.app[NODE], request.app[LEADERS], request.match_info["group"])


async def _lags(request: web.Request) -> tuple[Document, list[Document]]:
    """(the group, a row for each partition whose lag is known)."""
    reading = _reading(request)
    group = await reading.described()
    committed = await reading.committed()
    owners = owners_of(group)
    places = sorted(committed)
    ends = await partition_ends(request.app[NODE], request.app[LEADERS], places)
    rows = [
        lag_row(place, committed[place], ends.get(place), owners.get(place, Owner()))
        for place in places
    ]
    return group, [row for row in rows if row["lag"] is not None]


def _member(request: web.Request, group: Document) -> Document:
    wanted = request.match_info["consumer"]
    for member in group["members"]:
        if member["member_id"] == wanted:
            return dict(member)
    raise ApiError(404, f"group {group['group_id']!r} has no consumer {wanted[:249]!r}")


def _partitions(member: Document) -> list[tuple[str, int]]:
    return sorted(
        (topic["topic"], partition)
        for topic in member["assignment"] or ()
        for partition in topic["partitions"]
    )


def _instance_of(group: Document, member_id: str | None) -> str | None:
    for member in group["members"]:
        if member["member_id"] == member_id:
            instance_id: str | None = member["instance_id"]
            return instance_id
    return None


def _group(resources: Resources, group: Document) -> Document:
    own = ["consumer-groups", group["group_id"]]
    return resources.resource(
        "KafkaConsumerGroup",
        own,
        [f"consumer-group={group['group_id']}"],
        consumer_group_id=group["group_id"],
        # Offsets that somebody committed without joining.
        is_simple=not group["protocol_type"],
        is_mixed_consumer_group=group.get("mixed", False),
        partition_assignor=group["assignor"] or "",
        state=_WORD.sub("_", group["state"]).upper(),
        type=group["type"].upper(),
        coordinator=resources.link("brokers", group["coordinator"]),
        consumers=resources.link(*own, "consumers"),
        lag_summary=resources.link(*own, "lag-summary"),
    )


def _consumer(resources: Resources, group: Document, member: Document) -> Document:
    own = ["consumer-groups", group["group_id"], "consumers", member["member_id"]]
    return resources.resource(
        "KafkaConsumer",
        own,
        [f"consumer-group={group['group_id']}", f"consumer={member['member_id']}"],
        consumer_group_id=group["group_id"],
        consumer_id=member["member_id"],
        instance_id=member["instance_id"],
        client_id=member["client_id"],
        assignments=resources.link(*own, "assignments"),
    )


def _assignment(
    resources: Resources, group: Document, member: Document, topic: str, partition: int
) -> Document:
    group_id, member_id = group["group_id"], member["member_id"]
    place = ["partitions", partition]
    own = ["consumer-groups", group_id, "consumers", member_id, "assignments", topic, *place]
    return resources.resource(
        "KafkaConsumerAssignment",
        own,
        [
            f"consumer-group={group_id}",
            f"consumer={member_id}",
            f"assignment={topic}",
            f"partition={partition}",
        ],
        consumer_group_id=group_id,
        consumer_id=member_id,
        topic_name=topic,
        partition_id=partition,
        partition=resources.link("topics", topic, *place),
        lag=resources.link("consumer-groups", group_id, "lags", topic, *place),
    )


def _lag(resources: Resources, group: Document, row: dict[str, Any]) -> Document:
    group_id, topic, partition = group["group_id"], row["topic"], row["partition"]
    return resources.resource(
        "KafkaConsumerLag",
        ["consumer-groups", group_id, "lags", topic, "partitions", partition],
        [f"consumer-group={group_id}", f"lag={topic}", f"partition={partition}"],
        consumer_group_id=group_id,
        topic_name=topic,
        partition_id=partition,
        current_offset=row["committed_offset"],
        log_end_offset=row["log_end_offset"],
        lag=row["lag"],
        consumer_id=row["member_id"] or "",
        instance_id=_instance_of(group, row["member_id"]),
        client_id=row["client_id"] or "",
    )
