"""Nodes outside the voters on virtual time: what they follow, through everything voters suffer."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.cluster import Cluster
from logboat.jepsen_style.simulation.kafka_client import KafkaClient
from logboat.jepsen_style.simulation.quorum import SECRET, Member, Quorum
from logboat.raftlog import Credential, NotLeader, Observer, RaftSettings, Role

SETTINGS = replace(RaftSettings.local(), compaction_entries=60, snapshot_chunk_bytes=512)
"""The log is cut all the time, and a snapshot takes several questions."""


class Follower(Member):
    """One incarnation of an observer; its machine is that of a voter."""

    observer: Observer | None = None

    async def main(self, host: Host) -> None:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        self.observer = Observer(
            credential=Credential(SECRET, self.node_id, UUID(int=self.node_id), "simulated"),
            voters=self._quorum.voters,
            settings=self._quorum.settings,
            rng=host.rng,
            machine=self,
            on_role=self._on_role,
            on_fatal=ended.set_exception,
        )
        await self.observer.start()
        self.started = True
        await ended

    def restore(self, index: int, snapshot: bytes) -> None:
        assert index > self._last_index, "an observer went back"
        super().restore(index, snapshot)
        for at, command in self.commands.items():
            self._quorum.on_applied(self.node_id, at, command)

    @property
    def status(self) -> object:
        assert self.observer is not None
        return self.observer.status()


class Observed:
    """Three voters and observers 11, 12, ... on hosts `o11`, ..."""

    def __init__(self, world: World, *, observers: int = 2) -> None:
        self.world = world
        self.quorum = Quorum(world, settings=SETTINGS)
        self.hosts = {n: world.host(f"o{n}") for n in range(11, 11 + observers)}
        self.followers: dict[int, Follower] = {}

    def start(self) -> None:
        self.quorum.start()
        for number, host in self.hosts.items():
            if not host.alive:
                follower = self.followers[number] = Follower(self.quorum, host, number)
                host.start(follower.main)

    def caught_up(self) -> bool:
        """Everything acknowledged is on every observer, and nothing else than on the voters."""
        return all(
            follower.commands.get(index) == command
            for command, index in self.quorum.acknowledged.items()
            for follower in self.followers.values()
        )

    def followed(self, number: int) -> int | None:
        """The voter that an observer is connected to."""
        observer = self.followers[number].observer
        assert observer is not None
        peers = observer.status().peers
        return next((voter for voter, peer in peers.items() if peer.connected), None)

    def all_follow_the_leader(self) -> bool:
        leader = self.quorum.leader()
        return leader is not None and all(
            self.followed(number) == leader.node_id for number in self.followers
        )


def test_observers_follow_the_leader_and_hold_what_was_acknowledged_soon_after() -> None:
    with World(1) as world:
        observed = Observed(world)
        observed.start()
        observed.quorum.await_leader()
        world.run_until(observed.all_follow_the_leader, within=5)
        observed.quorum.propose_steadily(50)
        world.run(3)
        assert len(observed.quorum.acknowledged) > 100
        world.run(0.05)
        assert observed.quorum.violations == []
        late = [
            command
            for command, index in observed.quorum.acknowledged.items()
            if any(
                follower.commands.get(index) != command for follower in observed.followers.values()
            )
        ]
        # Not behind by more than what was proposed within one round trip.
        assert len(late) <= 5


def test_an_observer_never_votes_and_never_counts() -> None:
    with World(2) as world:
        observed = Observed(world, observers=3)
        observed.start()
        leader = observed.quorum.await_leader()
        others = [n for n in observed.quorum.hosts if n != leader.node_id]
        for number in others:
            observed.quorum.hosts[number].kill()
        before = len(observed.quorum.acknowledged)
        observed.quorum.propose(leader)
        world.run(5)
        assert len(observed.quorum.acknowledged) == before
        assert observed.quorum.leader() is None
        for follower in observed.followers.values():
            assert follower.observer is not None
            assert follower.observer.status().role is Role.OBSERVER
            assert follower.observer.status().leader_id is None


def test_the_leader_knows_how_far_each_observer_has_come() -> None:
    with World(3) as world:
        observed = Observed(world)
        observed.start()
        leader = observed.quorum.await_leader()
        observed.quorum.propose(leader)
        world.run(3)
        assert leader.raft is not None
        status = leader.raft.status()
        assert sorted(status.observers) == [11, 12]
        for number, seen in status.observers.items():
            assert seen.directory_id == UUID(int=number)
            assert seen.match_index == status.applied_index
            assert seen.caught_up_at is not None
        # Paused, it is shown as it was, and behind.
        observed.hosts[11].pause()
        for _ in range(5):
            observed.quorum.propose(leader)
        world.run(1)
        status = leader.raft.status()
        paused, well = status.observers[11], status.observers[12]
        assert paused.match_index < well.match_index == status.applied_index
        assert paused.caught_up_at is not None
        assert well.caught_up_at is not None
        assert paused.caught_up_at < well.caught_up_at


def test_an_observer_whose_place_was_compacted_installs_a_snapshot() -> None:
    with World(4) as world:
        observed = Observed(world, observers=1)
        observed.start()
        observed.quorum.await_leader()
        world.run(1)
        observed.quorum.propose_steadily(100)
        observed.hosts[11].pause()
        world.run(5)
        observed.hosts[11].resume()
        world.run(2)
        observer = observed.followers[11].observer
        assert observer is not None
        assert observer.status().snapshot_index > 60
        # From nothing, a restarted one gets there as well.
        observed.hosts[11].power_off(Keep.NONE)
        observed.start()
        world.run(2)
        world.run_until(observed.caught_up, within=2)
        assert observed.quorum.violations == []


def test_an_observer_cut_off_from_the_leader_follows_another_voter_and_then_the_leader() -> None:
    with World(5) as world:
        observed = Observed(world, observers=1)
        observed.start()
        leader = observed.quorum.await_leader()
        world.run_until(observed.all_follow_the_leader, within=5)
        world.network.partition([observed.hosts[11]], [leader.host])
        observed.quorum.propose_steadily(20)
        world.run(6)
        assert observed.followed(11) not in (None, leader.node_id)
        assert leader.leads
        before = dict(observed.quorum.acknowledged)
        world.run(0.3)
        assert all(observed.followers[11].commands.get(i) == c for c, i in before.items())
        world.network.heal()
        world.run_until(observed.all_follow_the_leader, within=5)


def test_a_voter_that_is_alone_is_left_for_one_that_hears_the_leader() -> None:
    with World(6) as world:
        observed = Observed(world, observers=1)
        observed.start()
        leader = observed.quorum.await_leader()
        world.run_until(observed.all_follow_the_leader, within=5)
        # The leader is cut from the other voters, but not from its observer.
        others = [host for n, host in observed.quorum.hosts.items() if n != leader.node_id]
        world.network.partition([leader.host], others)
        observed.quorum.propose_steadily(20)
        world.run(8)
        assert observed.quorum.leader() is not leader
        assert observed.all_follow_the_leader()


async def test_an_observer_proposes_nothing() -> None:
    observer = Observer(
        credential=Credential(SECRET, 4, UUID(int=4), "simulated"),
        voters={1: ("n1", 1)},
        settings=RaftSettings(),
        rng=random.Random(1),
        machine=None,  # type: ignore[arg-type]
        on_role=lambda *_: None,
        on_fatal=lambda _: None,
    )
    assert await observer.propose(b"command", 0.0) == NotLeader(None)
    assert await observer.barrier(0.0) == NotLeader(None)


@pytest.mark.parametrize("seed", range(3))
def test_observers_hold_the_same_as_voters_after_faults_of_all_kinds(seed: int) -> None:
    dice = random.Random(seed)
    with World(seed) as world:
        observed = Observed(world)
        observed.start()
        observed.quorum.await_leader()
        observed.quorum.propose_steadily(50)
        voters, watchers = list(observed.quorum.hosts.values()), list(observed.hosts.values())
        for _ in range(10):
            world.run(0.2 + dice.random() * 0.8)
            host = dice.choice(voters + watchers + watchers)
            others = [other for other in voters + watchers if other is not host]
            kind = dice.choice(("kill", "power", "cut", "one-way", "pause", "stall", "reset"))
            if kind == "kill":
                host.kill()
            elif kind == "power":
                host.power_off(dice.choice(list(Keep)))
            elif kind == "cut":
                world.network.partition([host], dice.sample(others, 2))
            elif kind == "one-way":
                world.network.block(host, dice.choice(others))
            elif kind == "pause" and host.alive:
                host.pause()
            elif kind == "stall":
                host.stall(dice.random())
            else:
                world.network.reset(host, dice.choice(others))
            world.run(dice.random() * 1.5)
            world.network.heal()
            for each in voters + watchers:
                each.resume()
            observed.start()
        before = len(observed.quorum.acknowledged)
        world.run_until(lambda: len(observed.quorum.acknowledged) > before + 50, within=20)
        acknowledged = dict(observed.quorum.acknowledged)
        world.run(3)
        for follower in observed.followers.values():
            missing = [c for c, i in acknowledged.items() if follower.commands.get(i) != c]
            assert missing == []
        assert observed.quorum.violations == []
        world.run_until(observed.all_follow_the_leader, within=10)


# Whole nodes

TOPIC = "observed"


async def produce_steadily(client: KafkaClient, acknowledged: dict[int, bytes]) -> None:
    number = 0
    while True:
        value = b"record %d" % number
        number += 1
        try:
            offset = await client.produce(TOPIC, 0, [value], within=20)
        except TimeoutError:
            continue
        assert offset not in acknowledged
        acknowledged[offset] = value
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("seed", [1, 2])
def test_brokers_outside_the_quorum_host_replicas_through_faults_and_lose_nothing(
    seed: int,
) -> None:
    """Five nodes, three voters: crashes, cuts and power losses of both kinds of nodes."""
    dice = random.Random(seed)
    acknowledged: dict[int, bytes] = {}
    with World(seed) as world:
        cluster = Cluster(world, nodes=5, voters=3, settings={"default.replication.factor": "5"})
        cluster.start()
        hosts = list(cluster.hosts.values())

        # Through an observer first: forwarded to the controller, and true here at once (RULES A6).
        def only(number: int) -> KafkaClient:
            return KafkaClient({number: (cluster.hosts[number].name, 9092)})

        async def create_and_look(_: KafkaClient) -> int:
            client = only(5)
            try:
                await client.create_topic(TOPIC, partitions=1, replication_factor=5)
                return len((await client.partitions(TOPIC))[0].replicas)
            finally:
                client.close()

        assert cluster.run(create_and_look) == 5
        producing = cluster.spawn(partial(produce_steadily, acknowledged=acknowledged))
        world.run_until(lambda: len(acknowledged) > 5, within=10)
        for number in (4, 1, 5, 2, 3):
            victim = cluster.hosts[number]
            others = [host for host in hosts if host is not victim]
            fault = dice.choice(("kill", "power", "cut", "pause"))
            if fault == "kill":
                victim.kill()
            elif fault == "power":
                victim.power_off(dice.choice(list(Keep)))
            elif fault == "cut":
                world.network.partition([victim], others)
            else:
                victim.pause()
            world.run(0.5 + dice.random() * 2)
            world.network.heal()
            victim.resume()
            cluster.start()
            world.run(0.5)
        before = len(acknowledged)
        world.run_until(lambda: len(acknowledged) > before + 20, within=15)
        assert not producing.done()
        producing.cancel()
        end = world.now + 20
        while len(cluster.run(lambda client: client.partitions(TOPIC))[0].isr) < 5:
            assert world.now < end, "not in sync again"
            world.run(0.2)
        found = cluster.run(lambda client: client.read_all(TOPIC, 0))
        assert [o for o, value in acknowledged.items() if found.get(o) != value] == []
