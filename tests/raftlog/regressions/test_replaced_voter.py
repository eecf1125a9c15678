"""RULES B3: a voter whose directory was lost comes back once its new directory is pinned."""

from __future__ import annotations

from random import Random

from logboat.jepsen_style.raft_scope.controls import guards_of
from logboat.jepsen_style.raft_scope.faults import Faults
from logboat.jepsen_style.raft_scope.run import _pin_everybody
from logboat.jepsen_style.raft_scope.shape import shape_of
from logboat.jepsen_style.raft_scope.watched_quorum import WatchedQuorum
from logboat.jepsen_style.simulation import World


def test_a_replaced_voter_catches_up_past_the_pin_of_its_predecessor() -> None:
    with World(1) as world:
        quorum = WatchedQuorum(
            world, nodes=3, shape=shape_of(1, compaction=10_000), guards=guards_of()
        )
        faults = Faults(quorum, Random(1))
        quorum.start()
        quorum.await_leader(within=20)
        # No compaction: what the new one is sent begins with the old pins.
        _pin_everybody(world, quorum)
        leader = quorum.await_leader()
        lost = next(n for n, member in quorum.members.items() if member is not leader)
        faults._emptied_directory(quorum.hosts[lost])
        for _ in range(100):
            world.run(0.1)
            quorum.start()
            if faults.unpinned is None:
                break
        assert faults.unpinned is None
        world.run(2)
        assert quorum.settled()
        assert quorum.violations == []


def test_a_peer_that_is_behind_does_not_end_a_rightly_replaced_voter() -> None:
    with World(2) as world:
        quorum = WatchedQuorum(
            world, nodes=5, shape=shape_of(2, compaction=10_000), guards=guards_of()
        )
        quorum.start()
        quorum.await_leader(within=20)
        _pin_everybody(world, quorum)
        leader = quorum.await_leader()
        lost, behind, *others = (n for n in quorum.hosts if n != leader.node_id)
        # One voter hears nothing of what the others decide, but is heard by the replaced one.
        majority = [quorum.hosts[n] for n in (leader.node_id, *others)]
        world.network.partition([quorum.hosts[behind]], majority)
        quorum.empty_directory(lost)
        command = quorum.pin(lost)
        assert command is not None
        world.run_until(lambda: command in quorum.acknowledged, within=5)
        quorum.start(lost)
        world.run(5)
        assert quorum.hosts[lost].alive
        assert command in quorum.members[lost].commands.values()
        world.network.heal()
        world.run_until(quorum.settled, within=10)
        assert quorum.violations == []


def test_a_voter_that_was_not_replaced_ends_by_the_leaders_word() -> None:
    with World(3) as world:
        quorum = WatchedQuorum(
            world, nodes=3, shape=shape_of(3, compaction=10_000), guards=guards_of()
        )
        quorum.start()
        quorum.await_leader(within=20)
        _pin_everybody(world, quorum)
        leader = quorum.await_leader()
        lost = next(n for n in quorum.hosts if n != leader.node_id)
        quorum.empty_directory(lost)
        quorum.start(lost)
        # Nothing else is proposed: the leader confirms its word by an entry of its own.
        world.run_until(lambda: not quorum.hosts[lost].alive, within=5)
