"""A quorum of `raftlog` alone, driven and watched: leaders, acknowledgements, applied commands.

Invariants are looked at as things happen and collected in `violations`; a run is good when the
list stays empty and `missing()` is empty in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from ...raftlog import (
    Applied,
    Channel,
    Credential,
    NotLeader,
    RaftLog,
    RaftSettings,
    Role,
    accept_factory,
)
from ...raftlog.guards import ALL_GUARDS, GuardFactory
from .host import Host
from .world import World

PORT = 9093
SECRET = b"a secret of the simulated cluster"
DIRECTORY = "quorum"
PROPOSAL_S = 5.0


class Member:
    """One incarnation of a voter: its machine is the list of the commands it has applied."""

    def __init__(self, quorum: Quorum, host: Host, node_id: int) -> None:
        self.host = host
        self.node_id = node_id
        self.commands: dict[int, bytes] = {}
        """By index, in order of application."""
        self.raft: RaftLog | None = None
        self.started = False
        """Whether `raft` can be asked and told."""
        self._quorum = quorum
        self._last_index = 0

    async def main(self, host: Host) -> None:
        """The whole process."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def on_fatal(error: BaseException) -> None:
            if not ended.done():
                ended.set_exception(error)

        host.disk.make_dirs(DIRECTORY)
        directory_id = self._quorum.directory_ids[self.node_id]
        credential = Credential(SECRET, self.node_id, directory_id, "simulated")
        raft = RaftLog(
            node_id=self.node_id,
            directory_id=directory_id,
            voters=self._quorum.voters,
            directory=DIRECTORY,
            credential=credential,
            settings=self._quorum.settings,
            disk=host.disk,
            rng=host.rng,
            machine=self,
            on_role=self._on_role,
            on_fatal=on_fatal,
            guards=self._quorum.guards,
        )
        self.raft = raft

        def adopt(channel: Channel) -> None:
            raft.adopt(channel)

        await loop.create_server(accept_factory(credential, host.rng, adopt), None, PORT)
        await raft.start()
        self.started = True
        await ended

    def _on_role(self, role: Role, term: int, leader_id: int | None) -> None:
        if role is Role.LEADER:
            self._quorum.on_leader(self.node_id, term)

    @property
    def leads(self) -> bool:
        return self.started and self.raft is not None and self.raft.status().role is Role.LEADER

    # The state machine

    def apply(self, index: int, command: bytes) -> object:
        if index <= self._last_index:
            self._quorum.violations.append(f"node {self.node_id} applied index {index} again")
        self._last_index = index
        self.commands[index] = command
        self._quorum.on_applied(self.node_id, index, command)
        return command

    def capture(self) -> Callable[[], bytes]:
        return partial(_encode, dict(self.commands))

    def decode(self, snapshot: bytes) -> Callable[[int], None]:
        return lambda index: self.restore(index, snapshot)

    def restore(self, index: int, snapshot: bytes) -> None:
        self.commands = _decode(snapshot)
        self._last_index = index


class Quorum:
    """`nodes` voters on hosts `q1`, `q2`, ... with proposals made by `propose_steadily`."""

    def __init__(
        self,
        world: World,
        *,
        nodes: int = 3,
        settings: RaftSettings | None = None,
        guards: Sequence[GuardFactory] = ALL_GUARDS,
    ) -> None:
        """`guards`: those of `RaftLog`, less what a control leaves out."""
        self.world = world
        self.settings = settings or RaftSettings.local()
        self.hosts = {number: world.host(f"q{number}") for number in range(1, nodes + 1)}
        self.voters = {number: (host.name, PORT) for number, host in self.hosts.items()}
        self.guards = guards
        self.directory_ids = {number: UUID(int=number) for number in self.hosts}
        """A voter whose disk is replaced gets another one."""
        self.members: dict[int, Member] = {}
        """The newest incarnation of each."""
        self.acknowledged: dict[bytes, int] = {}
        """Command -> index."""
        self.refused: list[bytes] = []
        """Answered NotLeader: they must never appear."""
        self.proposed = 0
        self.violations: list[str] = []
        self.leader_of_term: dict[int, int] = {}
        self.command_at: dict[int, bytes] = {}

    # Life

    def start(self, *numbers: int) -> None:
        """Start these voters, or all that do not run."""
        for number in numbers or self.hosts:
            host = self.hosts[number]
            if not host.alive:
                member = self.members[number] = self.member(host, number)
                host.start(member.main)

    def member(self, host: Host, number: int) -> Member:
        """A process that is about to start."""
        return Member(self, host, number)

    def leader(self) -> Member | None:
        """The running member that leads in the highest term."""
        leading = [
            member
            for number, member in self.members.items()
            if self.hosts[number].alive and not self.hosts[number].paused and member.leads
        ]
        return max(leading, key=_term, default=None)

    def await_leader(self, *, within: float = 10.0) -> Member:
        self.world.run_until(lambda: self.leader() is not None, within=within)
        leader = self.leader()
        assert leader is not None
        return leader

    # Work

    def propose(self, member: Member) -> bytes:
        """Have `member` propose a fresh command; its outcome is entered when it comes."""
        self.proposed += 1
        command = b"command %d" % self.proposed
        member.host.spawn(self._propose(member, command))
        return command

    async def _propose(self, member: Member, command: bytes) -> None:
        loop = asyncio.get_running_loop()
        assert member.raft is not None
        deadline = loop.time() + PROPOSAL_S
        outcome = await member.raft.propose(command, deadline)
        if loop.time() > deadline + 0.1 and not self.may_be_late(member):
            self.violations.append(f"{command!r} was answered {loop.time() - deadline} s late")
        if isinstance(outcome, Applied):
            self.acknowledged[command] = outcome.index
            if outcome.result != command:
                self.violations.append(f"{command!r} got the result {outcome.result!r}")
            if self.command_at.get(outcome.index) != command:
                self.violations.append(f"{command!r} is not what stands at {outcome.index}")
        elif isinstance(outcome, NotLeader):
            self.refused.append(command)

    def may_be_late(self, member: Member) -> bool:
        """Whether something besides the product explains that an answer came after its deadline."""
        return False

    def propose_steadily(self, per_second: float) -> None:
        """Propose on whoever leads, from now on."""
        self.world.at(1 / per_second, self.propose_steadily, per_second)
        leader = self.leader()
        if leader is not None:
            self.propose(leader)

    # Invariants

    def on_leader(self, node_id: int, term: int) -> None:
        other = self.leader_of_term.setdefault(term, node_id)
        if other != node_id:
            self.violations.append(f"nodes {other} and {node_id} both lead term {term}")

    def on_applied(self, node_id: int, index: int, command: bytes) -> None:
        other = self.command_at.setdefault(index, command)
        if other != command:
            self.violations.append(
                f"node {node_id} applied {command!r} at {index}, another {other!r}"
            )

    def settled(self) -> bool:
        """All members run and have applied the same."""
        states = [
            list(self.members[number].commands.items())
            for number, host in self.hosts.items()
            if host.alive
        ]
        return len(states) == len(self.hosts) and all(state == states[0] for state in states)

    def missing(self) -> list[bytes]:
        """Acknowledged commands that some running member does not hold."""
        return [
            command
            for command, index in self.acknowledged.items()
            for member in self.members.values()
            if member.commands.get(index) != command
        ]

    def resurrected(self) -> list[bytes]:
        """Commands refused for good that were applied after all (RULES A4)."""
        applied = {command: None for command in self.command_at.values()}
        return [command for command in self.refused if command in applied]


def _term(member: Member) -> int:
    assert member.raft is not None
    return member.raft.status().term


def _encode(commands: dict[int, bytes]) -> bytes:
    parts = []
    for index, command in commands.items():
        parts.append(index.to_bytes(8, "big") + len(command).to_bytes(4, "big") + command)
    return b"".join(parts)


def _decode(snapshot: bytes) -> dict[int, bytes]:
    commands: dict[int, bytes] = {}
    position = 0
    while position < len(snapshot):
        index = int.from_bytes(snapshot[position : position + 8], "big")
        end = position + 12 + int.from_bytes(snapshot[position + 8 : position + 12], "big")
        commands[index] = snapshot[position + 12 : end]
        position = end
    return commands
