"""GET /metrics: this node, in Prometheus' text format.

Names are those that Strimzi's rules give Kafka's own metrics, so that its dashboards and alerts
work as they are; what Kafka lacks is called `logboat_`. Each node tells of itself: under-replicated
partitions are told by their leader, offline ones by the active controller, so sums over the
nodes are right. Nothing is counted on the way of a record for this yet: no messages or bytes.

prometheus_client takes as long to load as a whole node; the first scrape pays for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aiohttp import web

from ...metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from ...raftlog import RaftStatus, Role
from ...seam import frozen, offload
from ..loop_lag import LagSummary
from . import query
from .keys import NODE

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


async def metrics(request: web.Request) -> web.Response:
    query.refuse_unknown(request.query)
    node = request.app[NODE]
    figures = NodeFigures(node.node_id, node.image(), node.quorum_status(), node.loop_lag())
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
    from prometheus_client.core import GaugeMetricFamily

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
