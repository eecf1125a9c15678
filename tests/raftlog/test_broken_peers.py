"""What a voter does when a proven peer sends what no voter of ours would say."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from logboat.jepsen_style.simulation import Host, World
from logboat.jepsen_style.simulation.quorum import DIRECTORY, Member, Quorum
from logboat.raftlog import Credential, RaftSettings, dial
from logboat.raftlog.feed_messages import FEED_SERVICE
from logboat.raftlog.snapshots import SnapshotId
from logboat.raftlog.transport import SERVICE
from tests.raftlog.quorum import SECRET, WITHIN_S
from tests.raftlog.quorum import Quorum as LoopbackQuorum


class Bomb:
    """Executed by whoever unpickles it."""

    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("executed",))


@pytest.mark.parametrize("service", [SERVICE, FEED_SERVICE])
async def test_a_pickle_from_one_who_has_the_secret_closes_the_connection(
    tmp_path: Path, service: str
) -> None:
    async with LoopbackQuorum(str(tmp_path)) as quorum:
        leader = await quorum.leader()
        gone = next(voter for voter in quorum.voters.values() if voter is not leader)
        await gone.abandon()
        host, port = quorum.addresses[leader.node_id]
        # Brokers outside the voters follow the feed; voters speak to each other.
        node_id = gone.node_id if service == SERVICE else 9
        for payload in (pickle.dumps(Bomb()), b"garbage", bytes(64), b""):
            channel = await dial(
                host,
                port,
                credential=Credential(SECRET, node_id, gone.directory_id, "cluster"),
                service=service,
                expected_node_id=leader.node_id,
                rng=Random(1),
                deadline=asyncio.get_running_loop().time() + WITHIN_S,
            )
            closed = asyncio.Event()
            channel.set_receiver(lambda payload: None, closed.set)
            channel.send([payload])
            async with asyncio.timeout(WITHIN_S):
                await closed.wait()
        # It was not our process that ended.
        await quorum.propose(b"still there")


SETTINGS = replace(
    RaftSettings.local(), compaction_entries=20, snapshot_chunk_bytes=256, segment_bytes=1 << 16
)


def fall_behind(world: World, quorum: Quorum) -> tuple[Member, Member]:
    """A leader, and a voter that is down and needs the leader's snapshot."""
    quorum.start()
    leader = quorum.await_leader()
    behind = next(each for each in quorum.members.values() if each is not leader)
    behind.host.kill()
    for _ in range(100):
        quorum.propose(leader)
        world.run(0.005)
    return leader, behind


def damage_snapshots(world: World, member: Member) -> None:
    with world.on(member.host.loop):
        disk = member.host.disk
        for name in disk.list(DIRECTORY):
            if name.startswith("snapshot-"):
                file = disk.open(f"{DIRECTORY}/{name}")
                (byte,) = file.read_at(150, 1)
                file.write_at(150, bytes([byte ^ 1]))
                file.close()


def test_a_leader_whose_snapshot_is_damaged_ends_before_it_sends_a_byte_of_it() -> None:
    with World(1) as world:
        ends: list[str] = []
        world.on_host_ended = lambda host, error: ends.append(f"{host.name}: {error}")
        quorum = Quorum(world, settings=SETTINGS)
        leader, behind = fall_behind(world, quorum)
        damage_snapshots(world, leader)
        quorum.start(behind.node_id)
        world.run(3)
        (end,) = ends
        assert end.startswith(f"{leader.host.name}: {DIRECTORY}/snapshot-")
        assert "broken snapshot: wrong CRC over " in end
        # The other one has the same snapshot, and it is whole.
        assert quorum.await_leader() is not leader
        acknowledged = {index: command for command, index in quorum.acknowledged.items()}
        world.run_until(
            lambda: acknowledged.items() <= quorum.members[behind.node_id].commands.items(),
            within=5,
        )
        assert quorum.violations == []


def test_a_broken_snapshot_from_the_leader_ends_the_process_and_none_of_it_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with World(1) as world:
        ends: list[str] = []
        world.on_host_ended = lambda host, error: ends.append(f"{host.name}: {error}")
        quorum = Quorum(world, settings=SETTINGS)
        leader, behind = fall_behind(world, quorum)
        assert leader.raft is not None
        store = leader.raft._store
        assert store is not None
        read_bytes = store.read_bytes

        async def read_and_damage(id: SnapshotId) -> bytes:
            data = bytearray(await read_bytes(id))
            data[150] ^= 1
            return bytes(data)

        monkeypatch.setattr(store, "read_bytes", read_and_damage)
        quorum.start()
        world.run(3)
        (end,) = ends
        assert end.startswith(f"{behind.host.name}: broken snapshot received: wrong CRC")
        assert not any(index > 1 for index in quorum.members[behind.node_id].commands)


class Refusing(Member):
    """Cannot make sense of any snapshot."""

    def decode(self, snapshot: bytes) -> Callable[[int], None]:
        raise ValueError("half a state")


class RefusingQuorum(Quorum):
    refusing = False

    def member(self, host: Host, number: int) -> Member:
        return (Refusing if self.refusing else Member)(self, host, number)


def test_a_snapshot_that_the_machine_cannot_decode_ends_the_process() -> None:
    """The engine would log it and go on as if it had loaded the state."""
    with World(1) as world:
        ends: list[str] = []
        world.on_host_ended = lambda host, error: ends.append(f"{host.name}: {error}")
        quorum = RefusingQuorum(world, settings=SETTINGS)
        _, behind = fall_behind(world, quorum)
        quorum.refusing = True
        quorum.start()
        world.run(3)
        assert ends == [f"{behind.host.name}: half a state"]
