"""CreateTopics (19)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from uuid import UUID

from ...wire import ZERO_UUID, ErrorCode
from ...wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ..apply import apply_in_steps
from ..broker_configs import BROKER_CONFIGS
from ..commands import CreateTopics, NewTopic, Origin
from ..config_definition import InvalidConfig
from ..placement import PlacementError, check_assignment, place_replicas
from ..results import Item, Result
from ..steps import Steps, beside_the_loop
from ..topic_configs import (
    effective_topic_configs,
    resolve_topic,
    validate_topic_configs,
    with_fixed_mode,
)
from ..topic_names import why_invalid
from .answer import ControllerAnswer
from .office import NOT_IN_FIRST_ATTEMPT, Decided, Office

MAX_PARTITIONS_PER_REQUEST = 10_000
"""Kafka's bound (KAFKA-17642): one command stays small enough for the log and the loop."""

SETTINGS = 20
"""Work of looking at one topic's settings, in the units of `Steps`."""

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
    verdicts = await beside_the_loop(_plan_all(office, request))
    planned = tuple(verdict for verdict in verdicts if isinstance(verdict, NewTopic))
    decided = await _decide(office, planned, origin, request.validate_only, deadline)
    topics = await beside_the_loop(_answers(office, request, verdicts, decided))
    return ControllerAnswer(CreateTopicsResponse(topics=topics), decided.index)


def _answers(
    office: Office,
    request: CreateTopicsRequest,
    verdicts: Sequence[NewTopic | Item],
    decided: Decided,
) -> Steps[list[Created]]:
    # A repeated request (A5) is decided as it was the first time, whatever is planned now.
    by_name = {item.topic: item for item in decided.result.items}
    results: dict[str, Created] = {}
    for topic, verdict in zip(request.topics, verdicts, strict=True):
        new = verdict if isinstance(verdict, NewTopic) else None
        if decided.result.refused and (new is not None or not office.active):
            item = Item(decided.result.error, decided.result.message)
        elif topic.name in by_name:
            item = by_name[topic.name]
        else:
            item = verdict if isinstance(verdict, Item) else NOT_IN_FIRST_ATTEMPT
        # A name given twice is answered once.
        results[topic.name] = (
            _success(office, topic.name, item, new)
            if item.error == ErrorCode.NONE
            else _failure(topic.name, item)
        )
        yield SETTINGS
    return list(results.values())


def _plan_all(office: Office, request: CreateTopicsRequest) -> Steps[list[NewTopic | Item]]:
    names = Counter(topic.name for topic in request.topics)
    verdicts: list[NewTopic | Item] = []
    partitions = 0
    for topic in request.topics:
        try:
            if names[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            new = yield from _plan(office, topic)
            partitions += len(new.assignments)
            if partitions > MAX_PARTITIONS_PER_REQUEST:
                raise Refused(
                    ErrorCode.POLICY_VIOLATION,
                    f"Excessively large number of partitions per request: more than "
                    f"{MAX_PARTITIONS_PER_REQUEST}.",
                )
            verdicts.append(new)
        except Refused as refused:
            verdicts.append(refused.item)
    return verdicts


async def _decide(
    office: Office,
    planned: tuple[NewTopic, ...],
    origin: Origin | None,
    validate_only: bool,
    deadline: float,
) -> Decided:
    if office.epoch is not None and validate_only:
        command = CreateTopics(office.epoch, planned, None)
        image = office.image
        _, result = await beside_the_loop(apply_in_steps(image, image.index, command))
        return Decided(result, image.index)
    if office.active and not planned and origin is None:
        return Decided(Result(), 0)
    return await office.propose(lambda epoch: CreateTopics(epoch, planned, origin), deadline)


def _plan(office: Office, topic: Creatable) -> Steps[NewTopic]:
    """Everything about the new topic that the command carries. Raises Refused."""
    yield SETTINGS
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
    topic_id = random_topic_id(office.rng)
    if topic.assignments:
        assignments = _manual(office, topic)
    else:
        assignments = yield from _automatic(office, topic)
    return NewTopic(
        name=topic.name,
        topic_id=topic_id,
        assignments=assignments,
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


def _automatic(office: Office, topic: Creatable) -> Steps[tuple[tuple[int, ...], ...]]:
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
        return (
            yield from place_replicas(
                office.image.brokers,
                partitions=partitions,
                replication_factor=factor,
                rng=office.rng,
            )
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


def _success(office: Office, name: str, item: Item, new: NewTopic | None) -> Created:
    """With the settings in force, as DescribeConfigs would tell them."""
    topic_id = item.topic_id or ZERO_UUID
    topic = office.image.topic_by_id(topic_id)
    if topic is not None:
        configs, partitions = topic.configs, len(topic.partitions)
        replication_factor = len(topic.partitions[0].replicas)
    elif new is not None:
        # Only looked at (`validate_only`), or deleted again already.
        configs, partitions = new.configs, len(new.assignments)
        replication_factor = len(new.assignments[0])
    else:
        return Created(name=name, topic_id=topic_id, configs=None)
    effective = effective_topic_configs(configs, office.broker_settings())
    return Created(
        name=name,
        topic_id=topic_id,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[
            CreateTopicsResponse.CreatableTopicConfigs(
                name=setting_name, value=setting.value, config_source=setting.source
            )
            for setting_name, setting in effective.items()
        ],
    )


def _failure(name: str, item: Item) -> Created:
    return Created(
        name=name, error_code=item.error, error_message=item.message or None, configs=None
    )


def random_topic_id(rng: Random) -> UUID:
    """Version 4, never one of Kafka's two reserved ids; `rng` decides, so a seed replays it."""
    return UUID(int=rng.getrandbits(128), version=4)
