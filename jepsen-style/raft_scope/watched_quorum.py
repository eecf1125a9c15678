"""A quorum whose every event is looked at, with voters that are pinned to their directories."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from uuid import UUID

from ...raftlog import Transferred
from ...raftlog.guards import GuardContext, GuardFactory
from ..simulation import World
from ..simulation.dice import stream
from ..simulation.drive import Drive
from ..simulation.host import Host
from ..simulation.quorum import DIRECTORY, Member, Quorum
from .endings import RESTART_S, Endings
from .shape import Shape
from .watch import Ledger, Watch

_PIN = re.compile(rb"pin (\d+) (\d+) ")

BURST = (1, 1, 3, 8, 25)
"""Proposals made at one moment; many are then in flight, in several messages."""

TRANSFER_PAUSE_S = 3.0
"""The longest time between two wishes to hand the leadership over."""

MAX_VIOLATIONS = 1000

FROZEN_S = 10.0
"""Longer than a proposal takes, and the longest pause after it."""


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

    def capture(self) -> Callable[[], bytes]:
        encode = super().capture()
        padding = bytes(self.quorum.shape.padding_bytes)
        return lambda: encode() + padding

    def restore(self, index: int, snapshot: bytes) -> None:
        padding = self.quorum.shape.padding_bytes
        super().restore(index, snapshot[: len(snapshot) - padding])
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
        self, world: World, *, nodes: int, shape: Shape, guards: Sequence[GuardFactory]
    ) -> None:
        self.shape = shape
        self.ledger = Ledger(lambda: world.now, voters=nodes, shortest_way_s=shape.latency_s)
        super().__init__(world, nodes=nodes, settings=shape.settings, guards=[self._watch, *guards])
        world.network.defaults.latency_s = shape.latency_s
        world.network.defaults.jitter_s = shape.latency_s
        self.idle = False
        """Whether the steady proposals have ended."""
        self.transferred = 0
        """Leaderships that were handed over to whom they were meant for."""
        self.transfers_rest = False
        """While something is looked at that a wanted change of leader would spoil."""
        self.endings = Endings()
        world.on_host_ended = self._on_ended
        self.frozen_at: dict[int, float] = {}
        """When each voter was last paused or stalled."""
        self._emptied: dict[int, None] = {}
        """Voters that have not started since they lost their directory."""
        self._index_of: dict[bytes, int] = {}
        for host in self.hosts.values():
            host.drive.sync_latency_s = shape.sync_s

    def report(self, violation: str) -> None:
        """A broken invariant."""
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(violation)

    def member(self, host: Host, number: int) -> Member:
        return PinnedMember(self, host, number)

    def number_of(self, host: Host) -> int:
        return next(number for number, known in self.hosts.items() if known is host)

    def _watch(self, node: GuardContext) -> Watch:
        number = node.node_id
        emptied = number in self._emptied
        self._emptied.pop(number, None)
        self.ledger.opened(number, node.journal, emptied=emptied)
        return Watch(node, self.ledger, self.report)

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

    def joined(self, number: int) -> bool:
        """Whether the voter's directory has a vote (RULES B3)."""
        return self.hosts[number].drive.find(f"{DIRECTORY}/joined") is not None

    def propose_in_bursts(self, dice: Random) -> None:
        """Now and again from now on, until `idle`."""
        if self.idle:
            return
        self.world.at(dice.random() * self.shape.pause_s, self.propose_in_bursts, dice)
        self.burst(dice.choice(BURST))

    def burst(self, count: int) -> None:
        """Have everybody who believes to lead propose `count` commands at once.

        A client that has not heard of the new leader asks the old one: both must answer well.
        """
        for number, member in self.members.items():
            if self.hosts[number].alive and not self.hosts[number].paused and member.leads:
                for _ in range(count):
                    self.propose(member)

    def transfer_now_and_again(self, dice: Random) -> None:
        """Have whoever believes to lead hand over to another voter, dead or alive, until `idle`."""
        if self.idle:
            return
        self.world.at(dice.random() * TRANSFER_PAUSE_S, self.transfer_now_and_again, dice)
        to = dice.choice(list(self.hosts))
        for number, member in self.members.items():
            host = self.hosts[number]
            if host.alive and not host.paused and member.leads and not self.transfers_rest:
                host.spawn(self._transfer(member, to))

    async def _transfer(self, member: Member, to: int) -> None:
        assert member.raft is not None
        if await member.raft.transfer(to) == Transferred(to):
            self.transferred += 1

    def may_be_late(self, member: Member) -> bool:
        """A process that was stopped or stalled could not answer in time."""
        frozen_at = self.frozen_at.get(member.node_id)
        return frozen_at is not None and self.world.now - frozen_at < FROZEN_S

    # Faults of whole voters

    def empty_directory(self, number: int) -> None:
        """The voter's disk is replaced by a new one; it comes back as another directory."""
        host = self.hosts[number]
        host.kill()
        host.drive = Drive(
            stream(self.world.seed, f"drive:{host.name}:{self.proposed}"),
            sync_latency_s=self.shape.sync_s,
        )
        self.endings.directory_lost(host, self.directory_ids[number])
        self.directory_ids[number] = UUID(int=self.directory_ids[number].int + 1000)
        self._emptied[number] = None

    def compact(self, number: int) -> bool:
        """Have the voter make a snapshot now, however short its log is."""
        member = self.members.get(number)
        if member is None or member.raft is None or not member.started:
            return False
        if not self.hosts[number].alive or self.hosts[number].paused:
            return False
        with self.world.on(self.hosts[number].loop):
            member.raft.compact()
        return True

    # Invariants

    def on_applied(self, node_id: int, index: int, command: bytes) -> None:
        super().on_applied(node_id, index, command)
        first = self._index_of.setdefault(command, index)
        if first != index:
            self.report(f"twice: node {node_id} holds {command!r} at {first} and at {index}")

    def _on_ended(self, host: Host, error: BaseException | None) -> None:
        self.endings.judge(host, error)
        self.world.at(RESTART_S, self._restart, self.number_of(host), host.incarnation)

    def _restart(self, number: int, incarnation: int) -> None:
        host = self.hosts[number]
        if host.powered and host.incarnation == incarnation:
            self.start(number)
