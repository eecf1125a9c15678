"""The faults of scope `raft`, one method each, and the dice that choose among them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

from ..simulation import Keep
from ..simulation.drive import DiskCall
from ..simulation.host import Host
from .watched_quorum import WatchedQuorum


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
            "power loss": self._power_loss,
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
            "pause": self._pause,
            "stall": self._stall,
            "slow disk": self._slow_disk,
            "full disk": self._full_disk,
            "emptied directory": self._emptied_directory,
        }

    def strike(self) -> None:
        """One fault of a kind and on a voter that the dice choose."""
        kind = self._dice.choice(list(self._kinds))
        host = self._dice.choice(self._hosts)
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
            host.drive.capacity_bytes = 1 << 50
            for other in self._others(host):
                link = self._world.network.link(host, other)
                link.latency_s = link.jitter_s = shape.latency_s
        self._quorum.start()

    def _others(self, host: Host) -> list[Host]:
        return [other for other in self._hosts if other is not host]

    def _crash(self, host: Host) -> bool:
        alive = host.alive
        host.kill()
        return alive

    def _leader_crash(self, _: Host) -> bool:
        leader = self._quorum.leader()
        return leader is not None and self._crash(leader.host)

    def _power_loss(self, host: Host) -> bool:
        host.power_off(self._dice.choice(list(Keep)))
        return True

    def _blackout(self, _: Host) -> bool:
        for host in self._hosts:
            host.power_off(self._dice.choice(list(Keep)))
        return True

    def _failed_sync(self, host: Host) -> bool:
        def fail(call: DiskCall) -> None:
            if call.kind == "sync effect":
                host.drive.on_call = None
                self._quorum.excused[host.name] = None
                raise OSError(errno.EIO, "the disk lost its pages")

        host.drive.on_call = fail
        return host.alive

    def _full_disk(self, host: Host) -> bool:
        self._quorum.excused[host.name] = None
        host.drive.capacity_bytes = host.drive.used_bytes() + self._dice.choice((0, 1000, 70000))
        return host.alive

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
        for other in self._others(host):
            link = self._world.network.link(host, other)
            link.latency_s = self._dice.random() * 0.2
            link.jitter_s = self._dice.random() * 0.2
        return True

    def _pause(self, host: Host) -> bool:
        if host.alive:
            host.pause()
        return host.alive

    def _stall(self, host: Host) -> bool:
        host.stall(self._dice.random())
        return host.alive

    def _slow_disk(self, host: Host) -> bool:
        host.drive.sync_latency_s = self._dice.random() * 0.3
        return host.alive

    def _emptied_directory(self, host: Host) -> bool:
        number = next(n for n, known in self._quorum.hosts.items() if known is host)
        if self.unpinned is not None:
            return False
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
