"""CreateTopics (19) and DeleteTopics (20)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from uuid import UUID

from ...wire import ErrorCode
from ...wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ...wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ..apply import apply
from ..broker_configs import BROKER_CONFIGS
from ..commands import CreateTopics, DeleteTopics, NewTopic, Origin
from ..config_definition import InvalidConfig
from ..placement import PlacementError, check_assignment, place_replicas
from ..results import Item
from ..topic_configs import (
    effective_topic_configs,
    resolve_topic,
    validate_topic_configs,
    with_fixed_mode,
)
from ..topic_names import why_invalid
from .answer import ControllerAnswer
from .office import Decided, Office

MAX_PARTITIONS_PER_REQUEST = 10_000
"""Kafka's bound (KAFKA-17642): one command stays small enough for the log and the loop."""

METADATA_TOPIC = "__cluster_metadata"
"""Kafka keeps its quorum's log under this name; clients know it as not theirs."""

Creatable = CreateTopicsRequest.CreatableTopic
Created = CreateTopicsResponse.CreatableTopicResult


class Refused(Exception):
    """This topic cannot be created as asked."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.item = Item(error, message)


async def create_topics(
    office: Office,
    request: CreateTopicsRequest,
    version: int,
    deadline: float,
    origin: Origin | None,
) -> ControllerAnswer[CreateTopicsResponse]:
    """Versions 2-7; from 4 on -1 means the default, 5 answers the settings, 7 the topic id.

    Each topic stands for itself. `validate_only` asks the same rules and leaves no trace.
    """
    verdicts: list[Item | NewTopic] = []
    names = Counter(topic.name for topic in request.topics)
    wanted_partitions = 0
    for topic in request.topics:
        try:
            if names[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            new = _plan(office, topic)
            wanted_partitions += len(new.assignments)
            if wanted_partitions > MAX_PARTITIONS_PER_REQUEST:
                raise Refused(
                    ErrorCode.POLICY_VIOLATION,
                    f"Excessively large number of partitions per request: more than "
                    f"{MAX_PARTITIONS_PER_REQUEST}.",
                )
            verdicts.append(new)
        except Refused as refused:
            verdicts.append(refused.item)
    planned = tuple(verdict for verdict in verdicts if isinstance(verdict, NewTopic))
    decided = await _decide(office, planned, origin, request.validate_only, deadline)
    items = iter(decided.result.items)
    response = CreateTopicsResponse()
    for topic, verdict in zip(request.topics, verdicts, strict=True):
        if isinstance(verdict, Item):
            response.topics.append(_failure(topic.name, verdict))
        elif decided.result.refused:
            item = Item(decided.result.error, decided.result.message)
            response.topics.append(_failure(topic.name, item))
        else:
            item = next(items)
            ok = item.error == ErrorCode.NONE
            response.topics.append(_success(office, verdict) if ok else _failure(topic.name, item))
    # Duplicates are told once.
    response.topics = list({topic.name: topic for topic in response.topics}.values())
    return ControllerAnswer(response, decided.index)


async def _decide(
    office: Office,
    planned: tuple[NewTopic, ...],
    origin: Origin | None,
    validate_only: bool,
    deadline: float,
) -> Decided:
    if office.epoch is None or not validate_only:
        # Also without any legal topic: whether this node may say so is for the quorum to decide.
        return await office.propose(lambda epoch: CreateTopics(epoch, planned, origin), deadline)
    _, result = apply(office.image, office.image.index, CreateTopics(office.epoch, planned, None))
    return Decided(result, office.image.index)


def _plan(office: Office, topic: Creatable) -> NewTopic:
    """Everything about the new topic that the command carries. Raises Refused."""
    if topic.name == METADATA_TOPIC:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        )
    why = why_invalid(topic.name)
    if why:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, why)
    configs = _configs(topic)
    broker = office.broker_settings()
    resolved = resolve_topic(configs, broker)
    return NewTopic(
        name=topic.name,
        topic_id=random_topic_id(office.rng),
        assignments=_manual(office, topic) if topic.assignments else _automatic(office, topic),
        configs=with_fixed_mode(configs, resolved),
        min_insync_replicas=resolved.min_insync_replicas,
        flush_messages=resolved.flush_messages,
        unclean_leader_election=resolved.unclean_leader_election,
    )


def _configs(topic: Creatable) -> dict[str, str]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {', '.join(nulls)}",
        )
    configs = {config.name: config.value or "" for config in topic.configs}
    try:
        validate_topic_configs(configs)
    except InvalidConfig as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from error
    return configs


def _automatic(office: Office, topic: Creatable) -> tuple[tuple[int, ...], ...]:
    partitions, factor = topic.num_partitions, topic.replication_factor
    if partitions == -1:
        partitions = _default(office, "num.partitions")
    elif partitions <= 0:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions must be larger than 0, or -1 to use the default value.",
        )
    if factor == -1:
        factor = _default(office, "default.replication.factor")
    elif factor <= 0:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partitions > MAX_PARTITIONS_PER_REQUEST:
        raise Refused(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: {partitions} is more than "
            f"{MAX_PARTITIONS_PER_REQUEST}.",
        )
    try:
        return place_replicas(
            office.image.brokers,
            partitions=partitions,
            replication_factor=factor,
            rng=office.rng,
        )
    except PlacementError as error:
        raise Refused(
            error.error,
            f"Unable to replicate the partition {factor} time(s): {error.message}",
        ) from error


def _manual(office: Office, topic: Creatable) -> tuple[tuple[int, ...], ...]:
    if topic.replication_factor != -1:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to "
            "-1.",
        )
    if topic.num_partitions != -1:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    by_partition = sorted(topic.assignments, key=lambda assignment: assignment.partition_index)
    if [assignment.partition_index for assignment in by_partition] != list(
        range(len(by_partition))
    ):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    try:
        return check_assignment(
            [assignment.broker_ids for assignment in by_partition], office.image.brokers
        )
    except PlacementError as error:
        raise Refused(error.error, error.message) from error


def _default(office: Office, name: str) -> int:
    text = office.settings.default_configs.get(name) or BROKER_CONFIGS[name].default
    return int(text or 1)


def _success(office: Office, new: NewTopic) -> Created:
    """With the settings in force, as `DescribeConfigs` would tell them."""
    effective = effective_topic_configs(new.configs, office.broker_settings())
    return Created(
        name=new.name,
        topic_id=new.topic_id,
        num_partitions=len(new.assignments),
        replication_factor=len(new.assignments[0]),
        configs=[
            CreateTopicsResponse.CreatableTopicConfigs(
                name=name, value=setting.value, config_source=setting.source
            )
            for name, setting in effective.items()
        ],
    )


def _failure(name: str, item: Item) -> Created:
    return Created(
        name=name, error_code=item.error, error_message=item.message or None, configs=None
    )


def random_topic_id(rng: Random) -> UUID:
    """Version 4, never one of Kafka's two reserved ids; `rng` decides, so a seed replays it."""
    return UUID(int=rng.getrandbits(128), version=4)


async def delete_topics(
    office: Office,
    request: DeleteTopicsRequest,
    version: int,
    deadline: float,
    origin: Origin | None,
) -> ControllerAnswer[DeleteTopicsResponse]:
    """Versions 1-6; from 6 on by name or id.

    A name becomes an id here, so that the command never hits a topic created meanwhile.
    """
    wanted = _deletions(request)
    verdicts = [_check_deletion(office, entry, wanted) for entry in wanted]
    ids = tuple(verdict for verdict in verdicts if isinstance(verdict, UUID))
    names = {topic_id: office.image.topic_names.get(topic_id) for topic_id in ids}
    decided = await office.propose(lambda epoch: DeleteTopics(epoch, ids, origin), deadline)
    items = iter(decided.result.items)
    responses = []
    for entry, verdict in zip(wanted, verdicts, strict=True):
        name, topic_id = entry.name, entry.topic_id
        if isinstance(verdict, Item):
            item = verdict
        else:
            topic_id = verdict
            if decided.result.refused:
                item = Item(decided.result.error, decided.result.message)
            else:
                item = next(items)
            if item.error == ErrorCode.UNKNOWN_TOPIC_ID and name is not None:
                item = _UNKNOWN_NAME
            elif item.error == ErrorCode.NONE:
                name = names[topic_id]
        responses.append(
            DeleteTopicsResponse.DeletableTopicResult(
                # Null is legal from version 6 on, where alone a topic can be asked for by id.
                name=name,
                topic_id=topic_id,
                error_code=item.error,
                error_message=item.message or None,
            )
        )
    return ControllerAnswer(DeleteTopicsResponse(responses=responses), decided.index)


_UNKNOWN_NAME = Item(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
)
_NO_ID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class _Deletion:
    name: str | None
    topic_id: UUID


def _deletions(request: DeleteTopicsRequest) -> list[_Deletion]:
    if request.topics:
        return [_Deletion(topic.name, topic.topic_id) for topic in request.topics]
    return [_Deletion(name, _NO_ID) for name in request.topic_names]


def _check_deletion(office: Office, entry: _Deletion, wanted: list[_Deletion]) -> UUID | Item:
    if entry.name is not None and entry.topic_id != _NO_ID:
        return Item(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if entry.name is None and entry.topic_id == _NO_ID:
        return Item(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    enabled = office.settings.default_configs.get("delete.topic.enable", "true")
    if enabled.strip().lower() == "false":
        return Item(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    topic_id = entry.topic_id
    if entry.name is not None:
        topic = office.image.topics.get(entry.name)
        if topic is None:
            return _UNKNOWN_NAME
        topic_id = topic.topic_id
    twice = [
        other
        for other in wanted
        if other == entry
        or other.topic_id == topic_id
        or (other.name is not None and other.name == office.image.topic_names.get(topic_id))
    ]
    if len(twice) > 1:
        kind = "name" if entry.name is not None else "id"
        return Item(ErrorCode.INVALID_REQUEST, f"Duplicate topic {kind}.")
    return topic_id
