"""One event loop per host incarnation.

Because every incarnation has a loop object of its own, `asyncio.get_running_loop()` *is* the
answer to "on which host does this run". Death is a loop that is never run again. A future, queue
or lock that leaks from one host to another raises "attached to a different loop".
"""

from __future__ import annotations

import asyncio
from asyncio.events import Handle, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from .dice import stream
from .errors import SimEscape, SimKilled
from .futures import SimFuture, SimTask
from .virtual_threads import VirtualThreads

if TYPE_CHECKING:
    from .host import Host
    from .network import Network
    from .world import World

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

CLOCK_READ_S = 1e-7
"""Reading the clock costs time: a callback that spins until the clock moves ends after all."""

EXECUTOR_THREADS = 4
EXECUTOR_DELAY_S = 1e-3
"""Longest wait of a job for its thread to be scheduled."""


class HostLoop(asyncio.BaseEventLoop):
    """An asyncio loop whose turns are given by the `World`.

    `BaseEventLoop` supplies what does not touch a file descriptor; what does, raises `SimEscape`.
    """

    _ready: deque[Handle]

    def __init__(self, world: World, host: Host) -> None:
        # The base constructor asks is_running(), and schedules a callback if it is.
        self.dead = True
        super().__init__()
        self.set_debug(False)
        self.dead = False
        self.world = world
        self.host = host
        self.busy_until = 0.0
        """World time until which the last turn keeps the processor."""
        self.spent = 0.0
        """Seconds of processor time used in the turn that runs now; 0 between turns."""
        self.in_turn = False
        self.tasks: dict[asyncio.Task[Any], None] = {}
        """Living tasks in order of birth. `asyncio.all_tasks` looks through every loop there is."""
        self.signal_handlers: dict[int, Callable[[], object]] = {}
        self._births = 0
        self._task_names = 0
        # Callbacks that come from the world must not inherit the context of whoever caused them.
        self.base_context = Context()
        dice = stream(world.seed, f"executor:{host.name}:{host.incarnation}")
        self._executor_dice = dice
        self._threads = VirtualThreads(self, EXECUTOR_THREADS, dice)

    # Time

    def time(self) -> float:
        if self.in_turn:
            self.spent += CLOCK_READ_S
        return self.host.to_host_time(self.world.now + self.spent)

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> Handle:
        handle = Handle(callback, args, self, context)
        if not self.dead:
            self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> TimerHandle:
        handle = TimerHandle(when, callback, args, self, context)
        if not self.dead:
            self.world.push(self.host.to_world_time(when), handle)
        return handle

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        # A timer that has become ready is no longer in the heap.
        if handle._scheduled:  # type: ignore[attr-defined]
            self.world.timer_cancelled()

    def post(self, callback: Callable[..., object], *args: Any) -> None:
        """Called by the world: run `callback` in a turn of this loop, as a selector would."""
        self.call_soon(callback, *args, context=self.base_context)

    # Futures and tasks

    def next_birth(self) -> int:
        self._births += 1
        return self._births

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        self._task_names += 1
        # The default name, Task-N, counts over the whole process and all runs in it.
        label = name or f"{self.host.name}.{self.host.incarnation}-{self._task_names}"
        task = SimTask(coro, self, str(label), context)
        self.tasks[task] = None
        task.add_done_callback(self._forget_task)
        return task

    def _forget_task(self, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(task, None)

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        if executor is not None:
            raise SimEscape("an executor with real threads in the simulation")
        delay = self._executor_dice.random() * EXECUTOR_DELAY_S
        return self._threads.submit(lambda: func(*args), delay=delay)

    # Network

    @property
    def _network(self) -> Network:
        return self.world.network

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        return self._network.getaddrinfo(self.host, host, port)

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> Any:
        return str(sockaddr[0]), str(sockaddr[1])

    async def create_server(self, *args: Any, **options: Any) -> Any:
        return await self._network.create_server(self, *args, **options)

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        return await self._network.create_connection(self, *args, **options)

    # Signals

    def add_signal_handler(self, sig: int, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        self.signal_handlers[sig] = lambda: callback(*args)

    def remove_signal_handler(self, sig: int) -> bool:
        return self.signal_handlers.pop(sig, None) is not None

    # The loop itself

    def is_running(self) -> bool:
        return not self.dead

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if self.dead or isinstance(error, SimKilled):
            return
        self.world.unhandled(self.host, str(context.get("message")), error)

    def close(self) -> None:
        """Nothing to close; the base class would warn about a loop left open."""

    def __del__(self) -> None:
        """The base class would warn about a loop left open."""


def _refuse(*_: Any, **__: Any) -> Any:
    raise SimEscape("file descriptors, processes and own loops do not exist in the simulation")


for _name in (
    *("run_forever", "run_until_complete", "add_reader", "add_writer", "remove_reader"),
    *("remove_writer", "sock_recv", "sock_recv_into", "sock_sendall", "sock_accept"),
    *("sock_connect", "sendfile", "sock_sendfile", "start_tls", "create_datagram_endpoint"),
    *("create_unix_connection", "create_unix_server", "connect_accepted_socket"),
    *("subprocess_exec", "subprocess_shell", "connect_read_pipe", "connect_write_pipe"),
):
    setattr(HostLoop, _name, _refuse)
