"""Three whole nodes under kills, power cuts, cuts, pauses and stalls: nothing acknowledged is lost.

A first net, cast by hand: schedules, histories and checkers take its place.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import partial

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.cluster import Cluster
from logboat.jepsen_style.simulation.kafka_client import KafkaClient

TOPIC = "hurt"
PARTITIONS = 2

Acknowledged = dict[int, bytes]
"""Value by offset."""


async def produce_steadily(client: KafkaClient, partition: int, acknowledged: Acknowledged) -> None:
    number = 0
    while True:
        value = b"%d of %d" % (number, partition)
        number += 1
        try:
            offset = await client.produce(TOPIC, partition, [value], within=20)
        except TimeoutError:
            continue
        assert offset not in acknowledged
        acknowledged[offset] = value
        await asyncio.sleep(0.05)


def cut_off(world: World, victim: Host, others: list[Host]) -> None:
    world.network.partition([victim], others)


def deafen(world: World, victim: Host, others: list[Host]) -> None:
    for other in others:
        world.network.block(other, victim)


def black_out(world: World, victim: Host, others: list[Host]) -> None:
    for host in (victim, *others):
        host.power_off(Keep.ANY)


def kill_all(world: World, victim: Host, others: list[Host]) -> None:
    for host in (victim, *others):
        host.kill()


FAULTS: tuple[Callable[[World, Host, list[Host]], None], ...] = (
    lambda world, victim, others: victim.kill(),
    lambda world, victim, others: victim.power_off(Keep.NONE),
    lambda world, victim, others: victim.pause(),
    lambda world, victim, others: victim.stall(1.0),
    lambda world, victim, others: world.network.reset(victim, others[0]),
    cut_off,
    deafen,
    black_out,
    kill_all,
)


@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_acknowledged_is_there_on_every_replica_after_all_faults(seed: int) -> None:
    dice = random.Random(seed)
    acknowledged: list[Acknowledged] = [{} for _ in range(PARTITIONS)]
    with World(seed) as world:
        cluster = Cluster(world)
        hosts = list(cluster.hosts.values())
        cluster.start()
        cluster.run(lambda client: client.create_topic(TOPIC, partitions=PARTITIONS))
        producers = [
            cluster.spawn(partial(produce_steadily, partition=p, acknowledged=acknowledged[p]))
            for p in range(PARTITIONS)
        ]
        for fault in dice.sample(FAULTS, len(FAULTS)):
            world.run(0.3 + dice.random() * 0.5)
            victim = dice.choice(hosts)
            fault(world, victim, [host for host in hosts if host is not victim])
            world.run(dice.random() * 1.5)
            world.network.heal()
            for host in hosts:
                host.resume()
            cluster.start()
        before = sum(map(len, acknowledged))
        world.run_until(lambda: sum(map(len, acknowledged)) > before + 40, within=10)
        for producer in producers:
            assert not producer.done()
            producer.cancel()
        await_full_isr(cluster, world)
        for partition, expected in enumerate(acknowledged):
            found = cluster.run(partial(KafkaClient.read_all, topic=TOPIC, partition=partition))
            assert [o for o, value in expected.items() if found.get(o) != value] == []
        world.run(1)
        for partition in range(PARTITIONS):
            logs = [segments(host, partition) for host in hosts]
            assert logs == [logs[0]] * len(hosts)


def await_full_isr(cluster: Cluster, world: World) -> None:
    end = world.now + 20
    while True:
        partitions = cluster.run(lambda client: client.partitions(TOPIC))
        if all(len(partition.isr) == 3 for partition in partitions.values()):
            return
        assert world.now < end, f"not in sync again: {partitions}"
        world.run(0.2)


def segments(host: Host, partition: int) -> dict[str, bytes]:
    """The bytes of the partition's segments, by file name."""
    folder = f"data/{TOPIC}-{partition}/"
    return {
        path: bytes(content)
        for path, content in host.drive.files().items()
        if path.startswith(folder) and path.endswith(".log")
    }
