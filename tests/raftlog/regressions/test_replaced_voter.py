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
