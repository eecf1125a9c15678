"""GET /metrics: this node, in Prometheus' text format.

Names are those that Strimzi's rules give Kafka's own metrics, so that its dashboards and alerts
work as they are; what Kafka lacks is called `logboat_`. Each node tells of itself: under-replicated
partitions are told by their leader, offline ones by the active controller, so sums over the
nodes are right. What is counted grows from the start of the process; a topic's series end with it.
Records that HTTP writes and reads are counted as all others are.

prometheus_client takes as long to load as a whole node; the first scrape pays for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from aiohttp import web

from ...metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from ...partitions import ReplicationCounters, TopicTraffic
from ...raftlog import RaftStatus, Role
from ...seam import frozen, offload
from ..loop_lag import LagSummary
from . import query
from .keys import NODE, REQUESTS
from .ports import NodeCounters

if TYPE_CHECKING:
    from prometheus_client import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
NOBODY = -1


@frozen
class NodeFigures:
    """One look at a node; immutable, so that it can be worked on away from the loop."""

    node_id: int
    image: ClusterImage
    quorum: RaftStatus
    loop_lag: LagSummary
    counters: NodeCounters
    http_requests: Mapping[tuple[str, int], int]


async def metrics(request: web.Request) -> web.Response:
    query.refuse_unknown(request.query)
    node = request.app[NODE]
    answered = request.app[REQUESTS]
    figures = NodeFigures(
        node.node_id,
        node.image(),
        node.quorum_status(),
        node.loop_lag(),
        node.counters(),
        MappingProxyType(dict(answered)),
    )
    text = await offload(lambda: exposition(figures))
    return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})


def exposition(figures: NodeFigures) -> bytes:
    """The page. Slow with many partitions: not for the loop (F1)."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.process_collector import ProcessCollector
    from prometheus_client.registry import Collector

    class Families(Collector):
        def collect(self) -> Iterator[Metric]:
            return _families(figures)

    registry = CollectorRegistry()
    registry.register(Families())
    ProcessCollector(registry=registry)
    return generate_latest(registry)


def _families(figures: NodeFigures) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    for name, help_text, value in _gauges(figures):
        yield GaugeMetricFamily(name, help_text, value)
    state = GaugeMetricFamily(
        "kafka_server_raftmetrics_current_state",
        "Role in the quorum, as a label",
        labels=["current_state"],
    )
    state.add_metric([figures.quorum.role.value], 1)
    yield state
    lag = figures.loop_lag
    quantiles = GaugeMetricFamily(
        "logboat_loop_lag_seconds",
        "How late the loop came to what was due, last 4 to 5 minutes",
        labels=["quantile"],
    )
    for quantile, seconds in (("0.5", lag.p50_s), ("0.99", lag.p99_s), ("0.999", lag.p999_s)):
        quantiles.add_metric([quantile], seconds)
    yield quantiles
    yield from _traffic(figures.counters.traffic)
    yield from _requests(figures)
    for name, help_text, count in _counts(figures.counters.replication):
        yield CounterMetricFamily(name, help_text, count)


def _traffic(topics: Sequence[TopicTraffic]) -> Iterator[Metric]:
    """By topic and all together; between the nodes only all together, as Kafka does."""
    from prometheus_client.core import CounterMetricFamily
    from prometheus_client.samples import Sample

    metrics = "kafka_server_brokertopicmetrics_"
    counts: tuple[tuple[str, str, Callable[[TopicTraffic], int]], ...] = (
        ("messagesin", "Records written to leaders here", lambda topic: topic.messages_in),
        ("bytesin", "Bytes of batches written to leaders here", lambda topic: topic.bytes_in),
        ("bytesout", "Bytes of batches read by consumers", lambda topic: topic.bytes_out),
        ("totalproducerequests", "Partitions in produce requests", lambda topic: topic.produces),
        ("failedproducerequests", "Of these: failed", lambda topic: topic.failed_produces),
        ("totalfetchrequests", "Partitions in fetch requests", lambda topic: topic.fetches),
        ("failedfetchrequests", "Of these: failed", lambda topic: topic.failed_fetches),
    )
    for name, help_text, count_of in counts:
        family = CounterMetricFamily(metrics + name, help_text, labels=["topic"])
        for topic in topics:
            family.add_metric([topic.topic], count_of(topic))
        # Kafka tells the sum beside its parts; dashboards ask for topic!="" or topic="".
        whole = Sample(f"{metrics}{name}_total", {}, sum(map(count_of, topics)))
        family.samples.append(whole)
        yield family
    copied = sum(topic.replicated_in for topic in topics)
    yield CounterMetricFamily(
        metrics + "replicationbytesin", "Bytes copied from leaders elsewhere", copied
    )
    read = sum(topic.replicated_out for topic in topics)
    yield CounterMetricFamily(
        metrics + "replicationbytesout", "Bytes read by followers elsewhere", read
    )


def _requests(figures: NodeFigures) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily

    kafka = CounterMetricFamily(
        "kafka_network_requestmetrics_requests",
        "Requests of clients and other nodes",
        labels=["request"],
    )
    for api, count in sorted(figures.counters.requests.items()):
        kafka.add_metric([kafka_name(api)], count)
    yield kafka
    http = CounterMetricFamily(
        "logboat_http_requests", "Answered to the end", labels=["method", "code"]
    )
    for (method, status), count in sorted(figures.http_requests.items()):
        http.add_metric([method, str(status)], count)
    yield http


def kafka_name(api: str) -> str:
    """LIST_OFFSETS is ListOffsets, as Kafka names its requests."""
    return "".join(word.capitalize() for word in api.split("_"))


def _counts(counters: ReplicationCounters) -> Iterator[tuple[str, str, int]]:
    manager = "kafka_server_replicamanager_"
    yield manager + "isrshrinks", "ISR changes proposed here: smaller ones", counters.isr_shrinks
    yield manager + "isrexpands", "ISR changes proposed here: larger ones", counters.isr_expands
    yield "logboat_leader_changes", "Leaderships taken up here", counters.leader_changes
    yield "logboat_truncations", "Logs cut by a leader's lineage", counters.truncations
    yield (
        "logboat_committed_records_cut",
        "Of these: below the watermark, after unclean elections",
        counters.committed_records_cut,
    )
    yield (
        "logboat_replicas_that_lost_data",
        "Followers found to have lost what they confirmed",
        counters.replicas_that_lost_data,
    )
    yield (
        "logboat_scrubbed_bytes",
        "Old data read to see whether it is whole",
        (counters.scrubbed_bytes),
    )
    yield "logboat_scrubbed_logs", "Logs read to their end for that", counters.scrubbed_logs
    yield "logboat_damage_scrubbed", "Logs found damaged by that", counters.damage_scrubbed
    yield (
        "logboat_lost_group_records",
        "Records of consumer groups that coordinators here found lost for good when they loaded",
        counters.lost_group_records,
    )


def _gauges(figures: NodeFigures) -> Iterator[tuple[str, str, float]]:
    """(name, help, value) of all that needs no label."""
    quorum, node_id = figures.quorum, figures.node_id
    raft = "kafka_server_raftmetrics_"
    leader = NOBODY if quorum.leader_id is None else quorum.leader_id
    yield raft + "current_leader", "Leader of the quorum, -1 when none is known", leader
    yield raft + "current_epoch", "Term of the quorum", quorum.term
    # Half-open, as Kafka's offsets.
    yield raft + "high_watermark", "End of what the quorum has committed", quorum.commit_index + 1
    yield raft + "log_end_offset", "End of this node's metadata log", quorum.last_index + 1

    hosted = [
        (topic, partition)
        for topic in figures.image.topics.values()
        for partition in topic.partitions
        if node_id in partition.replicas
    ]
    led = [(topic, partition) for topic, partition in hosted if partition.leader == node_id]
    manager = "kafka_server_replicamanager_"
    yield manager + "partitioncount", "Replicas placed on this node", len(hosted)
    yield manager + "leadercount", "Partitions led by this node", len(led)
    yield (
        manager + "underreplicatedpartitions",
        "Of those led here: with replicas out of sync",
        sum(len(partition.isr) < len(partition.replicas) for _, partition in led),
    )
    yield (
        manager + "underminisrpartitioncount",
        "Of those led here: with fewer in sync than min.insync.replicas",
        sum(_under_min_isr(topic, partition) for topic, partition in led),
    )

    active = quorum.role is Role.LEADER and figures.image.controller_id == node_id
    controller = "kafka_controller_kafkacontroller_"
    yield controller + "activecontrollercount", "1 on the active controller", int(active)
    yield (
        controller + "offlinepartitionscount",
        "Partitions without a leader; told by the active controller",
        _leaderless(figures.image) if active else 0,
    )
    lag = figures.loop_lag
    yield "logboat_loop_lag_max_seconds", "Largest lag, last 4 to 5 minutes", lag.largest_s
    yield "logboat_loop_lag_samples", "Measurements in these minutes", lag.samples


def _under_min_isr(topic: TopicImage, partition: PartitionImage) -> bool:
    return len(partition.isr) < min(topic.min_insync_replicas, len(partition.replicas))


def _leaderless(image: ClusterImage) -> int:
    return sum(
        partition.leader == NO_LEADER
        for topic in image.topics.values()
        for partition in topic.partitions
    )
