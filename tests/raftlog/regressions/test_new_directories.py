"""RULES B3: a new directory has no vote before it is known that it has forgotten none."""

from __future__ import annotations

from logboat.jepsen_style.raft_scope.controls import guards_of
from logboat.jepsen_style.raft_scope.shape import shape_of
from logboat.jepsen_style.raft_scope.watched_quorum import WatchedQuorum
from logboat.jepsen_style.simulation import World


def watched(world: World, *, nodes: int = 3) -> WatchedQuorum:
    return WatchedQuorum(
        world, nodes=nodes, shape=shape_of(world.seed, compaction=10_000), guards=guards_of()
    )


def pin(world: World, quorum: WatchedQuorum, number: int) -> None:
    command = quorum.pin(number)
    assert command is not None
    world.run_until(lambda: command in quorum.acknowledged, within=5)


def test_b3_a_voter_that_has_applied_no_pin_does_not_get_the_vote_of_an_emptied_directory() -> None:
    with World(1) as world:
        quorum = watched(world)
        quorum.start()
        leader = quorum.await_leader(within=20)
        lost, behind = (n for n in quorum.hosts if n != leader.node_id)
        # One voter hears nothing of what the two others decide, the pins among it.
        world.network.partition([quorum.hosts[behind]], [leader.host, quorum.hosts[lost]])
        for number in (leader.node_id, lost):
            pin(world, quorum, number)
        decided = quorum.propose(leader)
        world.run_until(lambda: decided in quorum.acknowledged, within=5)
        quorum.empty_directory(lost)
        # What the leader has said to it meanwhile does not come after all.
        world.network.reset(leader.host, quorum.hosts[behind])
        quorum.start(lost)
        world.network.heal()
        world.network.partition([leader.host], [quorum.hosts[lost], quorum.hosts[behind]])
        world.run(20)
        # Together they know less than was acknowledged.
        assert not any(quorum.members[number].leads for number in (lost, behind))
        world.network.heal()
        world.run_until(lambda: decided in quorum.members[behind].commands.values(), within=20)
        pin(world, quorum, lost)
        world.run(1)
        quorum.start()
        world.run_until(quorum.settled, within=20)
        assert quorum.missing() == []
        assert quorum.violations == []


def test_b3_an_emptied_directory_does_not_vote_twice_in_a_term() -> None:
    with World(2) as world:
        quorum = watched(world)
        quorum.start()
        leader = quorum.await_leader(within=20)
        lost, behind = (n for n in quorum.hosts if n != leader.node_id)
        # Its vote made the leader; nothing was pinned yet, and the leader goes on believing.
        world.network.partition([quorum.hosts[behind]], [leader.host, quorum.hosts[lost]])
        world.network.block(quorum.hosts[lost], leader.host)
        quorum.empty_directory(lost)
        # What the leader has said to it meanwhile does not come after all.
        world.network.reset(leader.host, quorum.hosts[behind])
        quorum.start(lost)
        world.network.heal()
        world.network.partition([leader.host], [quorum.hosts[lost], quorum.hosts[behind]])
        world.run(20)
        assert not any(quorum.members[number].leads for number in (lost, behind))


def test_b3_a_quorum_begins_when_all_its_voters_have_met() -> None:
    with World(3) as world:
        quorum = watched(world)
        quorum.start(1, 2)
        world.run(10)
        # The third might be the one who knows what these two have forgotten.
        assert quorum.leader() is None
        quorum.start(3)
        quorum.await_leader(within=5)


def test_b3_a_quorum_that_has_begun_begins_again_with_a_majority() -> None:
    with World(4) as world:
        quorum = watched(world)
        quorum.start()
        quorum.await_leader(within=20)
        world.run(1)
        for host in quorum.hosts.values():
            host.kill()
        # Nothing was pinned: it is the directories that remember.
        quorum.start(1, 2)
        quorum.await_leader(within=5)


def test_b3_a_new_directory_takes_part_once_it_is_pinned() -> None:
    with World(5) as world:
        quorum = watched(world)
        quorum.start()
        leader = quorum.await_leader(within=20)
        lost, other = (n for n in quorum.hosts if n != leader.node_id)
        quorum.empty_directory(lost)
        pin(world, quorum, lost)
        quorum.start(lost)
        world.run_until(quorum.settled, within=5)
        quorum.hosts[other].kill()
        # Now two of three are needed, and the new directory is one of them.
        leader.host.kill()
        quorum.start(leader.node_id)
        quorum.await_leader(within=5)
        assert quorum.violations == []
