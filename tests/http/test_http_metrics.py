"""GET /metrics, read back by Prometheus' own parser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aiohttp.test_utils import TestClient
from prometheus_client.parser import text_string_to_metric_families

from logboat.metadata.image import NO_LEADER
from logboat.node.http.ports import NodeCounters
from logboat.partitions import ReplicationCounters, TopicTraffic
from logboat.raftlog import Role
from tests.http.fake_http_node import FakeNode, topic

Http = TestClient[Any, Any]
Samples = dict[tuple[str, str], float]

RAFT = "kafka_server_raftmetrics_"
TOPICS = "kafka_server_brokertopicmetrics_"
MANAGER = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"


async def scrape(http: Http) -> Samples:
    """Values by name and the values of the labels, in the order of the labels' names."""
    response = await http.get("/metrics")
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, "".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(await response.text())
        for sample in family.samples
    }


async def test_the_quorum_is_told_in_half_open_offsets(http: Http) -> None:
    samples = await scrape(http)
    assert samples[RAFT + "current_leader", ""] == 1
    assert samples[RAFT + "current_epoch", ""] == 4
    assert samples[RAFT + "high_watermark", ""] == 90
    assert samples[RAFT + "log_end_offset", ""] == 95
    assert samples[RAFT + "current_state", "leader"] == 1


async def test_loop_lag_and_the_process_are_told(http: Http) -> None:
    samples = await scrape(http)
    assert samples["logboat_loop_lag_seconds", "0.999"] == 0.05
    assert samples["logboat_loop_lag_max_seconds", ""] == 0.07
    assert samples["process_cpu_seconds_total", ""] > 0


async def test_a_node_counts_what_it_leads_and_the_controller_what_nobody_leads(
    http: Http, node: FakeNode
) -> None:
    thin = topic("thin", leaders=[1, NO_LEADER])
    alone = replace(thin.partitions[0], isr=(1,))
    node.add(replace(thin, partitions=(alone, *thin.partitions[1:])))
    samples = await scrape(http)
    assert samples[MANAGER + "partitioncount", ""] == 5
    assert samples[MANAGER + "leadercount", ""] == 2
    assert samples[MANAGER + "underreplicatedpartitions", ""] == 1
    assert samples[MANAGER + "underminisrpartitioncount", ""] == 1
    assert samples[CONTROLLER + "activecontrollercount", ""] == 1
    assert samples[CONTROLLER + "offlinepartitionscount", ""] == 1


async def test_traffic_is_told_by_topic_and_all_together(http: Http, node: FakeNode) -> None:
    one = TopicTraffic("orders", 5, 500, 300, 40, 4, 3, 1, 20, 2)
    other = replace(one, topic="clicks", messages_in=2, failed_fetches=0)
    node.counted = NodeCounters((other, one), ReplicationCounters(isr_shrinks=7), {})
    samples = await scrape(http)
    assert samples[TOPICS + "messagesin_total", "orders"] == 5
    assert samples[TOPICS + "messagesin_total", "clicks"] == 2
    assert samples[TOPICS + "messagesin_total", ""] == 7
    assert samples[TOPICS + "bytesin_total", ""] == 1_000
    assert samples[TOPICS + "bytesout_total", "orders"] == 300
    assert samples[TOPICS + "replicationbytesin_total", ""] == 80
    assert samples[TOPICS + "replicationbytesout_total", ""] == 8
    assert samples[TOPICS + "totalproducerequests_total", "orders"] == 3
    assert samples[TOPICS + "failedproducerequests_total", "orders"] == 1
    assert samples[TOPICS + "totalfetchrequests_total", ""] == 40
    assert samples[TOPICS + "failedfetchrequests_total", ""] == 2
    assert samples[MANAGER + "isrshrinks_total", ""] == 7


async def test_requests_are_counted_those_of_http_by_method_and_status(
    http: Http, node: FakeNode
) -> None:
    requests = {"LIST_OFFSETS": 3, "PRODUCE": 8}
    node.counted = NodeCounters((), ReplicationCounters(), requests)
    assert (await http.get("/api/v1/topics")).status == 200
    assert (await http.get("/api/v1/topics/nosuch")).status == 404
    assert (await http.request("PROPFIND", "/api/v1/topics")).status == 405
    samples = await scrape(http)
    assert samples["kafka_network_requestmetrics_requests_total", "ListOffsets"] == 3
    assert samples["kafka_network_requestmetrics_requests_total", "Produce"] == 8
    assert samples["logboat_http_requests_total", "200GET"] == 1
    assert samples["logboat_http_requests_total", "404GET"] == 1
    assert samples["logboat_http_requests_total", "405other"] == 1


async def test_only_the_active_controller_counts_offline_partitions(
    http: Http, node: FakeNode
) -> None:
    node.add(topic("orphans", leaders=[NO_LEADER]))
    node.quorum = replace(node.quorum, role=Role.FOLLOWER, leader_id=None)
    samples = await scrape(http)
    assert samples[RAFT + "current_leader", ""] == -1
    assert samples[CONTROLLER + "activecontrollercount", ""] == 0
    assert samples[CONTROLLER + "offlinepartitionscount", ""] == 0
