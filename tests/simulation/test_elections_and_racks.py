"""Elections by request and reads in the consumer's rack, with whole nodes (KIP-183, 460, 392)."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from logboat.jepsen_style.simulation import World
from logboat.jepsen_style.simulation.cluster import SECRET, Cluster
from logboat.jepsen_style.simulation.kafka_client import KafkaClient, Partition
from logboat.node.config import NodeConfig
from logboat.wire import ApiKey, ErrorCode
from logboat.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from logboat.wire.messages.fetch import FetchRequest, FetchResponse

TOPIC = "elected"
PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=31) as world:
        yield world


class RackedCluster(Cluster):
    """Node n stands in rack n."""

    def config(self, number: int) -> NodeConfig:
        given = {**super().config(number).given, "broker.rack": f"rack-{number}"}
        return NodeConfig.of(given, secret=SECRET)


def seen(cluster: Cluster) -> Partition:
    return cluster.run(lambda client: client.partitions(TOPIC))[0]


def await_state(cluster: Cluster, world: World, reached: Callable[[Partition], bool]) -> Partition:
    end = world.now + 20
    while not reached(partition := seen(cluster)):
        assert world.now < end, f"still {partition}"
        world.run(0.1)
    return partition


def elect(cluster: Cluster, kind: int) -> ErrorCode:
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=[ElectLeadersRequest.TopicPartitions(topic=TOPIC, partitions=[0])],
        timeout_ms=2_000,
    )
    response = cluster.run(
        lambda client: client.any_node(ApiKey.ELECT_LEADERS, 2, request, ElectLeadersResponse)
    )
    assert response.error_code == ErrorCode.NONE
    return ErrorCode(response.replica_election_results[0].partition_result[0].error_code)


def test_d8_leaders_are_elected_by_request_the_unclean_ones_too(world: World) -> None:
    cluster = Cluster(world, nodes=5)  # With both replicas dead there is a quorum still.
    cluster.start()
    configs = {"min.insync.replicas": "1"}
    cluster.run(lambda c: c.create_topic(TOPIC, replication_factor=2, configs=configs))
    first = await_state(cluster, world, lambda partition: len(partition.isr) == 2)
    preferred, other = first.replicas
    assert elect(cluster, PREFERRED) is ErrorCode.ELECTION_NOT_NEEDED
    assert elect(cluster, UNCLEAN) is ErrorCode.ELECTION_NOT_NEEDED

    cluster.hosts[preferred].signal(signal.SIGTERM)
    world.run_until(lambda: not cluster.hosts[preferred].alive, within=10)
    await_state(cluster, world, lambda partition: partition.leader == other)
    assert elect(cluster, PREFERRED) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    cluster.run(lambda client: client.produce(TOPIC, 0, [b"only on the other"]))
    cluster.hosts[other].kill()
    await_state(cluster, world, lambda partition: partition.leader == -1)

    cluster.start(preferred)
    world.run(3)
    assert seen(cluster).leader == -1  # It lacks an acknowledged record, and nobody has said so.
    assert elect(cluster, UNCLEAN) is ErrorCode.NONE
    await_state(cluster, world, lambda partition: partition.leader == preferred)
    cluster.start(other)
    await_state(cluster, world, lambda partition: len(partition.isr) == 2)
    assert cluster.run(lambda client: client.read_all(TOPIC, 0)) == {}


def test_kip_392_a_consumer_is_sent_to_the_replica_in_its_rack(world: World) -> None:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    cluster = RackedCluster(world, settings={"replica.selector.class": selector})
    cluster.start()
    cluster.run(lambda client: client.create_topic(TOPIC))
    leader = await_state(cluster, world, lambda partition: len(partition.isr) == 3).leader
    cluster.run(lambda client: client.produce(TOPIC, 0, [b"a"]))
    world.run(1)

    def fetch(node_id: int, rack: str) -> FetchResponse.FetchableTopicResponse.PartitionData:
        async def work(client: KafkaClient) -> FetchResponse:
            request = FetchRequest(
                rack_id=rack,
                max_wait_ms=0,
                topics=[
                    FetchRequest.FetchTopic(
                        topic=TOPIC,
                        partitions=[
                            FetchRequest.FetchPartition(
                                partition=0, fetch_offset=0, partition_max_bytes=1 << 20
                            )
                        ],
                    )
                ],
            )
            return await client.request(node_id, ApiKey.FETCH, 11, request, FetchResponse)

        data = cluster.run(work).responses[0].partitions[0]
        assert data.error_code == ErrorCode.NONE
        return data

    near = next(number for number in cluster.hosts if number != leader)
    sent = fetch(leader, f"rack-{near}")
    assert (sent.preferred_read_replica, bool(sent.records)) == (near, False)
    read = fetch(near, f"rack-{near}")
    assert (read.preferred_read_replica, read.high_watermark, bool(read.records)) == (-1, 1, True)
    for rack in ("", f"rack-{leader}", "elsewhere"):
        stays = fetch(leader, rack)
        assert (stays.preferred_read_replica, bool(stays.records)) == (-1, True)
