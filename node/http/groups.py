"""Consumer groups for administrators: GET /api/v1/groups, GET and DELETE /api/v1/groups/{group},
GET .../lag, POST .../offsets:reset. Any node answers; the group's coordinator is asked."""

from __future__ import annotations

from aiohttp import web

from ...wire import ErrorCode
from ...wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ...wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ...wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from . import query
from .bodies import json_object, read_body, require_type
from .coordinators import NO_SUCH_GROUP, ask_every_node
from .errors import ApiError, from_kafka
from .group_reading import GroupReading
from .group_views import Owner, lag_row, owners_of
from .guards import JSON_TYPE, json_response
from .keys import LEADERS, NODE
from .partition_ends import partition_ends
from .reset_plan import parse_reset

CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
CommitPartition = CommitTopic.OffsetCommitRequestPartition


def _group(request: web.Request) -> GroupReading:
    """The one that the path names."""
    return GroupReading(request.app[NODE], request.app[LEADERS], request.match_info["group"])


async def list_groups(request: web.Request) -> web.Response:
    """Groups of every node; `unanswered` names the nodes whose groups are missing."""
    query.refuse_unknown(request.query)
    answers, problems = await ask_every_node(
        request.app[NODE], ListGroupsRequest(), ListGroupsResponse
    )
    groups = [
        {
            "group_id": group.group_id,
            "state": group.group_state,
            "type": group.group_type,
            "protocol_type": group.protocol_type,
            "coordinator": node_id,
        }
        for node_id, answer in answers.items()
        for group in answer.groups
    ]
    groups.sort(key=lambda group: str(group["group_id"]))
    unanswered = [n for n, answer in answers.items() if answer.error_code] + list(problems)
    return json_response({"groups": groups, "unanswered": sorted(unanswered)})


async def describe_group(request: web.Request) -> web.Response:
    query.refuse_unknown(request.query)
    return json_response(await _group(request).described())


async def delete_group(request: web.Request) -> web.Response:
    """204. 409 while it has members."""
    query.refuse_unknown(request.query)
    group_id = request.match_info["group"]
    await _group(request).ask(
        DeleteGroupsRequest(groups_names=[group_id]),
        DeleteGroupsResponse,
        lambda answer: answer.results[0].error_code,
    )
    return web.Response(status=204)


async def group_lag(request: web.Request) -> web.Response:
    """What the group has yet to read, by partition, and who reads it."""
    query.refuse_unknown(request.query)
    described = await _group(request).described()
    committed = await _group(request).committed()
    owners = owners_of(described)
    places = sorted({*committed, *owners})
    ends = await partition_ends(request.app[NODE], request.app[LEADERS], places)
    rows = [
        lag_row(place, committed.get(place), ends.get(place), owners.get(place, Owner()))
        for place in places
    ]
    total = sum(row["lag"] for row in rows if row["lag"] is not None)
    return json_response(
        {
            "group_id": described["group_id"],
            "state": described["state"],
            "total_lag": total,
            "partitions": rows,
        }
    )


async def reset_offsets(request: web.Request) -> web.Response:
    """Where the group shall go on; with `"execute": true` it is committed, else only shown.

    409 while it has members, as Kafka's own tool refuses: they would commit over it at once.
    """
    query.refuse_unknown(request.query)
    require_type(request, JSON_TYPE)
    reset = parse_reset(json_object(await read_body(request)))
    group_id, node, leaders = request.match_info["group"], request.app[NODE], request.app[LEADERS]
    await _refuse_members(request)
    committed = await _group(request).committed()
    places = reset.places(node.image(), committed)
    ends = await partition_ends(node, leaders, places, timestamp_ms=reset.timestamp_ms)
    plan = [
        (place, committed.get(place), reset.target(committed.get(place), ends[place]))
        for place in places
        if place in ends
    ]
    if reset.execute:
        await _commit(request, group_id, {place: target for place, _, target in plan})
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "from": None if before is None else before.offset,
            "to": target,
        }
        for (topic, partition), before, target in plan
    ]
    return json_response({"group_id": group_id, "executed": reset.execute, "partitions": rows})


async def _refuse_members(request: web.Request) -> None:
    try:
        members = (await _group(request).described())["members"]
    except ApiError as error:
        if error.error_code != NO_SUCH_GROUP:
            raise
        return  # a group may be given offsets before its first member comes
    if members:
        raise _has_members(request)


def _has_members(request: web.Request) -> ApiError:
    group_id = request.match_info["group"]
    return from_kafka(
        ErrorCode.NON_EMPTY_GROUP, f"group {group_id!r} has members, which would commit over it"
    )


async def _commit(request: web.Request, group_id: str, targets: dict[tuple[str, int], int]) -> None:
    """Refused by the coordinator, too, when a member has come meanwhile."""
    image = request.app[NODE].image()
    by_topic: dict[str, list[CommitPartition]] = {}
    for (topic, partition), offset in targets.items():
        by_topic.setdefault(topic, []).append(
            CommitPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=""
            )
        )
    topics = [
        CommitTopic(topic_id=image.topics[name].topic_id, partitions=parts)
        for name, parts in by_topic.items()
    ]

    def first_error(answer: OffsetCommitResponse) -> int:
        codes = [part.error_code for topic in answer.topics for part in topic.partitions]
        return next((code for code in codes if code), 0)

    try:
        await _group(request).ask(
            OffsetCommitRequest(group_id=group_id, topics=topics),
            OffsetCommitResponse,
            first_error,
        )
    except ApiError as error:
        if error.kafka_error is not ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        raise _has_members(request) from None
