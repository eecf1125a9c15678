"""Voters of the quorum's log on virtual time: elections, proposals, deaths, power cuts, cuts."""

from __future__ import annotations

import random

import pytest

from logboat.jepsen_style.simulation import Keep, Trace, World
from logboat.jepsen_style.simulation.quorum import Quorum
from logboat.raftlog import RaftSettings


def settle(world: World, quorum: Quorum, *, within: float = 30.0) -> None:
    """Heal everything and wait until all members hold the same, a fresh command included."""
    world.network.heal()
    for host in quorum.hosts.values():
        host.resume()
    quorum.start()
    quorum.await_leader(within=within)
    goal = len(quorum.acknowledged) + 1

    def propose_until_taken() -> None:
        leader = quorum.leader()
        if len(quorum.acknowledged) < goal:
            if leader is not None:
                quorum.propose(leader)
            world.at(0.5, propose_until_taken)

    propose_until_taken()
    world.run_until(lambda: len(quorum.acknowledged) >= goal and quorum.settled(), within=within)


def check(quorum: Quorum) -> None:
    assert quorum.violations == []
    assert quorum.missing() == []
    assert quorum.resurrected() == []


def test_three_voters_elect_a_leader_and_apply_the_same_commands() -> None:
    with World(1) as world:
        quorum = Quorum(world)
        quorum.start()
        leader = quorum.await_leader(within=3)
        for _ in range(100):
            quorum.propose(leader)
        world.run_until(lambda: len(quorum.acknowledged) == 100, within=2)
        settle(world, quorum)
        check(quorum)


def test_the_death_of_the_leader_loses_nothing_and_it_catches_up_when_it_returns() -> None:
    with World(2) as world:
        quorum = Quorum(world)
        quorum.start()
        first = quorum.await_leader()
        quorum.propose_steadily(100)
        world.run(1)
        acknowledged = len(quorum.acknowledged)
        assert acknowledged > 80
        first.host.kill()
        second = quorum.await_leader(within=3)
        assert second.node_id != first.node_id
        world.run(1)
        assert len(quorum.acknowledged) > acknowledged + 50
        quorum.start()
        world.run(1)
        settle(world, quorum)
        check(quorum)


def test_a_leader_cut_off_steps_down_and_its_tail_is_forgotten() -> None:
    with World(3) as world:
        quorum = Quorum(world)
        quorum.start()
        leader = quorum.await_leader()
        others = [host for host in quorum.hosts.values() if host is not leader.host]
        world.network.partition([leader.host], others)
        lost = [quorum.propose(leader) for _ in range(5)]
        world.run(1.5)
        assert not leader.leads
        assert quorum.leader() is not None
        assert not any(command in quorum.acknowledged for command in lost)
        settle(world, quorum)
        check(quorum)


def test_a_leader_without_a_majority_steps_down_in_time() -> None:
    """At most 50 ms after the fall-back time, counted from the last answer, which the cut ends."""
    settings = RaftSettings()
    with World(3) as world:
        quorum = Quorum(world, settings=settings)
        quorum.start()
        leader = quorum.await_leader()
        others = [host for host in quorum.hosts.values() if host is not leader.host]
        world.network.partition([leader.host], others)
        world.run_until(lambda: not leader.leads, within=settings.fallback_s + 0.05)


@pytest.mark.parametrize("keep", list(Keep))
def test_a_power_cut_on_every_node_keeps_what_was_acknowledged(keep: Keep) -> None:
    with World(4) as world:
        quorum = Quorum(world)
        quorum.start()
        quorum.await_leader()
        quorum.propose_steadily(200)
        world.run(2)
        assert len(quorum.acknowledged) > 200
        for host in quorum.hosts.values():
            host.power_off(keep)
        quorum.start()
        settle(world, quorum)
        check(quorum)


def test_a_lone_voter_leads_by_itself_and_survives_power_cuts() -> None:
    with World(5) as world:
        quorum = Quorum(world, nodes=1, settings=RaftSettings.lone())
        quorum.start()
        quorum.await_leader(within=1)
        quorum.propose_steadily(100)
        for _ in range(3):
            world.run(0.5)
            quorum.hosts[1].power_off(Keep.NONE)
            quorum.start()
            quorum.await_leader(within=1)
        settle(world, quorum)
        assert len(quorum.acknowledged) > 100
        check(quorum)


def hurt(world: World, quorum: Quorum, dice: random.Random, seconds: float) -> None:
    """Faults of all kinds, one after another; most of the time a majority is well."""
    end = world.now + seconds
    while world.now < end:
        world.run(0.2 + dice.random() * 0.8)
        hosts = list(quorum.hosts.values())
        host = dice.choice(hosts)
        others = [other for other in hosts if other is not host]
        kind = dice.choice(
            ("kill", "power", "blackout", "cut", "one-way", "pause", "stall", "reset", "heal")
        )
        if kind == "kill":
            host.kill()
        elif kind == "power":
            host.power_off(dice.choice(list(Keep)))
        elif kind == "blackout":
            for each in hosts:
                each.power_off(dice.choice(list(Keep)))
        elif kind == "cut":
            world.network.partition([host], others)
        elif kind == "one-way":
            for other in others:
                world.network.block(other, host)
        elif kind == "pause" and host.alive:
            host.pause()
        elif kind == "stall":
            host.stall(dice.random())
        elif kind == "reset":
            world.network.reset(host, dice.choice(others))
        world.run(dice.random() * 1.5)
        world.network.heal()
        for each in hosts:
            each.resume()
        quorum.start()


def hurt_run(seed: int, *, seconds: float = 10.0, labelled: bool = False) -> tuple[Quorum, Trace]:
    dice = random.Random(seed)
    # Compaction every 60 entries: snapshots travel all the time.
    settings = RaftSettings(
        election_min_s=0.3,
        election_max_s=0.6,
        fallback_s=0.45,
        heartbeat_s=0.075,
        compaction_entries=60,
    )
    with World(seed, labelled=labelled) as world:
        quorum = Quorum(world, settings=settings)
        quorum.start()
        quorum.await_leader()
        quorum.propose_steadily(50)
        hurt(world, quorum, dice, seconds)
        settle(world, quorum)
    return quorum, world.trace


@pytest.mark.parametrize("seed", range(3))
def test_under_faults_of_all_kinds_nothing_acknowledged_is_lost(seed: int) -> None:
    quorum, _ = hurt_run(seed)
    check(quorum)
    assert len(quorum.acknowledged) > 50


def test_a_seed_replays_a_hurt_quorum_exactly() -> None:
    assert hurt_run(7, seconds=4)[1].digest() == hurt_run(7, seconds=4)[1].digest()
