"""RULES B, C and D with whole nodes, disks and a network: the worst that each guards against."""

from __future__ import annotations

import asyncio
import errno
import signal
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from logboat.jepsen_style.simulation import DiskCall, Host, Keep, World
from logboat.jepsen_style.simulation.cluster import Cluster
from logboat.jepsen_style.simulation.kafka_client import KafkaClient, Partition, Refused, Response
from logboat.wire import ApiKey, Message
from logboat.wire.records import batches, decode_records

TOPIC = "ruled"
PAGE_CACHE = {"flush.messages": "10000"}


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=23) as world:
        yield world


def started(world: World, **configs: str) -> Cluster:
    return started_as(Cluster(world), world, **configs)


def started_as(cluster: Cluster, world: World, **configs: str) -> Cluster:
    cluster.start()
    named = {name.replace("_", "."): value for name, value in configs.items()}
    cluster.run(lambda client: client.create_topic(TOPIC, configs=named))
    await_isr(cluster, world, 3)
    return cluster


def seen(cluster: Cluster) -> Partition:
    return cluster.run(lambda client: client.partitions(TOPIC))[0]


def await_state(
    cluster: Cluster, world: World, reached: Callable[[Partition], bool], *, within: float = 20
) -> Partition:
    end = world.now + within
    while not reached(partition := seen(cluster)):
        assert world.now < end, f"still {partition}"
        world.run(0.1)
    return partition


def await_isr(cluster: Cluster, world: World, size: int) -> Partition:
    return await_state(cluster, world, lambda partition: len(partition.isr) == size)


def produce(cluster: Cluster, *values: bytes, acks: int = -1, within: float = 30.0) -> int:
    return cluster.run(
        lambda client: client.produce(TOPIC, 0, list(values), acks=acks, within=within)
    )


def read_all(cluster: Cluster) -> list[bytes | None]:
    found = cluster.run(partial(KafkaClient.read_all, topic=TOPIC, partition=0))
    return [found[offset] for offset in sorted(found)]


def held(host: Host) -> dict[int, tuple[int, bytes | None]]:
    """(leader epoch, value) by offset, as the replica's files say."""
    folder = f"data/{TOPIC}-0/"
    return {
        record.offset: (batch.header.partition_leader_epoch, record.value)
        for path, content in sorted(host.drive.files().items())
        if path.startswith(folder) and path.endswith(".log")
        for batch in batches(bytes(content), partial_tail=True)
        for record in decode_records(batch.view)
    }


def number_of(cluster: Cluster, host: Host) -> int:
    return next(number for number, other in cluster.hosts.items() if other is host)


# B: incarnations


def test_b1_an_epoch_and_offset_name_one_record_for_ever_on_all_disks(world: World) -> None:
    """Leaders that restart at once, with and without what they had not synced."""
    cluster = started(world, min_insync_replicas="1", **{"flush.messages": "10000"})
    named: dict[tuple[int, int], bytes | None] = {}

    def look() -> None:
        for host in cluster.hosts.values():
            for offset, (epoch, value) in held(host).items():
                assert named.setdefault((epoch, offset), value) == value

    for number in range(6):
        leader = await_state(cluster, world, lambda partition: partition.leader > 0).leader
        host = cluster.hosts[leader]
        others = [other for other in cluster.hosts.values() if other is not host]
        world.network.partition([host], others)
        produce_soon_lost(cluster, leader, b"lost %d" % number)
        look()
        if number % 2:
            host.kill()
        else:
            host.power_off(Keep.NONE)
        world.network.heal()
        cluster.start(leader)
        produce(cluster, b"kept %d" % number)
        look()
    await_isr(cluster, world, 3)
    look()
    assert {value for value in read_all(cluster) if value and value.startswith(b"kept")} == {
        b"kept %d" % number for number in range(6)
    }


def produce_soon_lost(cluster: Cluster, leader: int, value: bytes) -> None:
    """To the leader alone, which nobody else hears."""

    async def work(client: KafkaClient) -> None:
        try:
            await client.produce(TOPIC, 0, [value], acks=1, within=0.3)
        except TimeoutError:
            return

    cluster.run(work)


class Asking(KafkaClient):
    """Counts what was asked in vain: a broken connection, or nobody there."""

    unanswered = 0

    async def request(
        self, node_id: int, key: ApiKey, version: int, request: Message, kind: type[Response]
    ) -> Response:
        try:
            return await super().request(node_id, key, version, request, kind)
        except (OSError, EOFError):
            self.unanswered += 1
            raise


def requests_that_an_orderly_stop_breaks(cluster: Cluster, world: World) -> int:
    """Of a client that writes steadily; what it was promised is there."""
    leader = seen(cluster).leader
    client = Asking(cluster.addresses)
    acknowledged: dict[int, bytes] = {}
    gaps: list[float] = []

    async def produce_steadily() -> None:
        loop, number = asyncio.get_running_loop(), 0
        try:
            while True:
                began, value = loop.time(), b"%d" % number
                acknowledged[await client.produce(TOPIC, 0, [value])] = value
                gaps.append(loop.time() - began)
                number += 1
                await asyncio.sleep(0.005)
        finally:
            client.close()

    producing = cluster.client_host.spawn(produce_steadily())
    world.run(0.5)
    cluster.hosts[leader].signal(signal.SIGTERM)
    world.run_until(lambda: not cluster.hosts[leader].alive, within=10)
    assert ".kafka_cleanshutdown" in {
        path.removeprefix("data/") for path in cluster.hosts[leader].drive.files()
    }
    world.run(0.5)
    producing.cancel()
    assert seen(cluster).leader not in (leader, -1)
    found = cluster.run(partial(KafkaClient.read_all, topic=TOPIC, partition=0))
    assert {o: v for o, v in acknowledged.items() if found.get(o) != v} == {}
    assert max(gaps) < 0.3  # Far below the session of a second that a death would have cost.
    return client.unanswered


def test_b6_an_orderly_stop_costs_no_write_and_no_wait(world: World) -> None:
    """The leader goes when every other node knows that it leads nothing: it says so itself to who
    still writes to it, and to metadata's readers all others do."""
    cluster = started(world)
    assert requests_that_an_orderly_stop_breaks(cluster, world) == 0


def test_b6_without_a_controlled_shutdown_a_stop_breaks_requests(world: World) -> None:
    """The control of the test above."""
    cluster = started_as(Cluster(world, settings={"controlled.shutdown.enable": "false"}), world)
    assert requests_that_an_orderly_stop_breaks(cluster, world) > 0


# C: a replica's log


def test_c1_the_last_replica_standing_that_lost_its_page_cache_does_not_lead(world: World) -> None:
    """Hole 1 (KIP-966): the one that left earlier still has every acknowledged record."""
    cluster = started(world, flush_messages="10000")
    leader = seen(cluster).leader
    second, third = (number for number in cluster.hosts if number != leader)
    stop(cluster, world, third)
    await_isr(cluster, world, 2)
    produce(cluster, b"acknowledged")
    stop(cluster, world, second)
    cluster.hosts[leader].power_off(Keep.NONE)
    cluster.start(leader, third)
    world.run(5)
    assert held(cluster.hosts[leader]) == {}
    assert seen(cluster).leader == -1
    cluster.start(second)
    await_isr(cluster, world, 3)
    assert read_all(cluster) == [b"acknowledged"]


def stop(cluster: Cluster, world: World, number: int) -> None:
    """In order, with a clean-shutdown marker."""
    cluster.hosts[number].signal(signal.SIGTERM)
    world.run_until(lambda: not cluster.hosts[number].alive, within=10)


def test_c1_a_node_reports_a_damaged_log_and_is_elected_no_more(world: World) -> None:
    """Half of a log is gone below what was synced and checkpointed, on the only one in the ELR."""
    cluster = Cluster(world)
    cluster.start()
    cluster.run(
        lambda client: client.create_topic(
            TOPIC, replication_factor=2, configs={"min.insync.replicas": "1"}
        )
    )
    leader = await_isr(cluster, world, 2).leader
    follower = next(number for number in seen(cluster).replicas if number != leader)
    stop(cluster, world, follower)
    for number in range(20):
        produce(cluster, b"%d" % number)
    world.run(6)  # A checkpoint.
    cluster.start(follower)
    await_isr(cluster, world, 2)
    stop(cluster, world, follower)
    cluster.hosts[leader].kill()
    node = cluster.hosts[leader].drive.open_file(f"data/{TOPIC}-0/{0:020}.log", create=False)
    for image in (node.cached, node.durable):
        del image[len(image) // 2 :]
    cluster.start(leader)
    world.run(5)
    # It would be elected as the last one in sync, and the other would cut its log to match.
    assert (seen(cluster).leader, seen(cluster).isr) == (-1, ())
    cluster.start(follower)
    world.run(3)
    assert len(held(cluster.hosts[follower])) == 20


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_c4_a_failed_sync_ends_the_process_and_loses_nothing(world: World, role: str) -> None:
    cluster = started(world)
    for number in range(10):
        produce(cluster, b"%d" % number)
    leader = seen(cluster).leader
    victim = cluster.hosts[
        leader if role == "leader" else next(n for n in cluster.hosts if n != leader)
    ]
    ended: list[str] = []
    world.on_host_ended = lambda host, error: ended.append(f"{host.name}: {error}")
    failures: list[str] = []

    def fail(call: DiskCall) -> None:
        if call.kind == "sync effect" and f"{TOPIC}-0" in call.path:
            failures.append(call.path)
            raise OSError(errno.EIO, "injected")

    victim.drive.on_call = fail
    produce(cluster, b"10")
    world.run_until(lambda: not victim.alive, within=10)
    victim.drive.on_call = None
    assert len(failures) == 1  # Never tried again.
    assert ended == [f"{victim.name}: {ended[0].partition(': ')[2]}"]
    assert "sync of" in ended[0]
    assert "data/.sync_failed" in victim.drive.files()
    cluster.start()
    await_isr(cluster, world, 3)
    assert "data/.sync_failed" not in victim.drive.files()  # The controller has been told.
    found = read_all(cluster)
    assert found[:10] == [b"%d" % number for number in range(10)]
    assert set(found[10:]) == {b"10"}  # Perhaps twice: the first copy's outcome was unknown.
    assert held(victim) == held(cluster.hosts[seen(cluster).leader])


# D: watermark, ISR, elections


def test_d5_a_write_whose_outcome_is_unknown_is_never_called_done(world: World) -> None:
    cluster = started(world)
    produce(cluster, b"a")
    leader = seen(cluster).leader
    for number in cluster.hosts:
        if number != leader:
            cluster.hosts[number].pause()
    # The quorum has no majority either, so the ISR cannot shrink and nothing is decided.
    with pytest.raises(TimeoutError):
        produce(cluster, b"b", within=5)
    for number in cluster.hosts:
        cluster.hosts[number].resume()
    await_isr(cluster, world, 3)
    assert read_all(cluster)[0] == b"a"


def test_d8_nobody_leads_while_the_only_one_that_has_the_records_is_away(world: World) -> None:
    cluster = Cluster(world)
    cluster.start()
    cluster.run(lambda client: client.create_topic(TOPIC, replication_factor=1))
    partition = await_state(cluster, world, lambda partition: partition.leader > 0)
    produce(cluster, b"a")
    owner = cluster.hosts[partition.leader]
    owner.kill()
    await_state(cluster, world, lambda found: found.leader == -1)
    with pytest.raises((TimeoutError, Refused)):
        produce(cluster, b"b", within=3)
    cluster.start(number_of(cluster, owner))
    await_state(cluster, world, lambda found: found.leader > 0)
    assert read_all(cluster) == [b"a"]


def test_r05_an_idle_cluster_writes_no_metadata(world: World) -> None:
    cluster = started(world)
    produce(cluster, b"a")
    world.run(2)
    before = journals(cluster)
    world.run(15)
    assert journals(cluster) == before


def journals(cluster: Cluster) -> dict[str, bytes]:
    return {
        f"{host.name} {path}": bytes(content)
        for host in cluster.hosts.values()
        for path, content in host.drive.files().items()
        if path.startswith("data/quorum/")
    }
