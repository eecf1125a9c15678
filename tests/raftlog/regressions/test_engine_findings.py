"""What pysyncobj 0.3.17 does wrong in its rules: each shown on the bare engine, then on ours.

Both run through the same harness: our journal, transport and driver, with and without the guards.
What it does wrong in the parts that we replaced stands in `test_more_findings.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from logboat.jepsen_style.raft_scope.controls import guards_of
from logboat.jepsen_style.raft_scope.shape import shape_of
from logboat.jepsen_style.raft_scope.watched_quorum import WatchedQuorum
from logboat.jepsen_style.simulation import World
from logboat.jepsen_style.simulation.quorum import Member, Quorum
from logboat.raftlog import RaftSettings
from logboat.raftlog.driver import Driver
from logboat.raftlog.guards import (
    Backtracking,
    DurableFirst,
    Guard,
    GuardContext,
    NoNeedlessTruncation,
    PreVoting,
    SnapshotCommit,
    SnapshotSpin,
    TermOfAnswers,
)
from logboat.raftlog.messages import Ack, Append, Message, SnapshotOffer

BARE = guards_of(bare=True)
OURS = guards_of()


def bare_and(*, corrected_by: type[Guard]) -> pytest.MarkDecorator:
    """On the bare engine, on the bare engine with the one guard, and on ours.

    `wrong`: whether the finding shows.
    """
    return pytest.mark.parametrize(
        ("guards", "wrong"),
        [
            pytest.param(BARE, True, id="bare"),
            pytest.param([corrected_by], False, id=corrected_by.name),
            pytest.param(OURS, False, id="ours"),
        ],
    )


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


def write_while_cut_off(
    world: World, quorum: Quorum, *, alone: int, without_it: int
) -> tuple[Member, list[bytes]]:
    """Cut a leader off; it goes on alone, the others under a new leader. Then heal.

    The former leader and what it was told while nobody heard it.
    """
    former = quorum.await_leader()
    cut_off(world, quorum, former)
    alone_commands = [quorum.propose(former) for _ in range(alone)]
    world.run_until(lambda: quorum.leader() not in (None, former), within=5)
    for _ in range(without_it):
        leader = quorum.leader()
        assert leader is not None
        quorum.propose(leader)
        world.run(0.005)
    world.network.heal()
    return former, alone_commands


@bare_and(corrected_by=SnapshotCommit)
def test_a_a_snapshot_in_transit_acknowledges_nothing(
    guards: Sequence[type[Guard]], wrong: bool
) -> None:
    with World(2) as world:
        quorum = Quorum(world, settings=SETTINGS, guards=guards)
        quorum.start()
        # The former leader must ask for what has been compacted, while its callers still wait.
        _, lost = write_while_cut_off(world, quorum, alone=8, without_it=100)
        world.run(3)
        assert any(command in quorum.acknowledged for command in lost) is wrong


@bare_and(corrected_by=NoNeedlessTruncation)
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


@bare_and(corrected_by=TermOfAnswers)
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


@bare_and(corrected_by=Backtracking)
def test_d_a_follower_with_a_divergent_tail_catches_up_through_a_long_backlog(
    guards: Sequence[type[Guard]], wrong: bool
) -> None:
    settings = replace(SETTINGS, compaction_entries=0, max_command_bytes=64, append_bytes=128)
    with World(1) as world:
        quorum = Quorum(world, settings=settings, guards=guards)
        quorum.start()
        write_while_cut_off(world, quorum, alone=40, without_it=200)
        # The backlog is many appends: the first is answered "go back one", the next "start at my
        # end", and the last answer wins.
        world.run(20)
        assert quorum.settled() is not wrong


class CountOffers(Guard):
    """Innermost: sees what the engine wants to send before any guard does."""

    def __init__(self, node: GuardContext, spins: list[float]) -> None:
        super().__init__(node)
        self._spins = spins
        self._last = deque([0.0], maxlen=100)

    def on_send(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, SnapshotOffer) and not message.available:
            now = self.node.now()
            self._last.append(now)
            if now - self._last[0] < self.node.settings.heartbeat_s:
                self._spins.append(now)
                raise AssertionError("the engine spins")
        return message


@bare_and(corrected_by=SnapshotSpin)
def test_e_a_snapshot_that_is_not_ready_is_not_offered_in_a_loop(
    guards: Sequence[type[Guard]], wrong: bool
) -> None:
    spins: list[float] = []
    count: Callable[..., Guard] = partial(CountOffers, spins=spins)
    with World(6) as world:
        world.on_host_ended = lambda host, error: None
        quorum = Quorum(world, settings=SETTINGS, guards=[*guards, count])
        quorum.start()
        leader = quorum.await_leader()
        behind = next(each for each in quorum.members.values() if each is not leader)
        # Connected and silent, while what it lacks is being compacted away.
        behind.host.pause()
        for _ in range(100):
            quorum.propose(leader)
            world.run(0.005)
        # Two of its answers were under way. To the first it is given the snapshot; to the second
        # there is none to give, since one is being read for it already.
        for _ in range(2):
            term = driver_of(leader).term
            hand(leader, behind.node_id, Ack(term, 2, reset=True, success=False))
            quorum.propose(leader)
            world.run(1e-4)
        behind.host.resume()
        world.run(2)
        assert (spins != []) is wrong
        assert quorum.settled() is not wrong


@bare_and(corrected_by=DurableFirst)
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


@bare_and(corrected_by=PreVoting)
def test_r17_a_voter_that_only_sends_costs_at_most_one_change_of_leader(
    guards: Sequence[type[Guard]], wrong: bool
) -> None:
    with World(5) as world:
        quorum = Quorum(world, settings=SETTINGS, guards=guards)
        quorum.start()
        leader = quorum.await_leader()
        world.run_until(lambda: bool(quorum.leader_of_term), within=1)
        deaf = next(each for each in quorum.members.values() if each is not leader)
        terms = len(quorum.leader_of_term)
        for other in quorum.members.values():
            if other is not deaf:
                world.network.block(other.host, deaf.host)
        world.run(30)
        world.network.heal()
        world.run(2)
        assert (len(quorum.leader_of_term) - terms > 1) is wrong
