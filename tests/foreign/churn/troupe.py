"""The processes in which members live, and who comes and goes when."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from enum import Enum, auto
from itertools import cycle

from tests.foreign.churn.casts import Cast, Kind
from tests.foreign.churn.judge import Event, What

MEMBERS = 20
VICTIMS = 3
"""Members that are killed, not asked to leave, each alone in its process and replaced by
another."""

LEAVE_SECONDS = 60.0


class MemberProcess:
    """Members of one kind, each with an application of its own."""

    def __init__(self, command: list[str], tell: Callable[[Event], None]) -> None:
        self._tell = tell
        self._there: set[str] = set()
        self._owned_something = False
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def owned_something(self) -> bool:
        """Once; an incremental protocol speaks of changes only."""
        return self._owned_something

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):
                event = Event.of(line)
                if event.what in (What.DEAD, What.FAILED):
                    self._there.discard(event.name)
                self._owned_something |= bool(event.what is What.TAKEN and event.partitions)
                self._tell(event)

    def add(self, name: str) -> None:
        self._there.add(name)
        self._ask(f"add {name}")

    def leave(self, name: str) -> None:
        """Nobody waits for it."""
        self._ask(f"leave {name}")

    def _ask(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL; what it said before counts."""
        assert self._process.poll() is None, f"{self._there} ended by themselves"
        self._process.kill()
        self._process.wait()
        died = time.monotonic()
        self._close()
        for name in sorted(self._there):
            self._tell(Event(died, name, What.DEAD))

    def end(self) -> None:
        """All leave."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            code = None
        self._close()
        for name in sorted(self._there):
            why = "has not left" if code is None else f"its process ended with {code}"
            self._tell(Event(time.monotonic(), name, What.FAILED, member_id=why))

    def _close(self) -> None:
        self._listener.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


class Guests(Enum):
    EXPECTED = auto()
    HERE = auto()
    GONE = auto()


class Troupe:
    """All members of a group and all that they said. Pure chance decides who comes and goes."""

    def __init__(self, cast: Cast, commands: dict[Kind, list[str]], dice: random.Random) -> None:
        self.events: list[Event] = []
        self.joined = self.killed = 0
        self._commands, self._dice = commands, dice
        self._kinds, self._for_a_while = cast.kinds, cast.for_a_while
        self._guests = Guests.EXPECTED if cast.for_a_while else Guests.GONE
        self._processes = {kind: self._new(kind) for kind in (*cast.kinds, *cast.for_a_while)}
        self._present: list[tuple[Kind, str]] = []
        self._victims: list[MemberProcess] = []
        self._next_kind: Iterator[Kind] = cycle(cast.kinds)

    def begin(self) -> None:
        for _ in range(MEMBERS // 2 - VICTIMS):
            self._add(next(self._next_kind))
        for _ in range(VICTIMS):
            self._add_victim()

    def come_or_go(self) -> None:
        count = len(self._present) + len(self._victims)
        if len(self._present) > 1 and (count >= MEMBERS or self._dice.random() < 0.4):
            self._ask_to_leave(self._dice.choice(self._present))
        elif self._guests is Guests.HERE and self._dice.random() < 0.5:
            self._add(self._dice.choice(self._for_a_while))
        else:
            self._add(next(self._next_kind))

    @property
    def may_kill_one(self) -> bool:
        """The next victim has something to leave behind."""
        return self._victims[0].owned_something

    def kill_one(self) -> None:
        """And another comes."""
        self._victims.pop(0).kill()
        self.killed += 1
        self._add_victim()

    def receive_guests(self, *, progress: float, group_type: str) -> None:
        """Those who are here for a while, when their time has come or is over; `progress` is of
        the whole run. The group is to have been of the other protocol before."""
        if self._guests is Guests.EXPECTED and progress >= 1 / 3 and group_type == "classic":
            self._guests = Guests.HERE
            for kind in self._for_a_while:
                self._add(kind)
        elif self._guests is Guests.HERE and progress >= 2 / 3 and group_type == "consumer":
            self._guests = Guests.GONE
            for member in [each for each in self._present if each[0] in self._for_a_while]:
                self._ask_to_leave(member)

    @property
    def guests_are_gone(self) -> bool:
        return self._guests is Guests.GONE

    def end(self) -> None:
        """No process is left."""
        for victim in self._victims:
            victim.kill()
        for process in self._processes.values():
            process.end()

    def _new(self, kind: Kind) -> MemberProcess:
        return MemberProcess(self._commands[kind], self.events.append)

    def _add(self, kind: Kind) -> None:
        name = self._next_name(kind)
        self._present.append((kind, name))
        self._processes[kind].add(name)

    def _add_victim(self) -> None:
        kind = next(self._next_kind)
        victim = self._new(kind)
        self._victims.append(victim)
        victim.add(self._next_name(kind))

    def _ask_to_leave(self, member: tuple[Kind, str]) -> None:
        self._present.remove(member)
        kind, name = member
        self._processes[kind].leave(name)

    def _next_name(self, kind: Kind) -> str:
        self.joined += 1
        return f"{kind.client}-{self.joined}"
