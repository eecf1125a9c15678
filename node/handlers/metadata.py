"""API key 3: Metadata, versions 0-13.

v0 takes an empty list as all topics, v1 null; v1 adds rack and controller, v2 the cluster id, v4
whether missing topics are made, v5 offline replicas, v7 leader epochs, v8-v10 authorized
operations, v10 topic ids, v12 asking by id alone, v13 an error for the whole answer (KIP-1102).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from uuid import UUID

from ...groups import OFFSETS_TOPIC
from ...metadata.image import ClusterImage, PartitionImage, TopicImage
from ...metadata.topic_names import why_invalid
from ...seam import with_pauses
from ...wire import ZERO_UUID, ErrorCode, Steps
from ...wire.messages.metadata import MetadataRequest, MetadataResponse
from ..served import Call
from ..services import Services
from .authorized_operations import CLUSTER, NOT_ASKED, TOPIC

Topic = MetadataResponse.MetadataResponseTopic
Partition = Topic.MetadataResponsePartition
Asked = MetadataRequest.MetadataRequestTopic

INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, "__transaction_state", "__share_group_state"})

CREATION_WAIT_S = 2.0
"""The request bears no time limit: how long an answer waits for the topics it causes."""


TOLD_AT_ONCE = 250
"""Topics and partitions, in one turn of the loop (RULES F1)."""


def handle(
    services: Services, request: MetadataRequest, call: Call
) -> MetadataResponse | Awaitable[MetadataResponse]:
    missing = _to_create(services, request)
    if missing:
        return _create_and_describe(services, request, call, missing)
    steps = _describe(services, request, call, {})
    try:
        next(steps)
    except StopIteration as end:
        response: MetadataResponse = end.value
        return response
    return with_pauses(steps)


async def _create_and_describe(
    services: Services, request: MetadataRequest, call: Call, missing: list[str]
) -> MetadataResponse:
    deadline = asyncio.get_running_loop().time() + CREATION_WAIT_S
    verdicts = await services.topic_creation.create(missing, deadline)
    await services.new_logs_open(deadline)
    return await with_pauses(_describe(services, request, call, verdicts))


def _to_create(services: Services, request: MetadataRequest) -> list[str]:
    config = services.config
    if not request.topics or not request.allow_auto_topic_creation:
        return []
    if not config.flag("auto.create.topics.enable"):
        return []
    topics = services.image.topics
    return [
        asked.name
        for asked in request.topics
        if asked.name is not None
        and asked.topic_id == ZERO_UUID
        and asked.name not in topics
        and why_invalid(asked.name) is None
    ]


def _describe(
    services: Services, request: MetadataRequest, call: Call, verdicts: dict[str, ErrorCode]
) -> Steps[MetadataResponse]:
    """All of one image, that of the beginning."""
    image = services.image
    response = _about_the_cluster(services, image, request)
    wants_all = request.topics is None or (call.version == 0 and not request.topics)
    if wants_all:
        answers = (_described(image, image.topics[name]) for name in sorted(image.topics))
    else:
        answers = (_answer(image, asked, verdicts) for asked in request.topics or ())
    told = 0
    for topic, partitions in answers:
        if request.include_topic_authorized_operations:
            topic.topic_authorized_operations = TOPIC
        response.topics.append(topic)
        told += 1
        if told % TOLD_AT_ONCE == 0:
            yield
        for partition in partitions:
            topic.partitions.append(partition)
            told += 1
            if told % TOLD_AT_ONCE == 0:
                yield
    return response


def _about_the_cluster(
    services: Services, image: ClusterImage, request: MetadataRequest
) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(
                node_id=broker.node_id,
                host=broker.kafka.host,
                port=broker.kafka.port,
                rack=broker.rack,
            )
            for broker in services.known_brokers.named(image)
        ],
        cluster_id=image.cluster_id,
        controller_id=services.controller_id_for_clients(),
        cluster_authorized_operations=CLUSTER
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _answer(
    image: ClusterImage, asked: Asked, verdicts: dict[str, ErrorCode]
) -> tuple[Topic, Iterator[Partition]]:
    if asked.topic_id != ZERO_UUID:
        by_id = image.topic_by_id(asked.topic_id)
        if by_id is not None:
            return _described(image, by_id)
        # Versions before 12 cannot say null.
        return _refused(ErrorCode.UNKNOWN_TOPIC_ID, asked.name, asked.topic_id)
    if asked.name is None:
        return _refused(ErrorCode.INVALID_REQUEST, "")
    topic = image.topics.get(asked.name)
    if topic is not None:
        return _described(image, topic)
    if why_invalid(asked.name) is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    else:
        error = verdicts.get(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if error == ErrorCode.NONE:
            # Created and, between that and now, deleted.
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return _refused(error, asked.name)


def _refused(
    error: ErrorCode, name: str | None, topic_id: UUID = ZERO_UUID
) -> tuple[Topic, Iterator[Partition]]:
    topic = Topic(
        error_code=error, name=name, topic_id=topic_id, is_internal=name in INTERNAL_TOPICS
    )
    return topic, iter(())


def _described(image: ClusterImage, topic: TopicImage) -> tuple[Topic, Iterator[Partition]]:
    """The topic, and what is to be said of its partitions."""
    described = Topic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
    )
    return described, (_partition(image, partition) for partition in topic.partitions)


def _partition(image: ClusterImage, partition: PartitionImage) -> Partition:
    brokers = image.brokers
    leader = brokers.get(partition.leader)
    led = leader is not None and not leader.fenced
    return Partition(
        error_code=ErrorCode.NONE if led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.partition,
        leader_id=partition.leader if led else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=[
            replica
            for replica in partition.replicas
            if (broker := brokers.get(replica)) is None or broker.fenced
        ],
    )
