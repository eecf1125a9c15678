"""Commands whose application takes many turns of the loop (RULES F1), on a whole quorum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.quorum import Member, Quorum
from logboat.raftlog import RaftSettings
from logboat.raftlog.interface import Steps

STEP_S = 0.002
SETTINGS = RaftSettings(
    election_min_s=0.3,
    election_max_s=0.6,
    fallback_s=0.45,
    heartbeat_s=0.075,
    compaction_entries=40,
    work_per_turn=16,
)


class Laborious(Member):
    """Its commands take up to `longest` steps of a turn each, as many as their number draws."""

    longest = 20

    def __init__(self, quorum: Quorum, host: Host, node_id: int) -> None:
        super().__init__(quorum, host, node_id)
        self.under_way: int | None = None
        self.dropped = 0
        """Commands whose place a snapshot took while they were under way."""

    def apply(self, index: int, command: bytes) -> object:
        return self._in_steps(index, command)

    def _in_steps(self, index: int, command: bytes) -> Steps:
        if self.under_way is not None:
            self._quorum.violations.append(f"{index} begins while {self.under_way} is under way")
        self.under_way = index
        for _ in range(Random(command).choice((0, self.longest // 8, self.longest))):
            self.host.spend(STEP_S)
            yield SETTINGS.work_per_turn
        self.under_way = None
        return super().apply(index, command)

    def capture(self) -> Callable[[], bytes]:
        if self.under_way is not None:
            self._quorum.violations.append(f"a snapshot while {self.under_way} is under way")
        return super().capture()

    def restore(self, index: int, snapshot: bytes) -> None:
        self.dropped += self.under_way is not None
        self.under_way = None
        super().restore(index, snapshot)


class LaboriousQuorum(Quorum):
    def member(self, host: Host, number: int) -> Laborious:
        return Laborious(self, host, number)


@contextmanager
def quorum_of(seed: int) -> Iterator[tuple[World, LaboriousQuorum]]:
    with World(seed) as world:
        quorum = LaboriousQuorum(world, settings=SETTINGS)
        quorum.start()
        quorum.await_leader()
        yield world, quorum
        assert quorum.violations == []
        assert quorum.missing() == []
        assert quorum.resurrected() == []


def settle(world: World, quorum: Quorum) -> None:
    quorum.await_leader()
    asked = quorum.propose(quorum.await_leader())
    world.run_until(lambda: asked in quorum.acknowledged and quorum.settled(), within=30)


def laborious(member: Member | None) -> Laborious:
    assert isinstance(member, Laborious)
    return member


def test_f1_a_command_of_a_second_costs_the_leader_nothing() -> None:
    """Heartbeats go on, and whoever asked is answered when the command is applied, not before."""
    with quorum_of(1) as (world, quorum):
        terms, leader = dict(quorum.leader_of_term), laborious(quorum.leader())
        for member in quorum.members.values():
            laborious(member).longest = 500
        asked = [quorum.propose(leader) for _ in range(4)]
        world.run(0.5)
        assert leader.under_way is not None
        assert not all(command in quorum.acknowledged for command in asked)
        world.run_until(lambda: all(command in quorum.acknowledged for command in asked), within=9)
        assert world.now > 1.0
        settle(world, quorum)
        assert quorum.leader_of_term == terms


@pytest.mark.parametrize("seed", range(2))
def test_nodes_that_die_between_two_steps_lose_and_repeat_nothing(seed: int) -> None:
    with quorum_of(seed) as (world, quorum):
        dice, interrupted = Random(seed), 0
        quorum.propose_steadily(30)
        for _ in range(6):
            victim = laborious(quorum.members[dice.choice(list(quorum.hosts))])
            while victim.under_way is None:
                world.run(0.01)
            interrupted += victim.under_way is not None
            if dice.random() < 0.5:
                victim.host.power_off(Keep.NONE)
            else:
                victim.host.kill()
            world.run(dice.random())
            quorum.start()
        settle(world, quorum)
        assert interrupted > 1
        assert len(quorum.acknowledged) > 30


def test_a_snapshot_takes_the_place_of_a_command_under_way() -> None:
    """On a voter that was away: it needs long to apply what its own journal holds."""
    with quorum_of(2) as (world, quorum):
        leader = quorum.await_leader()
        away = next(number for number, m in quorum.members.items() if m is not leader)
        quorum.propose_steadily(50)
        for member in quorum.members.values():
            laborious(member).longest = 0
        world.run(0.7)
        quorum.hosts[away].kill()
        world.run(2.0)
        quorum.start()
        back = laborious(quorum.members[away])
        back.longest = 100
        world.run_until(lambda: back.dropped > 0, within=10)
        back.longest = 0
        settle(world, quorum)
