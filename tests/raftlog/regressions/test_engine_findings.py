"""What pysyncobj 0.3.17 does wrong, each shown on the bare engine and corrected on ours.

Both run through the same harness: our journal, transport and driver, with and without the guards.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from logboat.jepsen_style.raft_scope.controls import guards_of
from logboat.jepsen_style.raft_scope.shape import shape_of
from logboat.jepsen_style.raft_scope.watched_quorum import WatchedQuorum
from logboat.jepsen_style.simulation import World
from logboat.jepsen_style.simulation.quorum import Member, Quorum
from logboat.raftlog import RaftSettings
from logboat.raftlog.driver import Driver
from logboat.raftlog.guards import Guard
from logboat.raftlog.messages import Ack, Append, Message

BARE = guards_of(bare=True)
OURS = guards_of()
SETTINGS = RaftSettings(
    election_min_s=0.3,
    election_max_s=0.6,
    fallback_s=0.45,
    heartbeat_s=0.075,
    compaction_entries=20,
    max_command_bytes=2048,
    append_bytes=4096,
    snapshot_chunk_bytes=256,
)


def driver_of(member: Member) -> Driver:
    assert member.raft is not None
    assert member.raft._driver is not None
    return member.raft._driver


def hand(member: Member, peer: int, message: Message) -> None:
    """Deliver a message as if it had come from `peer`."""
    with member.host.world.on(member.host.loop):
        driver_of(member).receive(peer, message)


def cut_off(world: World, quorum: Quorum, member: Member) -> list[Member]:
    others = [each for each in quorum.members.values() if each is not member]
    world.network.partition([member.host], [each.host for each in others])
    return others


@pytest.mark.parametrize(("guards", "wrong"), [(BARE, True), (OURS, False)])
def test_a_a_snapshot_in_transit_acknowledges_nothing(
    guards: Sequence[type[Guard]], wrong: bool
) -> None:
    with World(1) as world:
        quorum = Quorum(world, settings=SETTINGS, guards=guards)
        quorum.start()
        old = quorum.await_leader()
        cut_off(world, quorum, old)
        lost = [quorum.propose(old) for _ in range(8)]
        world.run_until(lambda: quorum.leader() not in (None, old), within=2)
        for _ in range(100):
            leader = quorum.leader()
            assert leader is not None
            quorum.propose(leader)
            world.run(0.005)
        # The old leader must ask for what has been compacted, while its callers still wait.
        world.network.heal()
        world.run(3)
        assert any(command in quorum.acknowledged for command in lost) is wrong


@pytest.mark.parametrize(("guards", "wrong"), [(BARE, True), (OURS, False)])
def test_b_an_append_sent_again_takes_nothing_acknowledged_away(
    guards: Sequence[type[Guard]], wrong: bool
) -> None:
    with World(2) as world:
        quorum = Quorum(world, settings=SETTINGS, guards=guards)
        quorum.start()
        leader = quorum.await_leader()
        follower = next(each for each in quorum.members.values() if each is not leader)
        world.run(0.1)
        for each in quorum.members.values():
            if each is not leader:
                world.network.block(each.host, leader.host)
        for _ in range(10):
            quorum.propose(leader)
        world.run(0.1)
        # The follower holds all ten, and its acknowledgement is on the way.
        journal = driver_of(follower).journal
        held = journal.last_index
        assert journal.synced_index == held
        entries = list(journal.entries)
        _, index, term = entries[-11]
        again = Append(journal.term, index, index, term, entries[-10:-8])
        hand(follower, leader.node_id, again)
        assert (journal.last_index < held) is wrong


@pytest.mark.parametrize(("guards", "wrong"), [(BARE, True), (OURS, False)])
def test_c_an_answer_of_an_earlier_term_does_not_commit(
    guards: Sequence[type[Guard]], wrong: bool
) -> None:
    with World(3) as world:
        quorum = Quorum(world, settings=SETTINGS, guards=guards)
        quorum.start()
        leader = quorum.await_leader()
        others = cut_off(world, quorum, leader)
        alone = quorum.propose(leader)
        world.run(0.05)
        journal = driver_of(leader).journal
        late = Ack(journal.term - 1, journal.last_index + 1, reset=False, success=True)
        hand(leader, others[0].node_id, late)
        world.run(0.05)
        assert (alone in quorum.acknowledged) is wrong


@pytest.mark.parametrize(("guards", "wrong"), [(BARE, True), (OURS, False)])
def test_j_and_r15_votes_and_acknowledgements_leave_after_their_sync(
    guards: Sequence[type[Guard]], wrong: bool
) -> None:
    with World(4) as world:
        quorum = WatchedQuorum(world, nodes=3, shape=shape_of(4), guards=guards)
        quorum.start()
        quorum.await_leader(within=20)
        quorum.propose_steadily(20)
        world.run(3)
        assert any(text.startswith("sync: ") for text in quorum.violations) is wrong


@pytest.mark.parametrize(("guards", "wrong"), [(BARE, True), (OURS, False)])
def test_r17_a_voter_that_only_sends_costs_at_most_one_change_of_leader(
    guards: Sequence[type[Guard]], wrong: bool
) -> None:
    with World(5) as world:
        quorum = Quorum(world, settings=SETTINGS, guards=guards)
        quorum.start()
        leader = quorum.await_leader()
        deaf = next(each for each in quorum.members.values() if each is not leader)
        terms = len(quorum.leader_of_term)
        for other in quorum.members.values():
            if other is not deaf:
                world.network.block(other.host, deaf.host)
        world.run(30)
        world.network.heal()
        world.run(2)
        assert (len(quorum.leader_of_term) - terms > 1) is wrong
