"""The document: read, checked, written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

import orjson

from .kinds import KINDS, Option

FORMAT = 1
"""Of the document; another number is refused."""

CLASSIC, CONSUMER = PROTOCOLS = ("classic", "consumer")
"""By which the members of a group talk to its coordinator."""

RESEND_FIRST, RESEND_ALL = RESENDS = ("first", "all")
"""The first batch alone, at once; or all, when nothing is under way (`clients.sequences`)."""
MOST_IN_FLIGHT = 5
"""A broker knows no more of a producer's last batches (KIP-98)."""

OFFSETS_TOPIC = "__consumer_offsets"
"""Where groups keep what they know; the nodes make it when the first group asks."""
OFFSETS_REPLICAS = 3

FOR_LONG_MS = 3_600_000 * 24
"""No clock of a run goes so far."""

ROLES = ("leader", "follower", "controller", "coordinator", "node", "all")


class ScheduleError(Exception):
    """The document is no schedule; says where."""


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    replication_factor: int = 3
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retention:
    """Only whole segments go; negative numbers: nothing goes for that reason."""

    size: int
    """So many bytes of a partition stay."""
    age_ms: int
    """By the clock of the node; what is younger stays."""


@dataclass(frozen=True, slots=True)
class Producers:
    """`count` producers over all partitions of a topic, always with `acks=all`."""

    topic: str
    count: int = 1
    idempotent: bool = True
    batch_records: int = 1
    record_bytes: int = 100
    interval_ms: int = 100
    """Pause after each batch, on the average."""
    in_flight: int = 1
    """Batches on their way to each partition; more than one from idempotent producers only."""
    resend: str = RESEND_ALL
    """What those send again when an answer fails."""
    patience_ms: int = 2_000
    """How long those wait for an answer before they drop the connection."""
    keys: int = 0
    """So many different ones have the records of a topic that is compacted."""
    tombstones: float = 0.0
    """The share of records that have a key and no value."""


@dataclass(frozen=True, slots=True)
class Consumers:
    """`count` consumers, each of all partitions of a topic, from the beginning on."""

    topic: str
    count: int = 1
    max_wait_ms: int = 200


@dataclass(frozen=True, slots=True)
class Trims:
    """Somebody deletes the heads of a topic's partitions (KIP-107)."""

    topic: str
    keep_records: int = 40
    """So many at the end of a partition stay."""
    interval_ms: int = 600


@dataclass(frozen=True, slots=True)
class Churn:
    """Topics that come and go: each is made, written and read, given another setting, deleted, and
    made again under the same name."""

    topic: Topic
    """What each is like; they are called `<name>-0`, `<name>-1`, ..."""
    topics: int = 1
    """That come and go side by side."""
    idempotent: bool = True
    alter: str = ""
    """A topic that stays, whose settings change meanwhile, too; none when empty."""
    interval_ms: int = 150
    """Pause between two steps, on the average."""


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group whose members come, share the partitions of a topic, commit, and leave or
    just stop; as many at a time as `members`."""

    name: str
    topic: str
    members: int = 2
    session_timeout_ms: int = 1_500
    life_ms: int = 6_000
    """How long a member stays, on the average."""
    protocol: str = CLASSIC
    """Or CONSUMER (KIP-848), where the session is a setting of the nodes, see `settings`."""

    @property
    def consumer_protocol(self) -> bool:
        return self.protocol == CONSUMER

    @property
    def settings(self) -> Mapping[str, str]:
        """What every node has to be told for its sessions to be as short."""
        if not self.consumer_protocol:
            return {"group.min.session.timeout.ms": str(min(500, self.session_timeout_ms))}
        session, beat = f"{self.session_timeout_ms}", f"{self.session_timeout_ms // 4}"
        return {
            "group.consumer.min.session.timeout.ms": session,
            "group.consumer.session.timeout.ms": session,
            "group.consumer.min.heartbeat.interval.ms": beat,
            "group.consumer.heartbeat.interval.ms": beat,
        }


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a fault hits, found out when it strikes.

    leader, follower: of a topic's partition; `number` picks among followers. controller: the active
    one. coordinator: of a group. node: `number` is its id. all: every node.
    """

    role: str
    topic: str = ""
    partition: int = 0
    number: int = 0
    group: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    at_ms: int
    """After the workload's start."""
    kind: str
    target: Target
    for_ms: int
    options: Mapping[str, Option] = field(default_factory=dict)

    def option(self, name: str) -> Option:
        """The stated value, or the kind's default."""
        return self.options.get(name, KINDS[self.kind].options[name])


@dataclass(frozen=True, slots=True)
class Schedule:
    """A run: the cluster comes up, topics are made, clients work for `hurt_ms` while faults strike,
    everything is healed, and the end must come within `settle_ms` for each of its steps.

    `network` and `disk` are what an executor that simulates them begins with: latency_us,
    jitter_us, sync_us.
    """

    seed: int
    nodes: int
    topics: tuple[Topic, ...]
    producers: tuple[Producers, ...]
    consumers: tuple[Consumers, ...]
    faults: tuple[Fault, ...]
    churn: tuple[Churn, ...] = ()
    groups: tuple[Group, ...] = ()
    trims: tuple[Trims, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of every node."""
    network: Mapping[str, int] = field(default_factory=dict)
    disk: Mapping[str, int] = field(default_factory=dict)
    hurt_ms: int = 26_000
    settle_ms: int = 20_000

    # What is promised

    def is_compacted(self, topic: Topic) -> bool:
        """Of each key the last record stays, others may go."""
        return "compact" in topic.configs.get("cleanup.policy", "delete")

    def forgets_tombstones(self, topic: Topic) -> bool:
        """Within a run."""
        return int(topic.configs.get("delete.retention.ms", FOR_LONG_MS)) < FOR_LONG_MS

    def retention(self, topic: Topic) -> Retention | None:
        """What lets its oldest records go; None: nothing within a run."""
        size = int(topic.configs.get("retention.bytes", -1))
        age_ms = int(topic.configs.get("retention.ms", FOR_LONG_MS))
        if self.is_compacted(topic) or (size < 0 and not 0 <= age_ms < FOR_LONG_MS):
            return None
        return Retention(size, age_ms)

    def kept_topics(self) -> Iterator[Topic]:
        """All that live as long as the run does."""
        yield from self.topics
        if self.groups:
            replicas = self.settings.get("offsets.topic.replication.factor", OFFSETS_REPLICAS)
            partitions = self.settings.get("offsets.topic.num.partitions", 50)
            yield Topic(OFFSETS_TOPIC, int(partitions), min(int(replicas), self.nodes))

    def is_synced(self, topic: Topic) -> bool:
        """Its durability mode (RULES C1)."""
        flush = self.settings.get("log.flush.interval.messages", "1")
        return topic.configs.get("flush.messages", flush) == "1"

    def min_insync_replicas(self, topic: Topic) -> int:
        least = self.settings.get("min.insync.replicas", "1")
        return int(topic.configs.get("min.insync.replicas", least))

    def least_holders(self, topic: Topic) -> int:
        """So many replicas have a record when it is acknowledged, or more (RULES D1)."""
        return min(topic.replication_factor, self.min_insync_replicas(topic))

    @property
    def damageable(self) -> int:
        """So many disks may be damaged, always the same ones: every record has one holder more."""
        return max(1, min((self.least_holders(topic) for topic in self.topics), default=1) - 1)

    def to_json(self) -> bytes:
        document = {"format": FORMAT, **asdict(self)}
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Raises ScheduleError."""
        try:
            document = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise ScheduleError(f"no JSON: {error}") from None
        if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
            raise ScheduleError(f"format {FORMAT} is expected")
        parts: dict[str, Any] = {
            "topics": _each(Topic, document, "topics"),
            "producers": _each(Producers, document, "producers"),
            "consumers": _each(Consumers, document, "consumers"),
            "groups": _each(Group, document, "groups"),
            "trims": _each(Trims, document, "trims"),
            "churn": tuple(_churn(item) for item in document.pop("churn", ())),
            "faults": tuple(_fault(item) for item in document.pop("faults", ())),
        }
        schedule: Self = _made(cls, {**document, **parts}, "schedule")
        schedule.check()
        return schedule

    def check(self) -> None:
        """Raises ScheduleError for a fault or a client of something that does not exist."""
        partitions = {topic.name: topic.partitions for topic in self.topics}
        named = [clients.topic for clients in self.producers]
        named += [clients.topic for clients in self.consumers]
        named += [group.topic for group in self.groups]
        named += [trims.topic for trims in self.trims]
        named += [churn.alter for churn in self.churn if churn.alter]
        for topic in named:
            if topic not in partitions:
                raise ScheduleError(f"clients of a topic {topic!r} that is not made")
        for producers in self.producers:
            if not 1 <= producers.in_flight <= (MOST_IN_FLIGHT if producers.idempotent else 1):
                raise ScheduleError(f"{producers.in_flight} batches cannot be in flight here")
            compacted = any(
                self.is_compacted(topic) for topic in self.topics if topic.name == producers.topic
            )
            if (producers.keys > 0) is not compacted or (compacted and producers.in_flight > 1):
                raise ScheduleError(
                    "records have keys where their topic is compacted, and nowhere else; those "
                    "producers have one batch in flight"
                )
            if producers.resend not in RESENDS:
                raise ScheduleError(f"there is no way {producers.resend!r} to send again")
        groups = [group.name for group in self.groups]
        for group in self.groups:
            if group.protocol not in PROTOCOLS:
                raise ScheduleError(f"there is no protocol {group.protocol!r} of groups")
        for fault in self.faults:
            kind = KINDS.get(fault.kind)
            if kind is None:
                raise ScheduleError(f"there is no fault {fault.kind!r}")
            if unknown := [name for name in fault.options if name not in kind.options]:
                raise ScheduleError(f"{fault.kind} has no option {unknown[0]!r}")
            target = fault.target
            if target.role not in ROLES:
                raise ScheduleError(f"there is no role {target.role!r}")
            if target.role in ("leader", "follower") and not (
                0 <= target.partition < partitions.get(target.topic, 0)
            ):
                raise ScheduleError(f"{target.topic}-{target.partition} is not made")
            if target.role == "coordinator" and target.group not in groups:
                raise ScheduleError(f"there is no group {target.group!r} to have a coordinator")
            if target.role == "node" and not 1 <= target.number <= self.nodes:
                raise ScheduleError(f"there is no node {target.number}")


def _churn(item: Any) -> Churn:
    if not isinstance(item, dict):
        raise ScheduleError(f"churn is an object, not {item!r}")
    topic = _made(Topic, item.get("topic"), "topic")
    churn: Churn = _made(Churn, {**item, "topic": topic}, "churn")
    return churn


def _fault(item: Any) -> Fault:
    if not isinstance(item, dict):
        raise ScheduleError(f"a fault is an object, not {item!r}")
    target = _made(Target, item.get("target"), "target")
    fault: Fault = _made(Fault, {**item, "target": target}, "fault")
    return fault


def _each(kind: type[Any], document: dict[str, Any], name: str) -> tuple[Any, ...]:
    return tuple(_made(kind, item, name) for item in document.pop(name, ()))


def _made(kind: type[Any], item: Any, name: str) -> Any:
    if not isinstance(item, dict):
        raise ScheduleError(f"{name}: an object is expected, not {item!r}")
    if unknown := set(item) - {known.name for known in fields(kind)}:
        raise ScheduleError(f"{name} has no {sorted(unknown)[0]!r}")
    try:
        return kind(**item)
    except TypeError as error:
        raise ScheduleError(f"{name}: {error}") from None
