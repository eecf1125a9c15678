"""A quorum whose every event is looked at, with voters that are pinned to their directories."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from ...raftlog.guards import Guard
from ..simulation import World
from ..simulation.dice import stream
from ..simulation.drive import Drive
from ..simulation.host import Host
from ..simulation.quorum import Member, Quorum
from .shape import Shape
from .watch import Promises, Watch

_PIN = re.compile(rb"pin (\d+) (\d+) ")


class PinnedMember(Member):
    """Its machine keeps pins too, as the image of a node does (RULES B3)."""

    quorum: WatchedQuorum

    def __init__(self, quorum: WatchedQuorum, host: Host, node_id: int) -> None:
        super().__init__(quorum, host, node_id)
        self.quorum = quorum
        self._pins: dict[int, UUID] = {}

    def apply(self, index: int, command: bytes) -> object:
        result = super().apply(index, command)
        if command.startswith(b"pin "):
            self._pin(command)
            self._hand_down()
        return result

    def restore(self, index: int, snapshot: bytes) -> None:
        super().restore(index, snapshot)
        for at, command in self.commands.items():
            self.quorum.on_applied(self.node_id, at, command)
            if command.startswith(b"pin "):
                self._pin(command)
        self._hand_down()

    def _pin(self, command: bytes) -> None:
        match = _PIN.match(command)
        assert match is not None
        self._pins[int(match[1])] = UUID(int=int(match[2]))

    def _hand_down(self) -> None:
        if self.raft is not None:
            self.raft.pin_directories(self._pins)


class WatchedQuorum(Quorum):
    """See the module's docstring."""

    def __init__(
        self, world: World, *, nodes: int, shape: Shape, guards: Sequence[type[Guard]]
    ) -> None:
        self.shape = shape
        self.promises = Promises()
        watch: Callable[..., Watch] = partial(Watch, promises=self.promises, report=self.report)
        super().__init__(world, nodes=nodes, settings=shape.settings, guards=[watch, *guards])
        world.network.defaults.latency_s = shape.latency_s
        world.network.defaults.jitter_s = shape.latency_s
        self.idle = False
        """Whether the steady proposals have ended."""
        self.ended: list[str] = []
        """How processes ended themselves without a fault that explains it."""
        self.excused: dict[str, None] = {}
        """Names of hosts whose disk was made to fail."""
        world.on_host_ended = self._on_ended
        self._index_of: dict[bytes, int] = {}
        for host in self.hosts.values():
            host.drive.sync_latency_s = shape.sync_s

    def report(self, violation: str) -> None:
        """A broken invariant."""
        if len(self.violations) < 1000:
            self.violations.append(violation)

    def member(self, host: Host, number: int) -> Member:
        return PinnedMember(self, host, number)

    # Work

    def command(self) -> bytes:
        self.proposed += 1
        return (b"command %d " % self.proposed).ljust(self.shape.command_bytes, b".")

    def propose(self, member: Member) -> bytes:
        command = self.command()
        member.host.spawn(self._propose(member, command))
        return command

    def pin(self, number: int) -> bytes | None:
        """Propose the present directory of a voter; None while nobody leads."""
        leader = self.leader()
        if leader is None:
            return None
        self.proposed += 1
        directory = self.directory_ids[number].int
        command = b"pin %d %d %d" % (number, directory, self.proposed)
        leader.host.spawn(self._propose(leader, command))
        return command

    def propose_steadily(self, per_second: float) -> None:
        if self.idle:
            return
        self.world.at(1 / per_second, self.propose_steadily, per_second)
        # A client that has not heard of the new leader asks the old one: both must answer well.
        for number, member in self.members.items():
            if self.hosts[number].alive and not self.hosts[number].paused and member.leads:
                self.propose(member)

    # Faults of whole voters

    def empty_directory(self, number: int) -> None:
        """The voter's disk is replaced by a new one; it comes back as another directory."""
        host = self.hosts[number]
        host.kill()
        host.drive = Drive(
            stream(self.world.seed, f"drive:{host.name}:{self.proposed}"),
            sync_latency_s=self.shape.sync_s,
        )
        self.directory_ids[number] = UUID(int=self.directory_ids[number].int + 1000)

    # Invariants

    def on_applied(self, node_id: int, index: int, command: bytes) -> None:
        super().on_applied(node_id, index, command)
        first = self._index_of.setdefault(command, index)
        if first != index:
            self.report(f"twice: node {node_id} holds {command!r} at {first} and at {index}")

    def _on_ended(self, host: Host, error: BaseException | None) -> None:
        if "replace-voter" in str(error) or host.name in self.excused:
            return
        self.ended.append(f"end: {host.name} ended itself: {error!r}")
