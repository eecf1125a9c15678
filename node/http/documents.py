"""The documents of /api/v1, in and out, as types: what OpenAPI says of them is made from these."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from .json_schema import Keywords

Uuid = Annotated[str, Keywords(format="uuid")]
Count = Annotated[int, Keywords(minimum=0)]
Offset = Annotated[int, Keywords(minimum=0, maximum=2**63 - 1)]
Millis = Annotated[int, "Milliseconds since 1970."]
Partition = Annotated[int, Keywords(minimum=0, maximum=2**31 - 1)]
NodeId = Annotated[int, "Of a node; -1 is none."]
EncodingName = Literal["string", "json", "base64"]
TopicName = Annotated[str, Keywords(minLength=1, maxLength=249)]


class Error(TypedDict):
    """Why not, and whether trying again may help."""

    error_code: Annotated[int, "The HTTP status, or that with two more digits."]
    message: str
    kafka_error: Annotated[str | None, "Kafka's name of the error, if it has one."]
    retriable: Annotated[bool, "The same request may succeed later."]
    hint: str | None
    outcome: NotRequired[
        Annotated[Literal["unknown"], "It may have been carried out all the same."]
    ]


# Health.


class Alive(TypedDict):
    """The process answers."""

    alive: bool


class Ready(TypedDict):
    """Whether the node can be sent work."""

    ready: bool
    reasons: list[str]


# The cluster.


class Node(TypedDict):
    """A registered node."""

    id: NodeId
    state: Literal["active", "fenced", "shutting_down"]
    broker_epoch: int
    kafka: Annotated[str, "host:port for Kafka clients."]
    http: str | None
    rack: str | None


class Cluster(TypedDict):
    """How the cluster is, as the asked node sees it."""

    is_healthy: bool
    unhealthy_reasons: list[str]
    cluster_id: str
    controller_id: NodeId
    node_id: Annotated[int, "The node that answers."]
    role: Annotated[str, "Its part in the quorum: leader, follower or observer."]
    metadata_index: Annotated[int, "The last change of metadata that this node has applied."]
    nodes: list[Node]
    nodes_down: list[int]
    leaderless_partitions: Annotated[list[str], "topic/partition; cut after 128."]
    leaderless_count: Count
    under_replicated_partitions: Annotated[list[str], "topic/partition; cut after 128."]
    under_replicated_count: Count
    topic_count: Count
    partition_count: Count


class QuorumReplica(TypedDict):
    """A voter or observer, as the quorum's leader sees it."""

    node_id: NodeId
    directory_id: Uuid | None
    leads: bool
    log_end_offset: int | None
    lag: int | None
    last_contact_ms: Millis | None
    last_caught_up_ms: Millis | None
    silent_for_ms: int | None


class Quorum(TypedDict):
    """The quorum that keeps the metadata."""

    cluster_id: str
    leader_id: NodeId
    leader_epoch: int
    high_watermark: int
    max_follower_lag: int
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]


class QuorumLogEntry(TypedDict):
    """A committed entry of the metadata log."""

    index: int
    term: int
    kind: Annotated[str, "Of the command; Barrier and NewTerm are the quorum's own."]
    content: Annotated[dict[str, Any], "The command's fields."]


class QuorumLog(TypedDict):
    """A stretch of the metadata log, as one voter keeps it."""

    node_id: Annotated[int, "The voter."]
    first_index: Annotated[int, "The oldest entry that is kept."]
    snapshot_index: Annotated[int, "Last index that the newest snapshot covers; 0 without one."]
    commit_index: int
    entries: list[QuorumLogEntry]


class TransferQuorum(TypedDict):
    """Who is to lead the quorum."""

    to: Annotated[int, "A voter."]


class QuorumLeadership(TypedDict):
    """Who leads the quorum."""

    leader_id: int
    leader_epoch: int
    changed: bool


class ReplaceVoter(TypedDict):
    """The directory that is the voter from now on."""

    directory_id: Uuid


class ReplacedVoter(TypedDict):
    """The voter as it is now."""

    node_id: NodeId
    directory_id: Uuid


# Topics.


class TopicSummary(TypedDict):
    """One topic in a list."""

    name: str
    topic_id: Uuid
    internal: bool
    partition_count: Count
    replication_factor: Count
    under_replicated_count: Count


class Topics(TypedDict):
    """All topics by name."""

    topics: list[TopicSummary]


class LocalReplica(TypedDict):
    """What the answering node holds of a partition."""

    role: str
    high_watermark: int
    log_start_offset: int
    log_end_offset: int


class TopicPartition(TypedDict):
    """One partition and its replicas."""

    partition: Partition
    leader: NodeId
    leader_epoch: int
    partition_epoch: int
    replicas: list[int]
    isr: list[int]
    elr: list[int]
    local: LocalReplica | None


class Topic(TopicSummary):
    """One topic whole."""

    min_insync_replicas: int
    configs: dict[str, str]
    partitions: list[TopicPartition]


class CreateTopic(TypedDict):
    """What is absent or null is the cluster's default."""

    name: str
    partitions: NotRequired[Annotated[int, Keywords(minimum=1, maximum=2**31 - 1)] | None]
    replication_factor: NotRequired[Annotated[int, Keywords(minimum=1, maximum=2**15 - 1)] | None]
    configs: NotRequired[dict[str, str | int | float | bool] | None]
    validate_only: NotRequired[bool]


class ValidTopic(TypedDict):
    """The topic could be created."""

    valid: bool
    name: str


class Setting(TypedDict):
    """One setting of a topic."""

    name: str
    value: Annotated[str | None, "null: it is kept secret."]
    source: Annotated[str, "Where the value comes from: DYNAMIC_TOPIC_CONFIG is the topic's own."]


class TopicSettings(TypedDict):
    """All settings of a topic, those it does not have itself with the values in force."""

    topic: str
    configs: list[Setting]


class AlterTopicSettings(TypedDict):
    """All of it is done, or nothing."""

    set: NotRequired[dict[str, str | int | float | bool]]
    unset: NotRequired[Annotated[list[str], "Back to the cluster's value."]]
    validate_only: NotRequired[bool]


class AddPartitions(TypedDict):
    """How many partitions the topic shall have."""

    count: Annotated[int, Keywords(minimum=1, maximum=2**31 - 1)]


class TrimPartition(TypedDict):
    """What goes: every record before an offset; by default every committed one."""

    before_offset: NotRequired[Annotated[int, Keywords(minimum=0, maximum=2**63 - 1)] | None]


class Trimmed(TypedDict):
    """The partition as all its replicas now have it."""

    topic: str
    partition: Partition
    log_start_offset: int


class TransferLeadership(TypedDict):
    """Who shall lead; by default the preferred replica, which is the first."""

    to: NotRequired[int | None]


class Leadership(TypedDict):
    """Who leads the partition now."""

    topic: str
    partition: Partition
    leader: NodeId
    leader_epoch: int
    changed: bool


# Records in.


class HeaderIn(TypedDict):
    """The same key may come twice."""

    key: str
    value: NotRequired[Any]


class Record(TypedDict):
    """A record to be written. A null value is a tombstone."""

    value: Any
    key: NotRequired[Any]
    headers: NotRequired[list[HeaderIn] | None]
    partition: NotRequired[Partition | None]
    timestamp: NotRequired[Annotated[int, Keywords(minimum=0, maximum=2**63 - 1)] | None]


class Records(TypedDict):
    """Records to be written. With `producer_id`, `producer_epoch`, `base_sequence` and `partition`
    they are one batch that may be sent again."""

    records: Annotated[list[Record], Keywords(minItems=1)]
    partition: NotRequired[Partition | None]
    producer_id: NotRequired[Annotated[int, Keywords(minimum=0, maximum=2**63 - 1)] | None]
    producer_epoch: NotRequired[Annotated[int, Keywords(minimum=0, maximum=2**15 - 1)] | None]
    base_sequence: NotRequired[Annotated[int, Keywords(minimum=0, maximum=2**31 - 1)] | None]
    key_encoding: NotRequired[EncodingName]
    value_encoding: NotRequired[EncodingName]
    header_encoding: NotRequired[EncodingName]


class Applied(TypedDict):
    """The record stands there."""

    outcome: Literal["applied"]
    partition: Partition
    offset: Offset
    timestamp: Millis


class BatchApplied(TypedDict):
    """The batch stands there: the verdict on a line that was a batch."""

    outcome: Literal["applied"]
    partition: Partition
    base_offset: Offset
    count: Count


class NotApplied(TypedDict):
    """The record was not written (failed), or nobody knows (unknown)."""

    outcome: Literal["failed", "unknown"]
    partition: NotRequired[Partition]
    error_code: int
    message: str
    kafka_error: str | None
    retriable: bool
    hint: str | None


class Ended(TypedDict):
    """The last line, when the node ends the request: further lines were not taken."""

    ended: Literal[True]
    error_code: int
    message: str
    kafka_error: str | None
    retriable: bool
    hint: str | None


class Produced(TypedDict):
    """A verdict for each record, in their order; the first error's keys when there was one."""

    topic: str
    records: list[Applied | NotApplied]
    error_code: NotRequired[int]
    message: NotRequired[str]
    kafka_error: NotRequired[str | None]
    retriable: NotRequired[bool]
    hint: NotRequired[str | None]
    outcome: NotRequired[Literal["unknown"]]


class Producer(TypedDict):
    """An id for a producer whose batches may be sent again."""

    producer_id: Offset
    producer_epoch: Count


# Records out.


class HeaderOut(TypedDict):
    """`encoding` stands there where it is not the one that was asked for."""

    key: str
    value: Any
    encoding: NotRequired[EncodingName]


class StoredRecord(TypedDict):
    """A record as it was stored."""

    offset: Offset
    timestamp: Millis
    timestamp_type: Literal["create_time", "log_append_time"]
    key: Any
    value: Any
    headers: list[HeaderOut]
    key_encoding: NotRequired[EncodingName]
    value_encoding: NotRequired[EncodingName]


class Fetched(TypedDict):
    """Records of one partition, and where to go on."""

    topic: str
    partition: Partition
    leader: NodeId
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    next_offset: Offset
    key_encoding: EncodingName
    value_encoding: EncodingName
    header_encoding: EncodingName
    records: list[StoredRecord]


TailEvent = Annotated[
    dict[str, Any],
    "One line of a tail: `event` (open, record, reset, stalled, end, heartbeat) says which other "
    "keys it has; `id` is where to go on from.",
]


# Faults.


Fault = TypedDict(
    "Fault",
    {
        "kind": Literal["partition", "delay", "drop", "pause", "disk-full", "clock"],
        "node": NotRequired[Annotated[int, "The other node, for partition, delay and drop."]],
        "delay": NotRequired[Annotated[str, "For delay, like 50ms."]],
        "chance": NotRequired[
            Annotated[float, Keywords(exclusiveMinimum=0, maximum=1), "For drop: of each write."]
        ],
        "offset": NotRequired[Annotated[str, "For clock, like +30s, -2h or +1d."]],
        "for": NotRequired[Annotated[str, "Like 10s, which it is by default; 10m at most."]],
        "by": NotRequired[Annotated[str, "Who asks, for the history."]],
    },
)
"""Something to be broken on purpose; it ends by itself."""


class Faults(TypedDict):
    """What is broken on purpose at this node."""

    cut: Annotated[list[int], "Nodes that it is cut off from."]
    delays_ms: Annotated[dict[str, int], "How long bytes to a node are held, by node id."]
    losses: Annotated[dict[str, float], "The chance that what goes to a node is lost, by node id."]
    disk_full: bool
    clock_offset_ms: Annotated[int, "By how much the wall clock is ahead."]


class InjectedFault(TypedDict):
    """One that was asked for. Times are milliseconds since 1970."""

    kind: str
    at_ms: int
    until_ms: Annotated[int, "When it ends by itself, or was ended before."]
    by: Annotated[str, "Who asked for it."]
    node: Annotated[int | None, "The other node, where there is one."]
    amount: Annotated[str | None, "How much: a delay, a chance, an offset."]


class FaultHistory(TypedDict):
    """The last faults of this node, in the order in which they began."""

    faults: list[InjectedFault]


# Groups.


class GroupSummary(TypedDict):
    """One group in a list."""

    group_id: str
    state: str
    type: str
    protocol_type: str
    coordinator: NodeId


class Groups(TypedDict):
    """All groups; those of nodes that did not answer are missing."""

    groups: list[GroupSummary]
    unanswered: list[int]


class Assigned(TypedDict):
    """Partitions of one topic."""

    topic: str
    partitions: list[int]


class Member(TypedDict):
    """One member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[Assigned] | None
    member_epoch: NotRequired[int]
    target_assignment: NotRequired[list[Assigned]]


class Group(TypedDict):
    """One group whole, of either protocol."""

    group_id: str
    state: str
    type: Literal["classic", "consumer"]
    coordinator: NodeId
    assignor: str | None
    protocol_type: str
    members: list[Member]
    group_epoch: NotRequired[int]
    assignment_epoch: NotRequired[int]


class LagRow(TypedDict):
    """What is left to read of one partition; null where it cannot be told."""

    topic: str
    partition: Partition
    committed_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    member_id: str | None
    client_id: str | None
    host: str | None


class Lag(TypedDict):
    """What a group has yet to read."""

    group_id: str
    state: str
    total_lag: Count
    partitions: list[LagRow]


class ToOffset(TypedDict):
    offset: Offset


class ToShift(TypedDict):
    shift: Annotated[int, Keywords(minimum=-(2**63), maximum=2**63 - 1)]


class ToTimestamp(TypedDict):
    timestamp: Offset


class ResetOffsets(TypedDict):
    """Where the group shall go on; nothing is changed unless `execute` is true."""

    to: Literal["earliest", "latest"] | ToOffset | ToShift | ToTimestamp
    topics: NotRequired[Annotated[list[str], 'Names, or names with a partition like "orders:0".']]
    execute: NotRequired[bool]


ResetRow = TypedDict(
    "ResetRow", {"topic": str, "partition": Partition, "from": int | None, "to": int}
)


class ResetDone(TypedDict):
    """From where to where."""

    group_id: str
    executed: bool
    partitions: list[ResetRow]
