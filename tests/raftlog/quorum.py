"""Voters in one process over real loopback connections, for the tests of this part."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from uuid import UUID

from logboat.raftlog import (
    Acceptor,
    Applied,
    ChannelTls,
    Credential,
    RaftLog,
    RaftSettings,
    Role,
    accept_factory,
)
from logboat.raftlog.guards import ALL_GUARDS, GuardFactory
from logboat.seam import Disk, accept_no_more
from logboat.seam.real_disk import RealDisk
from tests.free_ports import free_ports

SECRET = b"q" * 32

WITHIN_S = 30.0
"""For what is only a matter of time, on a machine that does much else."""

SETTINGS = RaftSettings()
"""Those of machines apart: the leader of a test keeps its office while other work holds up the
loop, or a sync, for half a second."""


class Register:
    """A state machine that remembers every command in order."""

    def __init__(self) -> None:
        self.applied: list[tuple[int, bytes]] = []
        self.restored_at: list[int] = []
        self.decoded_beside_the_loop = False

    def apply(self, index: int, command: bytes) -> object:
        assert not self.applied or self.applied[-1][0] < index
        self.applied.append((index, command))
        return len(self.applied)

    def capture(self) -> Callable[[], bytes]:
        state = tuple(self.applied)
        return lambda: b"".join(
            struct.pack(">QI", index, len(command)) + command for index, command in state
        )

    def decode(self, snapshot: bytes) -> Callable[[int], None]:
        beside = threading.current_thread() is not threading.main_thread()
        self.decoded_beside_the_loop |= beside
        return lambda index: self.restore(index, snapshot)

    def restore(self, index: int, snapshot: bytes) -> None:
        self.applied = []
        self.restored_at.append(index)
        position = 0
        while position < len(snapshot):
            at, size = struct.unpack_from(">QI", snapshot, position)
            position += 12
            self.applied.append((at, snapshot[position : position + size]))
            position += size

    @property
    def commands(self) -> list[bytes]:
        return [command for _, command in self.applied]


class Voter:
    """One node: its disk outlives its processes."""

    def __init__(self, quorum: Quorum, node_id: int, disk: Disk, directory: str) -> None:
        self.quorum = quorum
        self.node_id = node_id
        self.disk = disk
        self.directory = directory
        self.directory_id = UUID(int=node_id)
        self.tls: ChannelTls | None = None
        self.machine = Register()
        self.raft: RaftLog | None = None
        self.roles: list[tuple[Role, int, int | None]] = []
        self.failures: list[BaseException] = []
        self.refused: list[int] = []
        self._server: asyncio.Server | None = None
        self._acceptor: Acceptor | None = None

    @property
    def log(self) -> RaftLog:
        assert self.raft is not None
        return self.raft

    @property
    def up(self) -> bool:
        return self.raft is not None

    async def start(self) -> None:
        quorum = self.quorum
        self.machine = Register()
        self.roles = []
        credential = Credential(SECRET, self.node_id, self.directory_id, "cluster", self.tls)
        rng = Random(f"{quorum.seed}-{self.node_id}-{quorum.starts}")
        quorum.starts += 1
        self.raft = RaftLog(
            node_id=self.node_id,
            directory_id=self.directory_id,
            voters=quorum.addresses,
            directory=self.directory,
            credential=credential,
            settings=quorum.settings,
            disk=self.disk,
            rng=rng,
            machine=self.machine,
            on_role=lambda role, term, leader: self.roles.append((role, term, leader)),
            on_fatal=self.failures.append,
            on_refused=self.refused.append,
            guards=quorum.guards,
        )
        self._acceptor = accept_factory(credential, rng, self.raft.adopt)
        host, port = quorum.addresses[self.node_id]
        self._server = await asyncio.get_running_loop().create_server(self._acceptor, host, port)
        await self.raft.start()

    async def abandon(self) -> None:
        """End as by SIGKILL: nothing is said, nothing more is written."""
        raft, self.raft = self.raft, None
        assert raft is not None
        assert self._server is not None
        assert self._acceptor is not None
        await accept_no_more(self._server)
        self._acceptor.close()
        if raft._driver is not None:
            raft._driver.stop()
        for link in raft._links.values():
            if link._channel is not None:
                link._channel._transport.abort()
            link.close()
        if raft._inbox is not None:
            for channel in list(raft._inbox._channels.values()):
                channel._transport.abort()
        await raft._scope.close()
        if raft._journal is not None:
            raft._journal.close()

    async def stop(self) -> None:
        raft, self.raft = self.raft, None
        assert raft is not None
        assert self._server is not None
        assert self._acceptor is not None
        await accept_no_more(self._server)
        self._acceptor.close()
        await raft.stop()


class Quorum:
    """Use as an async context manager."""

    def __init__(
        self,
        base: str,
        *,
        nodes: int = 3,
        seed: int = 0,
        settings: RaftSettings | None = None,
        disk: Callable[[int], Disk] | None = None,
        guards: Sequence[GuardFactory] = ALL_GUARDS,
        tls: Callable[[int], ChannelTls | None] = lambda node_id: None,
    ) -> None:
        self._tls = tls
        self.seed = seed
        self.starts = 0
        self.guards = guards
        chosen = settings or (RaftSettings.lone() if nodes == 1 else SETTINGS)
        self.settings = replace(chosen, segment_bytes=256 * 1024)
        self.addresses: Mapping[int, tuple[str, int]] = {}
        self._real_disks: list[RealDisk] = []
        self._count = nodes
        self._base = base
        self._disk = disk
        self.voters: dict[int, Voter] = {}

    async def __aenter__(self) -> Quorum:
        ports = free_ports(self._count)
        self.addresses = {n: ("127.0.0.1", port) for n, port in enumerate(ports, start=1)}
        for node_id in self.addresses:
            self.voters[node_id] = Voter(
                self, node_id, self._disk_of(node_id), f"{self._base}/quorum-{node_id}"
            )
        for voter in self.voters.values():
            voter.tls = self._tls(voter.node_id)
            await voter.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for voter in self.voters.values():
            if voter.up:
                await voter.stop()
        for disk in self._real_disks:
            disk.close()

    def _disk_of(self, node_id: int) -> Disk:
        if self._disk is not None:
            return self._disk(node_id)
        self._real_disks.append(RealDisk())
        return self._real_disks[-1]

    def __getitem__(self, node_id: int) -> Voter:
        return self.voters[node_id]

    @property
    def failures(self) -> list[BaseException]:
        return [failure for voter in self.voters.values() for failure in voter.failures]

    async def until(self, condition: Callable[[], object], *, within: float = WITHIN_S) -> None:
        async with asyncio.timeout(within):
            while not condition():
                assert self.failures == []
                await asyncio.sleep(0.005)

    def leading(self) -> Voter | None:
        leaders = [
            voter
            for voter in self.voters.values()
            if voter.up and voter.log._driver and voter.log.status().role is Role.LEADER
        ]
        return max(leaders, key=lambda voter: voter.log.status().term, default=None)

    async def leader(self, *, within: float = WITHIN_S) -> Voter:
        """A leader whose log has been applied up to its own first entry."""
        await self.until(self._ready_leader, within=within)
        leader = self._ready_leader()
        assert leader is not None
        return leader

    def _ready_leader(self) -> Voter | None:
        leader = self.leading()
        if leader is None:
            return None
        status = leader.log.status()
        return leader if status.applied_index == status.last_index else None

    async def propose(self, command: bytes, *, within: float = WITHIN_S) -> Applied:
        """Applied by whoever leads, or the test fails."""
        loop = asyncio.get_running_loop()
        leader = await self.leader()
        outcome = await leader.log.propose(command, loop.time() + within)
        assert isinstance(outcome, Applied), outcome
        return outcome

    async def all_applied(self, commands: Sequence[bytes], *, within: float = WITHIN_S) -> None:
        await self.until(
            lambda: all(
                voter.machine.commands == list(commands)
                for voter in self.voters.values()
                if voter.up
            ),
            within=within,
        )
