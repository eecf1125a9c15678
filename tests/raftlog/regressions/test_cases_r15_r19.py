"""Cases R15 and R19: what others lost by a term, a vote or a set of voters that was not durable.

R17 stands with the findings of the engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from logboat.jepsen_style.raft_scope.controls import guards_of
from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.crash_point import CrashPoint
from logboat.jepsen_style.simulation.quorum import DIRECTORY, PORT, SECRET, Member, Quorum
from logboat.raftlog import Channel, Credential, RaftSettings, accept_factory
from logboat.raftlog.guards import Guard
from logboat.raftlog.messages import Holdings, Vote, VoteRequest, decode_message
from tests.raftlog.regressions.test_engine_findings import hand
from tests.raftlog.regressions.test_more_findings import commit_ahead_of_journal

SETTINGS = replace(RaftSettings.local(), compaction_entries=20, segment_bytes=1 << 16)


def settle(world: World, quorum: Quorum, *, within: float = 10.0) -> None:
    world.run(0.5)
    world.run_until(quorum.settled, within=within)
    assert quorum.violations == []
    assert quorum.missing() == []


# R15


def test_r15_terms_only_grow_and_nothing_acknowledged_is_lost_when_all_restart_apart() -> None:
    endings = (None, *Keep)
    with World(1) as world:
        quorum = Quorum(world, settings=SETTINGS)
        quorum.start()
        highest = 0
        for number in range(30):
            leader = quorum.await_leader()
            for _ in range(20):
                quorum.propose(leader)
            world.run(0.03)
            assert max(quorum.leader_of_term) > highest
            highest = max(quorum.leader_of_term)
            keep = endings[number % len(endings)]
            for host in quorum.hosts.values():
                if keep is None:
                    host.kill()
                else:
                    host.power_off(keep)
            for delay, voter in zip((0.0, 0.1, 0.2), (1, 2, 3), strict=True):
                world.run(delay)
                quorum.start(voter)
        quorum.await_leader()
        assert len(quorum.acknowledged) >= 300
        settle(world, quorum)


@dataclass
class Candidate:
    """Stands for a voter: takes what the one under test says to it, and keeps its votes."""

    node_id: int
    votes: list[int] = field(default_factory=list)

    async def main(self, quorum: Quorum, host: Host) -> None:
        credential = Credential(
            SECRET, self.node_id, quorum.directory_ids[self.node_id], "simulated"
        )

        def adopt(channel: Channel) -> None:
            channel.set_receiver(self._on_frame, lambda: None)

        await host.loop.create_server(accept_factory(credential, host.rng, adopt), None, PORT)
        await asyncio.Event().wait()

    def _on_frame(self, payload: memoryview) -> None:
        message = decode_message(payload)
        if isinstance(message, Vote):
            self.votes.append(message.term)


TERM = 50


def votes_around_a_crash(
    number: int, keep: Keep | None, guards: Sequence[type[Guard]]
) -> tuple[list[int], bool]:
    """Who got a vote of term 50 from a voter that ends before the n-th change of its disk.

    Two candidates ask, one before and one after its restart. Also whether there was such a change.
    """
    with World(number) as world:
        quorum = Quorum(world, guards=guards)
        candidates = [Candidate(1), Candidate(2)]
        for candidate in candidates:
            quorum.hosts[candidate.node_id].start(partial(candidate.main, quorum))
        voter = start_voter(world, quorum)
        for candidate in candidates:
            hand(voter, candidate.node_id, Holdings(empty=True))
        world.run(0.1)
        crash = CrashPoint(voter.host, number, keep)
        hand(voter, 1, VoteRequest(TERM, last_log_index=10, last_log_term=9))
        world.run(0.2)
        voter.host.drive.on_call = None
        if voter.host.alive:
            voter.host.kill()
        voter = start_voter(world, quorum)
        hand(voter, 2, VoteRequest(TERM, last_log_index=99, last_log_term=9))
        world.run(0.2)
        return [c.node_id for c in candidates if TERM in c.votes], crash.reached


def start_voter(world: World, quorum: Quorum) -> Member:
    quorum.start(3)
    voter = quorum.members[3]
    world.run_until(lambda: voter.started, within=5)
    # For one election timeout it takes some leader for alive.
    world.run(SETTINGS.election_min_s + 0.05)
    return voter


@pytest.mark.parametrize(
    ("guards", "wrong"),
    [
        pytest.param(guards_of(bare=True), True, id="bare"),
        pytest.param(guards_of(), False, id="ours"),
    ],
)
def test_r15_a_voter_votes_once_in_a_term_wherever_its_power_fails(
    guards: Sequence[type[Guard]], wrong: bool
) -> None:
    twice = False
    for keep in (None, Keep.NONE):
        for number in range(1, 100):
            given, reached = votes_around_a_crash(number, keep, guards)
            twice |= len(given) > 1
            if not reached:
                # It lived on: the first has the vote, and the second has not.
                assert given == [1]
                break
        assert number > 1
    assert twice is wrong


def test_r15_a_commit_index_beyond_the_log_is_lowered_with_a_warning_and_the_node_starts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with World(1) as world, caplog.at_level(logging.WARNING):
        quorum = Quorum(world)
        for host in quorum.hosts.values():
            host.start(commit_ahead_of_journal)
        world.run(1)
        quorum.start()
        leader = quorum.await_leader()
        quorum.propose(leader)
        world.run(0.5)
        assert len(quorum.acknowledged) == 1
        settle(world, quorum)
    assert caplog.text.count("commit index 100 lowered to the end of the journal, 3") == 3


# R19


def test_r19_an_old_snapshot_brings_no_voters_back() -> None:
    """Every node goes by its configuration, after a snapshot from a leader and after restarts."""
    with World(1) as world:
        quorum = Quorum(world, settings=SETTINGS)
        quorum.start()
        leader = quorum.await_leader()
        behind = next(number for number, each in quorum.members.items() if each is not leader)
        quorum.hosts[behind].kill()
        for _ in range(100):
            quorum.propose(leader)
            world.run(0.005)
        quorum.start()
        settle(world, quorum)
        for host in quorum.hosts.values():
            host.kill()
        quorum.start()
        quorum.await_leader()
        settle(world, quorum)
        for number, member in quorum.members.items():
            assert member.raft is not None
            status = member.raft.status()
            assert status.snapshot_index > 0
            assert {number, *status.peers} == {1, 2, 3}


@pytest.mark.parametrize("voters", [{1}, {1, 2}, {1, 4, 5}, {1, 2, 3, 4}])
def test_r19_a_configuration_with_other_voters_is_refused_and_makes_no_second_majority(
    voters: set[int],
) -> None:
    with World(1) as world:
        ends: list[str] = []
        world.on_host_ended = lambda host, error: ends.append(f"{host.name}: {error}")
        quorum = Quorum(world)
        quorum.start()
        quorum.await_leader()
        world.run(0.5)
        quorum.hosts[1].kill()
        right, quorum.voters = quorum.voters, {n: (f"q{n}", PORT) for n in sorted(voters)}
        for number in sorted(voters - {1, 2, 3}):
            world.host(f"q{number}")
        quorum.start(1)
        world.run(5)
        (end,) = ends
        assert end.startswith(f"q1: {DIRECTORY}/voters: this node belongs to the quorum of voters")
        assert "1,2,3" in end
        assert ",".join(str(voter) for voter in sorted(voters)) in end
        # The others went on, and with the right configuration it comes back.
        quorum.voters = right
        leader = quorum.await_leader()
        quorum.propose(leader)
        quorum.start(1)
        settle(world, quorum)
        assert len(quorum.acknowledged) == 1


def test_r19_addresses_may_change() -> None:
    with World(1) as world:
        quorum = Quorum(world)
        quorum.start()
        quorum.await_leader()
        for host in quorum.hosts.values():
            host.kill()
        quorum.voters = {n: (h.ip, PORT) for n, h in quorum.hosts.items()}
        quorum.start()
        quorum.await_leader()


def test_r19_a_stranger_that_asks_for_votes_is_not_heard() -> None:
    """A removed voter that still runs, or one of another configuration (case R17 too)."""
    with World(1) as world:
        quorum = Quorum(world)
        quorum.start()
        leader = quorum.await_leader()
        term = max(quorum.leader_of_term)
        stranger = world.host("q4")
        quorum.hosts[4] = stranger
        quorum.directory_ids[4] = quorum.directory_ids[1]
        real = quorum.voters
        quorum.voters = {**real, 4: ("q4", PORT)}
        quorum.start(4)
        world.run(3)
        assert quorum.leader() is leader
        assert max(quorum.leader_of_term) == term
