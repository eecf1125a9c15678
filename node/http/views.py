"""The cluster and its topics as JSON documents, made from the image alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...metadata.image import NO_LEADER, BrokerImage, ClusterImage, PartitionImage, TopicImage
from .ports import LocalReplica

MAX_LISTED_PARTITIONS = 128
"""Of each kind in the overview; the counts beside the lists are exact."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


def cluster_overview(image: ClusterImage, *, node_id: int, role: str) -> dict[str, Any]:
    """How the cluster is, in one answer, as `node_id` sees it now."""
    down = [broker.node_id for broker in _brokers(image) if broker.fenced]
    leaderless = [
        _named(topic, partition)
        for topic, partition in _partitions(image)
        if partition.leader == NO_LEADER
    ]
    under_replicated = [
        _named(topic, partition)
        for topic, partition in _partitions(image)
        if len(partition.isr) < len(partition.replicas)
    ]
    controller = image.brokers.get(image.controller_id)
    reasons = []
    if controller is None or controller.fenced:
        reasons.append("no active controller")
    if down:
        reasons.append("nodes down: " + ", ".join(map(str, down)))
    if leaderless:
        reasons.append(f"{len(leaderless)} partitions without a leader")
    if under_replicated:
        reasons.append(f"{len(under_replicated)} partitions with fewer replicas than they should")
    return {
        "is_healthy": not reasons,
        "unhealthy_reasons": reasons,
        "cluster_id": image.cluster_id,
        "controller_id": image.controller_id,
        "node_id": node_id,
        "role": role,
        "metadata_index": image.index,
        "nodes": [_node(broker) for broker in _brokers(image)],
        "nodes_down": down,
        "leaderless_partitions": leaderless[:MAX_LISTED_PARTITIONS],
        "leaderless_count": len(leaderless),
        "under_replicated_partitions": under_replicated[:MAX_LISTED_PARTITIONS],
        "under_replicated_count": len(under_replicated),
        "topic_count": len(image.topics),
        "partition_count": partition_count(image),
    }


def partition_count(image: ClusterImage) -> int:
    return sum(len(topic.partitions) for topic in image.topics.values())


def topic_list(image: ClusterImage) -> dict[str, Any]:
    return {"topics": [_topic_summary(image.topics[name]) for name in sorted(image.topics)]}


def topic_document(
    topic: TopicImage, local_replica: Callable[[str, int], LocalReplica | None]
) -> dict[str, Any]:
    """One topic whole; offsets only of partitions that the answering node holds."""
    return {
        **_topic_summary(topic),
        "min_insync_replicas": topic.min_insync_replicas,
        "configs": dict(sorted(topic.configs.items())),
        "partitions": [
            _partition(partition, local_replica(topic.name, partition.partition))
            for partition in topic.partitions
        ],
    }


def _topic_summary(topic: TopicImage) -> dict[str, Any]:
    return {
        "name": topic.name,
        "topic_id": str(topic.topic_id),
        "internal": topic.name in INTERNAL_TOPICS,
        "partition_count": len(topic.partitions),
        "replication_factor": len(topic.partitions[0].replicas) if topic.partitions else 0,
        "under_replicated_count": sum(
            len(partition.isr) < len(partition.replicas) for partition in topic.partitions
        ),
    }


def _partition(partition: PartitionImage, local: LocalReplica | None) -> dict[str, Any]:
    return {
        "partition": partition.partition,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "elr": list(partition.elr),
        "local": None
        if local is None
        else {
            "role": local.role,
            "high_watermark": local.high_watermark,
            "log_start_offset": local.log_start_offset,
            "log_end_offset": local.log_end_offset,
        },
    }


def _node(broker: BrokerImage) -> dict[str, Any]:
    return {
        "id": broker.node_id,
        "state": _broker_state(broker),
        "broker_epoch": broker.broker_epoch,
        "kafka": str(broker.kafka),
        "http": None if broker.http is None else str(broker.http),
        "rack": broker.rack,
    }


def _broker_state(broker: BrokerImage) -> str:
    if broker.fenced:
        return "fenced"
    return "shutting_down" if broker.in_controlled_shutdown else "active"


def _brokers(image: ClusterImage) -> Iterator[BrokerImage]:
    for node_id in sorted(image.brokers):
        yield image.brokers[node_id]


def _partitions(image: ClusterImage) -> Iterator[tuple[TopicImage, PartitionImage]]:
    for name in sorted(image.topics):
        topic = image.topics[name]
        for partition in topic.partitions:
            yield topic, partition


def _named(topic: TopicImage, partition: PartitionImage) -> str:
    return f"{topic.name}/{partition.partition}"
