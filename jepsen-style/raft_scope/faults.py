"""The faults of scope `raft`, one method each, and the dice that choose among them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ..simulation import Keep
from ..simulation.drive import UNLIMITED, DiskCall
from ..simulation.host import Host
from .endings import fail_next_sync
from .watched_quorum import WatchedQuorum

BYTES_PER_S = 1e9
"""Of a link that nothing slows down."""


class Faults:
    """Hurts a quorum and heals it again. What happened is counted by kind."""

    def __init__(self, quorum: WatchedQuorum, dice: Random) -> None:
        self.counts: dict[str, int] = {}
        self.unpinned: int | None = None
        """The voter whose new directory the quorum has not accepted yet; one at a time, since a
        majority of the others must vouch for it."""
        self._quorum = quorum
        self._world = quorum.world
        self._dice = dice
        self._hosts = list(quorum.hosts.values())
        self._kinds: dict[str, Callable[[Host], bool]] = {
            "crash": self._crash,
            "leader crash": self._leader_crash,
            "restart": self._restart,
            "power loss": self._power_loss,
            "torn write": self._torn_write,
            "blackout": self._blackout,
            "failed sync": self._failed_sync,
            "cut": self._cut,
            "one-way": self._one_way,
            "one-way out": self._one_way_out,
            "ring": self._ring,
            "halves": self._halves,
            "leader cut": self._leader_cut,
            "reset": self._reset,
            "delay": self._delay,
            "slow link": self._slow_link,
            "pause": self._pause,
            "stall": self._stall,
            "slow disk": self._slow_disk,
            "full disk": self._full_disk,
            "forced compaction": self._forced_compaction,
            "emptied directory": self._emptied_directory,
        }

    def strike(self) -> None:
        """One fault of a kind and on a voter that the dice choose."""
        self.cause(self._dice.choice(list(self._kinds)), self._dice.choice(self._hosts))

    def cause(self, kind: str, host: Host) -> None:
        """This fault. It counts unless it could not happen, as a crash of what is down."""
        if self._kinds[kind](host):
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self._world.note(f"fault {kind}")

    def heal(self) -> None:
        """Everything works again, and whoever is down starts."""
        self._world.network.heal()
        shape = self._quorum.shape
        for host in self._hosts:
            host.resume()
            host.drive.on_call = None
            host.drive.sync_latency_s = shape.sync_s
            host.drive.capacity_bytes = UNLIMITED
            for other in self._others(host):
                link = self._world.network.link(host, other)
                link.latency_s = link.jitter_s = shape.latency_s
                link.bytes_per_s = BYTES_PER_S
        self._quorum.start()

    def _others(self, host: Host) -> list[Host]:
        return [other for other in self._hosts if other is not host]

    # Processes and machines

    def _crash(self, host: Host) -> bool:
        alive = host.alive
        host.kill()
        return alive

    def _leader_crash(self, _: Host) -> bool:
        leader = self._quorum.leader()
        return leader is not None and self._crash(leader.host)

    def _restart(self, host: Host) -> bool:
        crashed = self._crash(host)
        self._quorum.start(self._quorum.number_of(host))
        return crashed

    def _power_loss(self, host: Host) -> bool:
        host.power_off(self._dice.choice(list(Keep)))
        return True

    def _blackout(self, _: Host) -> bool:
        for host in self._hosts:
            host.power_off(self._dice.choice(list(Keep)))
        return True

    def _pause(self, host: Host) -> bool:
        if host.alive:
            host.pause()
            self._quorum.frozen_at[self._quorum.number_of(host)] = self._world.now
        return host.alive

    def _stall(self, host: Host) -> bool:
        host.stall(self._dice.random())
        self._quorum.frozen_at[self._quorum.number_of(host)] = self._world.now
        return host.alive

    # Disks

    def _torn_write(self, host: Host) -> bool:
        """Power is lost between the next write and its sync, and the write is torn."""

        def tear(call: DiskCall) -> None:
            if call.kind == "sync":
                host.drive.on_call = None
                host.power_off(Keep.TORN)

        host.drive.on_call = tear
        return host.alive

    def _failed_sync(self, host: Host) -> bool:
        fail_next_sync(host, self._quorum.endings)
        return host.alive

    def _slow_disk(self, host: Host) -> bool:
        host.drive.sync_latency_s = self._dice.random() * 0.3
        return host.alive

    def _full_disk(self, host: Host) -> bool:
        host.drive.capacity_bytes = host.drive.used_bytes() + self._dice.choice((0, 1000, 70000))
        return host.alive

    def _forced_compaction(self, host: Host) -> bool:
        return self._quorum.compact(self._quorum.number_of(host))

    def _emptied_directory(self, host: Host) -> bool:
        if self.unpinned is not None:
            return False
        number = self._quorum.number_of(host)
        self.unpinned = number
        self._quorum.empty_directory(number)
        self._replace_voter(number, ())
        return True

    def _replace_voter(self, number: int, proposed: tuple[bytes, ...]) -> None:
        """What an operator does: have the new directory pinned, trying until it is."""
        if any(command in self._quorum.acknowledged for command in proposed):
            # Replaced only when it holds what its predecessor had promised: until then the loss
            # of a second directory would be one too many.
            self.unpinned = None if self._holds(number, proposed) else number
            if self.unpinned is not None:
                self._world.at(0.1, self._replace_voter, number, proposed)
            return
        command = self._quorum.pin(number)
        if command is not None:
            proposed = (*proposed, command)
        self._world.at(1.0, self._replace_voter, number, proposed)

    def _holds(self, number: int, proposed: tuple[bytes, ...]) -> bool:
        commands = self._quorum.members[number].commands
        indexes = [self._quorum.acknowledged.get(command) for command in proposed]
        return any(index in commands for index in indexes if index is not None)

    # The network

    def _cut(self, host: Host) -> bool:
        self._world.network.partition([host], self._others(host))
        return True

    def _leader_cut(self, host: Host) -> bool:
        leader = self._quorum.leader()
        return self._cut(host if leader is None else leader.host)

    def _one_way(self, host: Host) -> bool:
        """It can send, but not receive."""
        for other in self._others(host):
            self._world.network.block(other, host)
        return True

    def _one_way_out(self, host: Host) -> bool:
        """It can receive, but not send."""
        for other in self._others(host):
            self._world.network.block(host, other)
        return True

    def _ring(self, _: Host) -> bool:
        """None is heard by its neighbour."""
        for number, host in enumerate(self._hosts):
            self._world.network.block(host, self._hosts[(number + 1) % len(self._hosts)])
        return True

    def _halves(self, _: Host) -> bool:
        middle = len(self._hosts) // 2
        self._world.network.partition(self._hosts[:middle], self._hosts[middle:])
        return True

    def _reset(self, host: Host) -> bool:
        for other in self._others(host):
            self._world.network.reset(host, other)
        return True

    def _delay(self, host: Host) -> bool:
        least = self._quorum.shape.latency_s
        for other in self._others(host):
            link = self._world.network.link(host, other)
            link.latency_s = least + self._dice.random() * 0.2
            link.jitter_s = self._dice.random() * 0.2
        return True

    def _slow_link(self, host: Host) -> bool:
        """What is sent to it takes many rounds to arrive."""
        for other in self._others(host):
            link = self._world.network.link(other, host)
            link.bytes_per_s = 50_000 + self._dice.random() * 400_000
        return True
