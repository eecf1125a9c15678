"""The table of /api/v1: what is served, what it takes, what it answers.

It is the one source of three things: the routes, the checks before a handler runs (unknown
parameters, media types), and `/openapi.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Annotated, Any

import orjson
from aiohttp import web

from ... import __version__
from ...seam import frozen, offload
from ..metadata_history import MetadataChanges
from . import (
    consume,
    faults,
    groups,
    health,
    leadership,
    metadata_changes,
    metrics,
    produce,
    producers,
    query,
    quorum,
    quorum_calls,
    quorum_log,
    quorum_transfer,
    tail,
    topic_changes,
    topics,
)
from . import documents as d
from .bodies import require_type
from .guards import Handler
from .json_schema import Keywords
from .media import require_accept

JSON = "application/json"
LINES = "application/x-ndjson"
EVENTS = "text/event-stream"
PROMETHEUS = "text/plain"

ALWAYS = (400, 403, 406, 500, 503)
"""What any operation may answer: a parameter nobody knows, a strange Host, no acceptable form, our
mistake, a busy node or one without a controller."""

Kinds = Mapping[str, Any]
"""Media type -> type of the document, or of each of its lines."""


def _none() -> Kinds:
    return MappingProxyType({})


@frozen
class Parameter:
    name: str
    kind: Any
    """As `json_schema` takes it."""
    text: str
    place: str = "query"


@frozen
class Answer:
    text: str
    kinds: Kinds = field(default_factory=_none)


@frozen
class Operation:
    method: str
    path: str
    handler: Handler
    text: str
    answers: Mapping[int, Answer]
    errors: tuple[int, ...] = ()
    """Beside those of `ALWAYS`."""
    parameters: tuple[Parameter, ...] = ()
    bodies: Kinds = field(default_factory=_none)

    @property
    def path_parameters(self) -> tuple[Parameter, ...]:
        return tuple(
            Parameter(name, kind, text, "path")
            for name, (kind, text) in _PATH.items()
            if "{" + name + "}" in self.path
        )

    @property
    def stays_open(self) -> bool:
        return any(EVENTS in answer.kinds for answer in self.answers.values())

    def route(self) -> web.RouteDef:
        if self.method == "GET":
            # HEAD with it, but not where the answer has no end.
            return web.get(self.path, self._checked, allow_head=not self.stays_open)
        return web.route(self.method, self.path, self._checked)

    async def _checked(self, request: web.Request) -> web.StreamResponse:
        known = [one.name for one in self.parameters if one.place == "query"]
        query.refuse_unknown(request.query, *known)
        if self.bodies:
            require_type(request, *self.bodies)
        offers = [kind for answer in self.answers.values() for kind in answer.kinds]
        if offers:
            require_accept(request, *dict.fromkeys(offers))
        return await self.handler(request)


_PATH: Mapping[str, tuple[Any, str]] = MappingProxyType(
    {
        "topic": (d.TopicName, "Name of the topic."),
        "partition": (d.Partition, "Number of the partition."),
        "group": (Annotated[str, Keywords(minLength=1)], "Id of the group."),
        "node": (Annotated[int, Keywords(minimum=0, maximum=2**31 - 1)], "Id of the node."),
    }
)
"""Parameters in paths, alike everywhere."""


async def openapi(request: web.Request) -> web.Response:
    """Made once, beside the loop, when somebody wants it."""
    from . import openapi as maker

    made = request.app[_OPENAPI]
    if not made:
        text = await offload(
            lambda: orjson.dumps(maker.document(operations(), version=__version__)) + b"\n"
        )
        made.append(text)
    return web.Response(body=made[0], content_type=JSON)


_OPENAPI = web.AppKey("openapi", list[bytes])


def install(app: web.Application) -> None:
    app[_OPENAPI] = []
    questions = {"page": quorum_log.answer_page, "transfer": quorum_transfer.answer_transfer}
    quorum_calls.install(app, questions)
    app.add_routes([operation.route() for operation in operations()])


def operations() -> tuple[Operation, ...]:
    encodings_in = tuple(
        Parameter(f"{what}_encoding", d.EncodingName, f"How {what}s are said; string by default.")
        for what in ("key", "value", "header")
    )
    encodings_out = (
        Parameter("format", d.EncodingName, "Of keys, values and headers; string by default."),
        *(
            Parameter(f"{what}_encoding", d.EncodingName, f"Of {what}s; as `format` by default.")
            for what in ("key", "value", "header")
        ),
    )
    tail_number = Annotated[int, Keywords(minimum=0, maximum=consume.LARGEST_TAIL)]
    duration = Annotated[str, Keywords(pattern="^[0-9]{1,9}(ms|s)?$")]
    wait = Parameter("wait", duration, "How long to wait for something to tell: 250ms, 5s.")
    ok = "As asked for."
    return (
        Operation(
            "GET",
            "/healthz",
            health.healthz,
            "Whether the process answers",
            {200: Answer(ok, {JSON: d.Alive})},
        ),
        Operation(
            "GET",
            "/readyz",
            health.readyz,
            "Whether the node can be sent work, or why not",
            {200: Answer("Ready.", {JSON: d.Ready}), 503: Answer("Not yet.", {JSON: d.Ready})},
        ),
        Operation(
            "GET",
            "/metrics",
            metrics.metrics,
            "The node's figures in Prometheus' text format",
            {200: Answer(ok, {PROMETHEUS: str})},
        ),
        Operation(
            "GET",
            "/openapi.json",
            openapi,
            "This document",
            {200: Answer(ok, {JSON: Any})},
        ),
        Operation(
            "GET",
            "/api/v1/cluster",
            topics.cluster,
            "How the cluster is, in one answer",
            {200: Answer(ok, {JSON: d.Cluster})},
        ),
        Operation(
            "GET",
            "/api/v1/metadata",
            metadata_changes.metadata,
            "What changed after an index; waits for it (long poll)",
            {200: Answer(ok, {JSON: MetadataChanges})},
            parameters=(
                Parameter("since", d.Offset, "Index of the last known change."),
                wait,
            ),
        ),
        Operation(
            "GET",
            "/api/v1/quorum",
            quorum.quorum,
            "The metadata quorum as its leader sees it",
            {200: Answer(ok, {JSON: d.Quorum})},
        ),
        Operation(
            "GET",
            "/api/v1/quorum/log",
            quorum_log.quorum_log,
            "What the quorum has decided: the committed entries of the metadata log",
            {200: Answer(ok, {JSON: d.QuorumLog})},
            errors=(409, 416, 504),
            parameters=(
                Parameter("from", d.Offset, "Index of the first entry; by default the newest."),
                Parameter(
                    "limit",
                    Annotated[int, Keywords(minimum=0, maximum=quorum_log.LARGEST_LIMIT)],
                    "How many; 100 by default.",
                ),
            ),
        ),
        Operation(
            "POST",
            "/api/v1/quorum:transfer-leadership",
            quorum_transfer.transfer_quorum,
            "Have another voter lead the quorum, and be the active controller",
            {200: Answer("It leads.", {JSON: d.QuorumLeadership})},
            errors=(408, 409, 413, 415, 422, 504),
            bodies={JSON: d.TransferQuorum},
        ),
        Operation(
            "PUT",
            "/api/v1/quorum/voters/{node}",
            quorum.replace_voter,
            "Let a voter speak from another directory",
            {200: Answer("It does.", {JSON: d.ReplacedVoter})},
            errors=(404, 408, 409, 413, 415, 422, 504),
            bodies={JSON: d.ReplaceVoter},
        ),
        Operation(
            "GET",
            "/api/v1/topics",
            topics.list_topics,
            "All topics",
            {200: Answer(ok, {JSON: d.Topics})},
        ),
        Operation(
            "POST",
            "/api/v1/topics",
            topics.create_topic,
            "Create a topic",
            {
                200: Answer("It could be created (`validate_only`).", {JSON: d.ValidTopic}),
                201: Answer("Created.", {JSON: d.Topic}),
            },
            errors=(404, 408, 409, 413, 415, 422, 504),
            bodies={JSON: d.CreateTopic},
        ),
        Operation(
            "GET",
            "/api/v1/topics/{topic}",
            topics.describe_topic,
            "One topic with its partitions",
            {200: Answer(ok, {JSON: d.Topic})},
            errors=(404,),
        ),
        Operation(
            "DELETE",
            "/api/v1/topics/{topic}",
            topics.delete_topic,
            "Delete a topic and its records",
            {204: Answer("Deleted.")},
            errors=(404, 504),
        ),
        Operation(
            "GET",
            "/api/v1/topics/{topic}/configs",
            topic_changes.describe_settings,
            "All settings of a topic",
            {200: Answer(ok, {JSON: d.TopicSettings})},
            errors=(404, 504),
        ),
        Operation(
            "PATCH",
            "/api/v1/topics/{topic}/configs",
            topic_changes.alter_settings,
            "Set and unset settings of a topic",
            {200: Answer("As they are now.", {JSON: d.TopicSettings})},
            errors=(404, 408, 413, 415, 422, 504),
            bodies={JSON: d.AlterTopicSettings},
        ),
        Operation(
            "POST",
            "/api/v1/topics/{topic}/partitions",
            topic_changes.add_partitions_to_topic,
            "Give a topic more partitions; keys then go elsewhere",
            {200: Answer("It has them.", {JSON: d.Topic})},
            errors=(404, 408, 409, 413, 415, 422, 504),
            bodies={JSON: d.AddPartitions},
        ),
        Operation(
            "POST",
            "/api/v1/topics/{topic}/partitions/{partition}/records:delete",
            topic_changes.trim_partition,
            "Delete the records before an offset, on every replica",
            {200: Answer("They are gone.", {JSON: d.Trimmed})},
            errors=(404, 408, 413, 415, 416, 422, 504),
            bodies={JSON: d.TrimPartition},
        ),
        Operation(
            "POST",
            "/api/v1/topics/{topic}/records",
            produce.produce_records,
            "Write records: a document, or lines that are answered while the request is open",
            {
                200: Answer(
                    "All were written; lines: each has its own verdict.",
                    {JSON: d.Produced, LINES: d.Applied | d.BatchApplied | d.NotApplied | d.Ended},
                ),
                207: Answer("Some were written.", {JSON: d.Produced}),
            },
            errors=(404, 408, 409, 413, 415, 422, 429, 501, 504),
            parameters=(
                *encodings_in,
                Parameter(
                    "acks", Annotated[str, Keywords(enum=["all", "-1", "1"])], "all by default."
                ),
                Parameter(
                    "Idempotency-Key",
                    Annotated[str, Keywords(minLength=1, maxLength=255)],
                    "The same key and document are written once, whichever node is asked.",
                    "header",
                ),
            ),
            bodies={JSON: d.Records, LINES: d.Record | d.Records},
        ),
        Operation(
            "POST",
            "/api/v1/producers",
            producers.create_producer,
            "An id for a producer whose batches may be sent again",
            {201: Answer("A new one.", {JSON: d.Producer})},
        ),
        Operation(
            "GET",
            "/api/v1/topics/{topic}/partitions/{partition}/records",
            consume.fetch_records,
            "Read records from an offset, a time or the end, without a group",
            {200: Answer(ok, {JSON: d.Fetched, LINES: d.StoredRecord})},
            errors=(404, 416, 501, 504),
            parameters=(
                Parameter("offset", d.Offset, "The first to read; by default the earliest."),
                Parameter("timestamp", d.Offset, "The first record of that time or later."),
                Parameter("tail", tail_number, "So many before the end."),
                Parameter(
                    "max_bytes",
                    Annotated[int, Keywords(minimum=0, maximum=consume.LARGEST_MAX_BYTES)],
                    "About how much to read; 1 MiB by default.",
                ),
                wait,
                *encodings_out,
            ),
        ),
        Operation(
            "GET",
            "/api/v1/topics/{topic}/tail",
            tail.tail,
            "Follow a topic: server-sent events or lines that go on as records come",
            {200: Answer("An answer that stays open.", {LINES: d.TailEvent, EVENTS: str})},
            errors=(404, 422, 504),
            parameters=(
                Parameter("partitions", str, "Numbers like 0,1,2; by default all."),
                Parameter(
                    "from", Annotated[str, Keywords(enum=["earliest", "latest"])], "Where to begin."
                ),
                Parameter("offset", d.Offset, "Where to begin in one partition."),
                Parameter("timestamp", d.Offset, "The first record of that time or later."),
                Parameter("tail", tail_number, "So many before the end of each partition."),
                Parameter("last_event_id", str, "As the header, for those who cannot send it."),
                Parameter("Last-Event-ID", str, "Go on behind this event.", "header"),
                Parameter("heartbeat", duration, "How often to say that one is still there."),
                Parameter(
                    "limit", Annotated[int, Keywords(minimum=0)], "End after so many records."
                ),
                Parameter("for", duration, "End after so long."),
                *encodings_out,
            ),
        ),
        Operation(
            "POST",
            "/api/v1/topics/{topic}/partitions/{partition}:transfer-leadership",
            leadership.transfer_leadership,
            "Give the leadership to the preferred replica, or make another one that and lead",
            {200: Answer("It leads.", {JSON: d.Leadership})},
            errors=(404, 408, 409, 413, 415, 422, 504),
            bodies={JSON: d.TransferLeadership},
        ),
        Operation(
            "GET",
            "/api/v1/faults",
            faults.list_faults,
            "What is broken on purpose at this node",
            {200: Answer(ok, {JSON: d.Faults})},
        ),
        Operation(
            "POST",
            "/api/v1/faults",
            faults.inject_fault,
            "Break something on purpose: the way to another node, the disk, the clock, time itself",
            {200: Answer("It begins.", {JSON: d.Faults})},
            errors=(408, 413, 415, 422),
            bodies={JSON: d.Fault},
        ),
        Operation(
            "DELETE",
            "/api/v1/faults",
            faults.heal_faults,
            "End all faults of this node",
            {204: Answer("Ended.")},
        ),
        Operation(
            "GET",
            "/api/v1/faults/history",
            faults.fault_history,
            "What was broken on purpose at this node lately, when, until when and by whom",
            {200: Answer(ok, {JSON: d.FaultHistory})},
        ),
        Operation(
            "GET",
            "/api/v1/groups",
            groups.list_groups,
            "Consumer groups of all nodes",
            {200: Answer(ok, {JSON: d.Groups})},
        ),
        Operation(
            "GET",
            "/api/v1/groups/{group}",
            groups.describe_group,
            "One group with its members",
            {200: Answer(ok, {JSON: d.Group})},
            errors=(404, 504),
        ),
        Operation(
            "DELETE",
            "/api/v1/groups/{group}",
            groups.delete_group,
            "Delete a group without members, and its offsets",
            {204: Answer("Deleted.")},
            errors=(404, 409, 504),
        ),
        Operation(
            "GET",
            "/api/v1/groups/{group}/lag",
            groups.group_lag,
            "What a group has yet to read",
            {200: Answer(ok, {JSON: d.Lag})},
            errors=(404, 504),
        ),
        Operation(
            "POST",
            "/api/v1/groups/{group}/offsets:reset",
            groups.reset_offsets,
            "Where a group shall go on; a dry run unless `execute` is true",
            {200: Answer("From where to where.", {JSON: d.ResetDone})},
            errors=(404, 408, 409, 413, 415, 422, 504),
            bodies={JSON: d.ResetOffsets},
        ),
    )
