"""Three whole nodes in one process on virtual time (DESIGN 2)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from logboat.jepsen_style.simulation import Trace, World
from logboat.jepsen_style.simulation.cluster import Cluster
from logboat.jepsen_style.simulation.kafka_client import KafkaClient

TOPIC = "first-light"


async def produce_steadily(client: KafkaClient, acknowledged: dict[int, bytes]) -> None:
    """One record after another; offset and value of each as it is acknowledged."""
    number = 0
    while True:
        value = b"record %d" % number
        offset = await client.produce(TOPIC, 0, [value])
        assert offset not in acknowledged
        acknowledged[offset] = value
        number += 1
        await asyncio.sleep(0.002)


def first_light(seed: int, *, labelled: bool = False) -> Trace:
    """Create, produce, kill the partition's leader, go on, bring it back, read everything."""
    acknowledged: dict[int, bytes] = {}
    with World(seed, labelled=labelled) as world:
        cluster = Cluster(world)
        cluster.start()
        cluster.run(lambda client: client.create_topic(TOPIC, partitions=1))
        producing = cluster.spawn(lambda client: produce_steadily(client, acknowledged))
        world.run_until(lambda: len(acknowledged) >= 100, within=10)

        victim = cluster.run(lambda client: client.leader(TOPIC, 0))
        before = len(acknowledged)
        cluster.hosts[victim].kill()
        killed_at = world.now
        world.run_until(lambda: len(acknowledged) > before + 1, within=10)
        assert world.now - killed_at < 3
        successor = cluster.run(lambda client: client.leader(TOPIC, 0))
        assert successor != victim
        world.run_until(lambda: len(acknowledged) >= before + 100, within=10)

        cluster.start(victim)
        await_isr(cluster, world, replicas=3)
        world.run_until(lambda: len(acknowledged) >= before + 200, within=10)
        producing.cancel()
        world.run(0.1)

        found = cluster.run(lambda client: client.read_all(TOPIC, 0))
        lost = {
            offset: value for offset, value in acknowledged.items() if found.get(offset) != value
        }
        assert lost == {}
    return world.trace


def await_isr(cluster: Cluster, world: World, *, replicas: int) -> None:
    """Until the partition's whole set of replicas is in sync."""
    end = world.now + 20
    while world.now < end:
        partitions = cluster.run(lambda client: client.partitions(TOPIC))
        if len(partitions[0].isr) == replicas:
            return
        world.run(0.1)
    raise AssertionError(f"in sync after 20 s: {partitions[0].isr}")


@pytest.fixture(scope="module")
def first_run() -> Trace:
    return first_light(1)


def test_three_nodes_go_on_without_the_leader_and_lose_nothing(first_run: Trace) -> None:
    assert first_run.digest()


def test_another_seed_simulates_another_run(first_run: Trace) -> None:
    assert first_light(2).digest() != first_run.digest()


def test_a_seed_replays_a_cluster_in_other_processes_under_any_hash_seed(
    first_run: Trace,
) -> None:
    script = (
        "import importlib.util as u, sys\n"
        "spec = u.spec_from_file_location('cluster_in_simulation', sys.argv[1])\n"
        "module = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(module.first_light(1).digest())\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(Path(__file__))],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("0", "1")
    ]
    digests = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert digests == [first_run.digest()] * 2
