"""What a schedule is made of: a stretch of faults from the first blow to the last heal.

Most episodes are chance. The others lead on purpose to where a finding lives, which chance alone
reaches too rarely: each says which.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ..simulation.host import Host
from .faults import Faults
from .watched_quorum import WatchedQuorum

CALM_S = 1.0
"""Without faults, before what happens afterwards can be blamed on the next one."""

DEAF_S = 3.0


class Episodes:
    """Plays episodes, one after the other."""

    def __init__(self, quorum: WatchedQuorum, faults: Faults, dice: Random) -> None:
        self._quorum = quorum
        self._world = quorum.world
        self._faults = faults
        self._dice = dice
        self._hosts = list(quorum.hosts.values())

    def play(self) -> None:
        """One episode; everything is healed at its end."""
        episode = self._draw()
        self._world.note(f"episode {episode.__name__}")
        episode()

    def play_unpinned(self) -> None:
        """What only a quorum without pins can be hurt by."""
        self._world.note("episode _forgotten")
        self._forgotten()

    def play_last(self) -> None:
        """What it leaves behind is not repaired by accident: no fault follows."""
        self._world.note("last episode")
        self._absence()

    def _draw(self) -> Callable[[], None]:
        drawn = self._dice.random()
        if drawn < 0.25:
            return self._absence
        if drawn < 0.30:
            return self._deaf
        # With three voters the two that hold an entry are a majority: nobody can replace it.
        if drawn < 0.42 and len(self._hosts) > 3:
            return self._old_words
        if drawn > 0.85 and self._quorum.shape.padding_bytes:
            return self._second_refusal
        return self._chance

    def _pass(self, longest_s: float, shortest_s: float = 0.0) -> None:
        self._world.run(shortest_s + self._dice.random() * (longest_s - shortest_s))

    def _chance(self) -> None:
        """One fault, perhaps another on top of it, then a rest that may be too short."""
        self._faults.strike()
        self._pass(0.8, 0.1)
        while self._dice.random() < 0.3:
            self._faults.strike()
            self._pass(0.8, 0.1)
        self._pass(1.2)
        self._faults.heal()
        # Enough for an election, most of the time.
        self._pass(0.8)

    def _absence(self) -> None:
        """A leader is away long enough for the others to go on without it, and even to compact.

        It comes back with entries of its own where the others have others (findings A and D), and
        is given them bit by bit, perhaps by one who is deposed meanwhile.
        """
        leader = self._quorum.leader()
        absent = self._dice.choice(self._hosts) if leader is None else leader.host
        self._quorum.burst(self._dice.choice((0, 1, 5, 20, 40)))
        self._faults.cause("cut", absent)
        self._quorum.burst(self._dice.choice((0, 5, 20, 40)))
        self._pass(2.5, 1.0)
        for _ in range(self._dice.choice((0, 1, 3))):
            self._quorum.burst(25)
            self._pass(0.3)
        if self._dice.random() < 0.5:
            for host in self._others(absent):
                self._faults.cause("forced compaction", host)
            self._pass(0.3)
        if self._dice.random() < 0.6:
            # What was sent to it meanwhile is lost: the first append it hears does not fit.
            self._faults.cause(self._dice.choice(("reset", "restart")), absent)
        if self._dice.random() < 0.5:
            self._faults.cause("slow link", absent)
        self._world.network.heal()
        if self._dice.random() < 0.5:
            self._pass(0.6)
            self._faults.cause(self._dice.choice(("leader crash", "leader cut")), absent)
        self._pass(1.5)
        self._faults.heal()
        self._pass(0.8)

    def _deaf(self) -> None:
        """Who can send but not receive must not depose whom everybody else hears (case R17)."""
        if self._world.now < CALM_S:
            return
        self._world.run(CALM_S)
        leader = self._quorum.leader()
        if leader is None or self._faults.unpinned is not None:
            return
        terms = len(self._quorum.leader_of_term)
        self._quorum.transfers_rest = True
        self._faults.cause("one-way", self._dice.choice(self._others(leader.host)))
        self._world.run(DEAF_S)
        changes = len(self._quorum.leader_of_term) - terms
        if changes > 1:
            self._quorum.report(f"deposed: {changes} changes of leader because of a deaf voter")
        self._quorum.transfers_rest = False
        self._faults.heal()
        self._pass(0.8)

    def _old_words(self) -> None:
        """What a follower said to a leader reaches it when it leads again (finding C).

        The two are away from the majority, so what the one appended and the other acknowledged is
        replaced; then the old leader is brought back to power and hears the old answers.
        """
        leader = self._quorum.leader()
        if leader is None:
            self._chance()
            return
        old = leader.host
        follower, *rest = self._dice.sample(self._others(old), len(self._hosts) - 1)
        self._faults.cause("halves", old)
        self._world.network.heal()
        self._world.network.partition([old, follower], rest)
        self._world.network.block(follower, old)
        self._quorum.burst(40)
        self._pass(1.5, 0.8)
        self._quorum.burst(1)
        self._heal_but(follower, old)
        self._pass(0.5, 0.2)
        for _ in range(4):
            leader = self._quorum.leader()
            if leader is not None and leader.host is old:
                break
            self._faults.cause("leader crash", old)
            self._world.run(0.8)
            self._quorum.start()
        self._faults.cause("slow disk", follower)
        for host in rest[1:]:
            self._faults.cause("slow disk", host)
        self._quorum.burst(25)
        self._world.network.heal()
        self._pass(0.8)
        self._faults.heal()
        self._pass(0.8)

    def _second_refusal(self) -> None:
        """A new leader hears twice of a gap that the snapshot on its way will fill (finding E)."""
        leader = self._quorum.leader()
        if leader is None:
            self._chance()
            return
        behind = self._dice.choice(self._others(leader.host))
        self._faults.cause("cut", behind)
        self._quorum.burst(40)
        self._pass(0.5, 0.3)
        for host in self._others(behind):
            self._faults.cause("forced compaction", host)
        self._pass(0.3, 0.1)
        # Its successor begins at the end of the log, where the one that was away has nothing.
        self._faults.cause("restart", leader.host)
        self._pass(1.2, 0.8)
        self._faults.cause("delay", behind)
        self._faults.cause("slow link", behind)
        self._faults.cause("reset", behind)
        self._world.network.heal()
        for _ in range(20):
            self._quorum.burst(3)
            self._pass(0.05)
        self._pass(1.5)
        self._faults.heal()
        self._pass(0.8)

    def _forgotten(self) -> None:
        """A directory is lost, and only those are heard who have no pin of it (RULES B3).

        Together with them it is a majority that knows less than was acknowledged.
        """
        leader = self._quorum.leader()
        if leader is None:
            return
        others = self._dice.sample(self._others(leader.host), len(self._hosts) - 1)
        behind, (lost, *others) = others[: len(self._hosts) // 2], others[len(self._hosts) // 2 :]
        for host in behind:
            self._faults.cause("reset", host)
        self._world.network.partition(behind, [leader.host, lost, *others])
        self._pass(1.0, 0.5)
        self._quorum.burst(20)
        self._pass(1.0, 0.5)
        self._faults.cause("emptied directory", lost)
        self._quorum.start(self._quorum.number_of(lost))
        for host in behind:
            # What was said to them meanwhile is lost.
            self._faults.cause("reset", host)
        self._world.network.heal()
        self._world.network.partition([leader.host, *others], [lost, *behind])
        self._pass(4.0, 2.0)
        self._faults.heal()
        self._pass(0.8)

    def _heal_but(self, source: Host, target: Host) -> None:
        """Everything is heard again, except what `source` says to `target`."""
        for host in self._hosts:
            for other in self._others(host):
                if (host, other) != (source, target):
                    self._world.network.link(host, other).heal()

    def _others(self, host: Host) -> list[Host]:
        return [other for other in self._hosts if other is not host]
