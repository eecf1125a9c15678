"""Frames between simulated nodes: found by API key, and lost, or late."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from logboat.jepsen_style.cluster_scope.frame_faults import FrameFaults
from logboat.jepsen_style.simulation import World
from logboat.jepsen_style.simulation.cluster import Cluster
from logboat.wire import ApiKey

HEARTBEAT = ApiKey.BROKER_HEARTBEAT


@pytest.fixture
def world() -> Iterator[World]:
    with World(5) as made:
        yield made


def running(world: World) -> tuple[Cluster, FrameFaults]:
    losses = FrameFaults(world)
    cluster = Cluster(world, nodes=3)
    cluster.start()
    world.run(3.0)
    return cluster, losses


@pytest.mark.parametrize("silently", [True, False])
def test_answers_of_the_controller_to_other_nodes_are_lost_until_that_ends(
    world: World, silently: bool
) -> None:
    cluster, losses = running(world)
    ends = [
        losses.lose_answers(host, HEARTBEAT, silently=silently) for host in cluster.hosts.values()
    ]
    world.run(0.9)
    assert losses.lost > 0
    for end in ends:
        end()
    lost = losses.lost
    world.run(2.0)
    assert losses.lost == lost
    assert all(host.alive for host in cluster.hosts.values())


def test_an_api_that_nobody_asks_loses_nothing(world: World) -> None:
    cluster, losses = running(world)
    for host in cluster.hosts.values():
        losses.lose_requests(host, ApiKey.PRODUCE, silently=True)
        losses.lose_answers(host, ApiKey.PRODUCE, silently=True)
    world.run(2.0)
    assert losses.lost == 0
