"""Virtual time, and whose turn it is."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import heapq
from asyncio import events
from asyncio.events import Handle, TimerHandle
from collections.abc import Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from .dice import stream
from .errors import Deadlock, HostFailed, NotReached, SimKilled
from .graveyard import Graveyard
from .guards import Guards
from .host import Host
from .loop import HostLoop
from .network import Network
from .trace import Trace
from .watchdog import Watchdog

T = TypeVar("T")

TURN_COST_S = 5e-6
CALLBACK_COST_S = 1e-6
"""Price of a turn and of each callback in it. During a turn the host is busy and messages pile up:
without a price everything would happen at one instant, and group commit would see no groups."""

COMPACT_ABOVE = 200
"""Cancelled timers in the heap before it may be rebuilt; timeouts would fill it otherwise."""

PROCESSOR_LIMIT_S = 120.0


class WorldEvent:
    """Something the world itself does at its time: a delivery, a fault, a step of the schedule."""

    __slots__ = ("_cancelled", "args", "callback")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.callback = callback
        self.args = args
        # Called as asyncio's handles call it: the heap holds both, and is looked at all the time.
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True


class World:
    """One run: `with World(seed) as world:` hosts are made, started and hurt, and time passes.

    The same seed and the same calls give the same run, turn for turn, in any process and under
    any PYTHONHASHSEED; `trace.digest()` is the proof. Garbage collection is off inside the `with`
    block, because it closes forgotten connections at moments that differ between processes.
    """

    def __init__(
        self, seed: int, *, labelled: bool = False, processor_limit_s: float = PROCESSOR_LIMIT_S
    ) -> None:
        self.seed = seed
        self.now = 0.0
        """Seconds of virtual time since the run began."""
        self.trace = Trace(labelled=labelled)
        self.hosts: dict[str, Host] = {}
        self.loops: list[HostLoop] = []
        """Loops of living processes, in order of start."""
        self.network = Network(self)
        self.graveyard = Graveyard()
        self.guards = Guards(self)
        self.over = False
        self.turns = 0
        self.callbacks = 0
        self.on_host_ended: Callable[[Host, BaseException | None], None] | None = None
        """Called when a process ends by itself. Without it an exception fails the run."""
        self.on_turn: Callable[[Host], None] | None = None
        """Called after every turn of a host: where invariants are looked at. Must not raise."""
        self._watchdog = Watchdog(processor_limit_s)
        self._dice = stream(seed, "turns")
        self._heap: list[tuple[float, int, Handle | WorldEvent]] = []
        self._pushed = 0
        self._cancelled_timers = 0
        self._running = False
        self._failure: BaseException | None = None
        self._collecting = False

    def __enter__(self) -> Self:
        self._collecting = gc.isenabled()
        # What the universe before this one still held at its end has left the youngest generation.
        gc.collect(1)
        gc.disable()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        if self._collecting:
            gc.enable()

    def host(self, name: str) -> Host:
        """A new machine with an empty disk; its name resolves everywhere."""
        if name in self.hosts:
            raise ValueError(f"there is already a host {name!r}")
        host = self.hosts[name] = Host(self, name, len(self.hosts))
        return host

    # Passing of time

    def run(self, duration: float) -> None:
        """Let `duration` seconds pass."""
        self._run(self.now + duration, None)

    def run_until(self, condition: Callable[[], bool], *, within: float) -> None:
        """Let time pass until `condition` holds, looked at after every turn.

        Raises NotReached when `within` seconds were not enough, Deadlock when it cannot happen.
        """
        if self._run(self.now + within, condition):
            return
        stuck = not self._heap and not any(loop._ready for loop in self.loops)
        kind, why = (Deadlock, "nothing can happen any more") if stuck else (NotReached, "too late")
        raise kind(f"{why} at {self.now:.6f} s; waiting: {self._describe_tasks()}")

    def call(self, host: Host, work: Coroutine[Any, Any, T], *, within: float = 60.0) -> T:
        """Run `work` as a task of `host` to its end and return its result."""
        task = host.spawn(work)
        self.run_until(task.done, within=within)
        return task.result()

    def at(self, delay: float, callback: Callable[..., object], *args: Any) -> WorldEvent:
        """Have the world call `callback` after `delay` seconds."""
        return self.at_time(self.now + delay, callback, *args)

    def at_time(self, when: float, callback: Callable[..., object], *args: Any) -> WorldEvent:
        event = WorldEvent(callback, args)
        self.push(when, event)
        return event

    def push(self, when: float, item: Handle | WorldEvent) -> None:
        # The number makes equal times come in the order of pushing.
        self._pushed += 1
        if isinstance(item, TimerHandle):
            item._scheduled = True  # type: ignore[attr-defined]
        heapq.heappush(self._heap, (max(when, self.now), self._pushed, item))

    def timer_cancelled(self) -> None:
        self._cancelled_timers += 1

    def note(self, text: str) -> None:
        """Put a step of the schedule or a fault into the trace."""
        self.trace.note(self.now, text)

    # Failures

    def unhandled(self, host: Host, message: str, error: BaseException | None) -> None:
        """Something raised in `host` where no code of its own could catch it."""
        if self.over or self._failure is not None:
            return
        self._failure = HostFailed(f"{host.name} at {self.now:.6f} s: {message}: {error!r}")
        self._failure.__cause__ = error

    def host_ended(self, host: Host, error: BaseException | None) -> None:
        if self.on_host_ended is not None:
            self.on_host_ended(host, error)
        elif error is not None:
            self.unhandled(host, "the process ended", error)

    def _describe_tasks(self) -> str:
        tasks = [
            f"{task.get_name()} ({getattr(task.get_coro(), '__qualname__', '?')})"
            for loop in self.loops
            for task in loop.tasks
        ]
        return ", ".join(tasks) or "nobody"

    # The machine

    @contextlib.contextmanager
    def on(self, loop: HostLoop) -> Iterator[None]:
        """Make `loop` the running one, for the harness to act as that host."""
        before = events._get_running_loop()
        events._set_running_loop(loop)
        try:
            yield
        finally:
            events._set_running_loop(before)

    def _run(self, end: float, condition: Callable[[], bool] | None) -> bool:
        if self._running:
            raise RuntimeError("the world runs already")
        self._running = True
        try:
            with self.guards.active(), self._watchdog.watching():
                while True:
                    self._watchdog.check()
                    if self._failure is not None:
                        failure, self._failure = self._failure, None
                        raise failure
                    if condition is not None and condition():
                        return True
                    if not self._step(end):
                        if condition is None or self._heap:
                            self.now = end
                        return False
        finally:
            self._running = False

    def _step(self, end: float) -> bool:
        """One turn of one host, after moving on to the next moment if nobody is ready now.

        False when nothing happens before `end`.
        """
        chosen = self._choose()
        if chosen is None:
            moment = self._next_moment()
            if moment is None or moment > end:
                return False
            self.now = moment
            self._do_what_is_due()
            chosen = self._choose()
        if chosen is not None:
            self._turn(chosen)
        return True

    def _choose(self) -> HostLoop | None:
        """Whose turn it is: one of those that have something to run and are not busy."""
        now = self.now
        first: HostLoop | None = None
        ready: list[HostLoop] = []
        for loop in self.loops:
            if loop._ready and loop.busy_until <= now and not loop.host.paused:
                if first is None:
                    first = loop
                ready.append(loop)
        return first if len(ready) < 2 else ready[int(self._dice.random() * len(ready))]

    def _next_moment(self) -> float | None:
        """When the next timer or event is due, or a busy host becomes free."""
        self._drop_cancelled()
        moment = self._heap[0][0] if self._heap else None
        for loop in self.loops:
            if (
                loop._ready
                and (moment is None or loop.busy_until < moment)
                and not loop.host.paused
            ):
                moment = loop.busy_until
        return moment

    def _do_what_is_due(self) -> None:
        now = self.now
        # Read anew each time: what an event does may have the heap rebuilt.
        while self._heap and self._heap[0][0] <= now:
            item = heapq.heappop(self._heap)[2]
            if type(item) is WorldEvent:
                if not item._cancelled:
                    item.callback(*item.args)
                continue
            assert isinstance(item, Handle)
            if item._cancelled:
                self._cancelled_timers -= 1
                continue
            item._scheduled = False  # type: ignore[attr-defined]
            loop: HostLoop = item._loop  # type: ignore[attr-defined]
            if not loop.dead:
                loop._ready.append(item)

    def _turn(self, loop: HostLoop) -> None:
        """As `BaseEventLoop._run_once`: all that was ready, not what becomes so meanwhile."""
        ready = loop._ready
        count = len(ready)
        self.turns += 1
        self.callbacks += count
        labels = [_label(handle) for handle in ready] if self.trace.labelled else ()
        self.trace.turn(self.now, loop.host.number, count, labels)
        loop.spent = 0.0
        loop.in_turn = True
        events._set_running_loop(loop)
        try:
            for _ in range(count):
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
                # Checked, not left to SimKilled: handles and tasks swallow any exception.
                if loop.dead:
                    break
        except SimKilled:
            pass
        finally:
            events._set_running_loop(None)
            loop.in_turn = False
            loop.busy_until = self.now + TURN_COST_S + count * CALLBACK_COST_S + loop.spent
            loop.spent = 0.0
        if self.on_turn is not None:
            self.on_turn(loop.host)

    def _drop_cancelled(self) -> None:
        heap = self._heap
        while heap and heap[0][2]._cancelled:
            item = heapq.heappop(heap)[2]
            if isinstance(item, TimerHandle):
                self._cancelled_timers -= 1
        if self._cancelled_timers > COMPACT_ABOVE and self._cancelled_timers * 2 > len(heap):
            self._heap = [entry for entry in heap if not _is_cancelled(entry[2])]
            heapq.heapify(self._heap)
            self._cancelled_timers = 0

    def close(self) -> None:
        """End of the universe: what the dead still held is closed where it cannot matter."""
        self.over = True
        for loop in self.loops:
            loop.dead = True
            self.graveyard.bury(loop)
        self.loops.clear()
        self.graveyard.close()
        self.network.close()
        self._heap.clear()
        self.hosts.clear()
        # By now the universe is old: what only it holds would live until a full collection.
        self.on_turn = self.on_host_ended = None
        gc.collect(0)


def _is_cancelled(item: Handle | WorldEvent) -> bool:
    return item._cancelled


def _label(handle: Handle) -> str:
    callback: Any = handle._callback  # type: ignore[attr-defined]
    while hasattr(callback, "func"):
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return f"{owner.get_name()}:{getattr(owner.get_coro(), '__qualname__', '?')}"
    return str(getattr(callback, "__qualname__", type(callback).__name__))
