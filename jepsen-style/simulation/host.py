"""A machine: its name, its disk, its clocks, and the process that runs on it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from .clock import EPOCH_S, SimClock
from .dice import stream
from .disk import SimDisk
from .drive import Drive, Keep
from .errors import SimKilled
from .loop import HostLoop

if TYPE_CHECKING:
    from .world import World

T = TypeVar("T")

Main = Callable[["Host"], Coroutine[Any, Any, Any]]
"""The whole process, e.g. `lambda host: run_node(config, host.disk, host.clock, host.rng)`."""


class Host:
    """Made by `World.host`. At most one process at a time runs on it.

    `disk` and `rng` belong to the running incarnation and change with `start`.
    """

    loop: HostLoop
    disk: SimDisk
    rng: Random

    def __init__(self, world: World, name: str, number: int) -> None:
        self.world = world
        self.name = name
        self.number = number
        self.ip = f"10.0.{number // 250}.{number % 250 + 1}"
        self.drive = Drive(stream(world.seed, f"drive:{name}"))
        self.clock = SimClock(self)
        self.incarnation = 0
        self.alive = False
        """A process runs here (it may be paused)."""
        self.paused = False
        self.powered = True
        self.rate = 1.0
        """Seconds of this host's monotonic clock per second of world time."""
        # Monotonic clocks begin at boot: one host's value means nothing on another, and code
        # that compares them should fail here and not in a data centre.
        self.monotonic_origin = round(stream(world.seed, f"clock:{name}").uniform(100, 10_000), 3)
        self.wall_offset = 0.0
        self.exit_error: BaseException | None = None
        """What ended the last process, when it was its own exception."""
        self.thread_spent = 0.0
        """Seconds of processor time used by the virtual thread that runs now."""
        self._on_resume: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<Host {self.name}.{self.incarnation} {'up' if self.alive else 'down'}>"

    # The process

    def start(self, main: Main) -> asyncio.Task[Any]:
        """Start a process on this host's disk. When `main` returns or raises, the process ends."""
        if self.alive:
            raise RuntimeError(f"{self.name} already runs a process")
        self.powered = True
        self.incarnation += 1
        self.alive = True
        self.paused = False
        self.exit_error = None
        self.rng = stream(self.world.seed, f"host:{self.name}:{self.incarnation}")
        self.loop = HostLoop(self.world, self)
        self.disk = SimDisk(self.drive, self)
        self.world.loops.append(self.loop)
        self.world.note(f"start {self.name}.{self.incarnation}")
        task = self.spawn(main(self), name=f"{self.name}.{self.incarnation}-main")
        task.add_done_callback(self._on_main_done)
        return task

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Start another task in the running process, from outside."""
        with self.world.on(self.loop):
            return self.loop.create_task(work, name=name, context=Context())

    def kill(self) -> None:
        """SIGKILL. Nothing is cancelled, no `finally` runs; the disk keeps all that was written.

        Called from the host's own code it does not return: the stack unwinds with `SimKilled`.
        """
        if not self.alive:
            return
        self.world.note(f"kill {self.name}.{self.incarnation}")
        self._end()

    def exit(self, error: BaseException) -> None:
        """The process ends itself on the spot because of `error`; see `World.on_host_ended`."""
        if self.alive:
            self._ended_by(error)
            self._end()

    def power_off(self, keep: Keep = Keep.ANY) -> None:
        """The machine loses power. Peers hear nothing; `keep` says what of the unsynced remains."""
        if not self.powered:
            return
        self.world.note(f"power off {self.name}.{self.incarnation} keep {keep.value}")
        self.powered = False
        self.drive.lose_power(keep)
        if self.alive:
            self._end()

    def signal(self, number: int) -> None:
        """Deliver a signal: to its handler, or do what the system does without one."""
        if number == signal.SIGSTOP:
            self.pause()
        elif number == signal.SIGCONT:
            self.resume()
        elif self.alive:
            handler = self.loop.signal_handlers.get(number)
            if handler is None:
                self.kill()
            else:
                self.loop.post(handler)

    def pause(self) -> None:
        """SIGSTOP: the kernel goes on accepting connections and data."""
        self.world.note(f"pause {self.name}")
        self.paused = True

    def resume(self) -> None:
        """SIGCONT."""
        if not self.paused:
            return
        self.world.note(f"resume {self.name}")
        self.paused = False
        waiting, self._on_resume = self._on_resume, []
        for work in waiting:
            work()

    def when_resumed(self, work: Callable[[], None]) -> None:
        """Called by parts of the host that a stopped process stops too."""
        self._on_resume.append(work)

    def stall(self, seconds: float) -> None:
        """Freeze the loop for `seconds` while its clock and threads go on (RULES F1)."""
        self.world.note(f"stall {self.name} {seconds}")
        if self.alive:
            self.loop.busy_until = max(self.loop.busy_until, self.world.now) + seconds

    def _on_main_done(self, task: asyncio.Task[Any]) -> None:
        if self.loop.dead or task.cancelled():
            return
        self._ended_by(task.exception())
        self._end(raise_inside=False)

    def _ended_by(self, error: BaseException | None) -> None:
        self.exit_error = error
        self.world.note(f"exit {self.name}.{self.incarnation}")
        self.world.host_ended(self, error)

    def _end(self, *, raise_inside: bool = True) -> None:
        loop = self.loop
        inside = loop.in_turn
        self.alive = False
        self.paused = False
        self._on_resume.clear()
        loop.dead = True
        self.world.loops.remove(loop)
        self.world.graveyard.bury(loop)
        self.drive.release_locks()
        self.world.network.process_died(loop, silently=not self.powered)
        if inside and raise_inside:
            raise SimKilled

    # Clocks

    def to_host_time(self, world_time: float) -> float:
        return world_time * self.rate + self.monotonic_origin

    def to_world_time(self, host_time: float) -> float:
        return (host_time - self.monotonic_origin) / self.rate

    def wall_time(self) -> float:
        """Seconds since the Unix epoch on this host's wall clock."""
        spent = self.loop.spent if self.alive else 0.0
        return EPOCH_S + (self.world.now + spent) * self.rate + self.wall_offset

    def set_rate(self, rate: float) -> None:
        """From now on the monotonic clock runs this fast. Timers that are set keep their time."""
        self.world.note(f"rate {self.name} {rate}")
        self.monotonic_origin += self.world.now * (self.rate - rate)
        self.wall_offset += self.world.now * (self.rate - rate)
        self.rate = rate

    def step_wall_clock(self, seconds: float) -> None:
        """Somebody sets the clock. The monotonic clock does not notice."""
        self.world.note(f"wall clock {self.name} {seconds:+}")
        self.wall_offset += seconds

    def spend(self, seconds: float) -> None:
        """Charge processor or device time to whatever runs on this host now."""
        if self.alive and self.loop.in_turn:
            self.loop.spent += seconds
        else:
            self.thread_spent += seconds
