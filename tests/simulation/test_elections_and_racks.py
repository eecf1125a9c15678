"""Elections by request and reads in the consumer's rack, with whole nodes (KIP-183, 460, 392)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from random import Random
from typing import cast
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import World
from logboat.jepsen_style.simulation.cluster import INTERNODE_PORT, SECRET, Cluster
from logboat.jepsen_style.simulation.kafka_client import KafkaClient, Partition
from logboat.metadata.snapshot import empty_image
from logboat.node.addresses import Address
from logboat.node.config import NodeConfig
from logboat.node.peers import Peers
from logboat.raftlog import Credential
from logboat.wire import ApiKey, ErrorCode
from logboat.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
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


def prefer(cluster: Cluster, *replicas: int) -> None:
    """What a node asks the controller for when it is asked over HTTP. Returns when it is done."""
    request = AlterPartitionReassignmentsRequest(
        topics=[
            AlterPartitionReassignmentsRequest.ReassignableTopic(
                name=TOPIC,
                partitions=[
                    AlterPartitionReassignmentsRequest.ReassignablePartition(
                        partition_index=0, replicas=list(replicas)
                    )
                ],
            )
        ]
    )
    image = empty_image("simulated")
    peers = Peers(
        credential=Credential(SECRET, 99, UUID(int=99), "simulated"),
        voters={n: Address(host.name, INTERNODE_PORT) for n, host in cluster.hosts.items()},
        image=lambda: image,
        rng=Random(1),
        on_refused=lambda _: None,
    )

    async def ask(node_id: int) -> ErrorCode:
        deadline = asyncio.get_running_loop().time() + 5
        peer = await peers.connect(node_id, deadline)
        try:
            answer = await peer.request(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request, deadline)
        finally:
            peer.close()
        response = cast(AlterPartitionReassignmentsResponse, answer)
        if response.error_code:
            return ErrorCode(response.error_code)
        return ErrorCode(response.responses[0].partitions[0].error_code)

    async def ask_all(_: KafkaClient) -> list[ErrorCode]:
        return [await ask(node_id) for node_id in cluster.hosts]

    told = cluster.run(ask_all)
    assert sorted(told) == [ErrorCode.NONE, *[ErrorCode.NOT_CONTROLLER] * (len(told) - 1)]


def test_d8_leadership_goes_where_it_is_sent_while_records_are_written(world: World) -> None:
    cluster = Cluster(world)
    cluster.start()
    cluster.run(lambda client: client.create_topic(TOPIC))
    await_state(cluster, world, lambda partition: len(partition.isr) == 3)
    acknowledged: dict[int, bytes] = {}

    async def write(client: KafkaClient) -> None:
        for number in range(1_000_000):
            value = b"%d" % number
            acknowledged[await client.produce(TOPIC, 0, [value])] = value

    writing = cluster.spawn(write)
    for _ in range(6):
        before, count = seen(cluster), len(acknowledged)
        world.run_until(lambda count=count: len(acknowledged) > count, within=10)  # type: ignore[misc]
        last, *others = reversed(before.replicas)
        prefer(cluster, last, *others)
        between = seen(cluster)
        assert between.replicas == (last, *others)
        assert (between.leader, between.leader_epoch) == (before.leader, before.leader_epoch)
        elect(cluster, PREFERRED)
        await_state(cluster, world, lambda now, to=last: now.leader == to)  # type: ignore[misc]
    killed = seen(cluster).leader
    cluster.hosts[killed].kill()
    count = len(acknowledged)
    world.run_until(lambda: len(acknowledged) > count, within=20)
    cluster.start(killed)
    await_state(cluster, world, lambda partition: len(partition.isr) == 3)
    writing.cancel()
    world.run(0.1)
    kept = cluster.run(lambda client: client.read_all(TOPIC, 0))
    assert acknowledged.items() <= kept.items()


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
