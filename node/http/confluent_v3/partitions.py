"""v3: partitions, their replicas, offsets and reassignments, from this node's image."""

from __future__ import annotations

from aiohttp import web

from ....metadata.image import NO_LEADER, PartitionImage, TopicImage
from ..errors import ApiError
from ..keys import LEADERS
from ..partition_ends import EARLIEST, LATEST, offset_at
from ..views import partition_count
from .resources import Document, Resources, answer, listed, number_in_path

_OFFSET_TYPES = {"earliest": EARLIEST, "latest": LATEST}


async def list_partitions(request: web.Request) -> web.Response:
    resources = Resources(request)
    topic = resources.topic(request)
    return await listed(
        resources,
        "KafkaPartitionList",
        ["topics", topic.name, "partitions"],
        len(topic.partitions),
        lambda: [_partition(resources, topic, partition) for partition in topic.partitions],
    )


async def describe_partition(request: web.Request) -> web.Response:
    resources = Resources(request)
    topic = resources.topic(request)
    number = resources.partition(request, topic)
    return answer(_partition(resources, topic, topic.partitions[number]))


async def partition_offset(request: web.Request) -> web.Response:
    """`?offset_type=earliest` or `latest`: what consumers may read from, or up to."""
    resources = Resources(request)
    topic = resources.topic(request)
    number = resources.partition(request, topic)
    kind = request.query.get("offset_type", "latest").lower()
    if kind not in _OFFSET_TYPES:
        raise ApiError(400, f"offset_type is {kind[:40]!r}; it takes earliest or latest")
    place = (topic.name, number)
    offset = await offset_at(resources.node, request.app[LEADERS], place, _OFFSET_TYPES[kind])
    return answer(
        resources.resource(
            "KafkaPartitionOffset",
            ["topics", topic.name, "partitions", number, "offset"],
            [f"topic={topic.name}", f"partition={number}", f"offset={kind}"],
            topic_name=topic.name,
            partition_id=number,
            offset_type=kind,
            offset=offset,
        )
    )


async def list_replicas(request: web.Request) -> web.Response:
    resources = Resources(request)
    topic = resources.topic(request)
    partition = topic.partitions[resources.partition(request, topic)]
    data = [_replica(resources, topic, partition, broker) for broker in partition.replicas]
    own = ["topics", topic.name, "partitions", partition.partition, "replicas"]
    return answer(resources.collection("KafkaReplicaList", own, data))


async def describe_replica(request: web.Request) -> web.Response:
    resources = Resources(request)
    topic = resources.topic(request)
    partition = topic.partitions[resources.partition(request, topic)]
    broker = number_in_path(request.match_info["broker"], "broker")
    if broker not in partition.replicas:
        raise ApiError(404, f"{topic.name}-{partition.partition} has no replica on broker {broker}")
    return answer(_replica(resources, topic, partition, broker))


async def list_replicas_of_broker(request: web.Request) -> web.Response:
    resources = Resources(request)
    broker = resources.broker(request)
    topics = resources.image.topics
    return await listed(
        resources,
        "KafkaReplicaList",
        ["brokers", broker, "partition-replicas"],
        partition_count(resources.image),
        lambda: [
            _replica(resources, topics[name], partition, broker)
            for name in sorted(topics)
            for partition in topics[name].partitions
            if broker in partition.replicas
        ],
    )


async def list_all_reassignments(request: web.Request) -> web.Response:
    resources = Resources(request)
    topics = [topic for _, topic in sorted(resources.image.topics.items())]
    return await _reassignments(resources, "-", topics)


async def list_reassignments(request: web.Request) -> web.Response:
    resources = Resources(request)
    topic = resources.topic(request)
    return await _reassignments(resources, topic.name, [topic])


async def describe_reassignment(request: web.Request) -> web.Response:
    resources = Resources(request)
    topic = resources.topic(request)
    partition = topic.partitions[resources.partition(request, topic)]
    if not _moves(partition):
        raise ApiError(404, f"{topic.name}-{partition.partition} is not being reassigned")
    return answer(_reassignment(resources, topic, partition))


async def _reassignments(resources: Resources, name: str, topics: list[TopicImage]) -> web.Response:
    return await listed(
        resources,
        "KafkaReassignmentList",
        ["topics", name, "partitions", "-", "reassignment"],
        sum(len(topic.partitions) for topic in topics),
        lambda: [
            _reassignment(resources, topic, partition)
            for topic in topics
            for partition in topic.partitions
            if _moves(partition)
        ],
    )


def _moves(partition: PartitionImage) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _partition(resources: Resources, topic: TopicImage, partition: PartitionImage) -> Document:
    own = ["topics", topic.name, "partitions", partition.partition]
    leader = {}
    if partition.leader != NO_LEADER:
        leader = {"leader": resources.link(*own, "replicas", partition.leader)}
    return resources.resource(
        "KafkaPartition",
        own,
        [f"topic={topic.name}", f"partition={partition.partition}"],
        topic_name=topic.name,
        partition_id=partition.partition,
        **leader,
        replicas=resources.link(*own, "replicas"),
        reassignment=resources.link(*own, "reassignment"),
    )


def _replica(
    resources: Resources, topic: TopicImage, partition: PartitionImage, broker: int
) -> Document:
    return resources.resource(
        "KafkaReplica",
        ["topics", topic.name, "partitions", partition.partition, "replicas", broker],
        [f"topic={topic.name}", f"partition={partition.partition}", f"replica={broker}"],
        topic_name=topic.name,
        partition_id=partition.partition,
        broker_id=broker,
        is_leader=broker == partition.leader,
        is_in_sync=broker in partition.isr,
        broker=resources.link("brokers", broker),
    )


def _reassignment(resources: Resources, topic: TopicImage, partition: PartitionImage) -> Document:
    own = ["topics", topic.name, "partitions", partition.partition]
    return resources.resource(
        "KafkaReassignment",
        [*own, "reassignment"],
        [f"topic={topic.name}", f"partition={partition.partition}", "reassignment"],
        topic_name=topic.name,
        partition_id=partition.partition,
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
        replicas=resources.link(*own, "replicas"),
    )
