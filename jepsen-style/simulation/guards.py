"""While a world runs, every way around the seam is closed.

A module of ours that uses one gets `SimEscape`; a library gets virtual time or seeded chance, and
the use is counted. What starts a thread, opens a socket or sleeps is an error for everybody.

Patched are process-wide names, only while `World.run` is active and only for the thread that runs
it. `datetime.now` lives in C and cannot be patched: a test looks for it in the source.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import os
import random
import secrets
import socket
import subprocess
import sys
import threading
import time
import uuid
from asyncio import events
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .clock import EPOCH_S
from .dice import stream
from .errors import SimEscape
from .loop import HostLoop

if TYPE_CHECKING:
    from .world import World

PRODUCT = "logboat."
NOT_PRODUCT = ("logboat.jepsen_style", "logboat.testing", "logboat.client")

LIBRARIES = ("pysyncobj",)
"""Whose modules are searched for names bound by `from time import ...`; ours are, too."""

_GO_BETWEEN = ("random", "secrets", "uuid", "tempfile", __name__)
"""Asked on behalf of somebody else: who called them is who reached around the seam."""

_REAL_CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
_RANDOM_FUNCTIONS = (
    *("random", "uniform", "randint", "randrange", "choice", "choices", "sample", "shuffle"),
    *("getrandbits", "randbytes", "gauss", "expovariate", "triangular", "normalvariate", "seed"),
)


class Guards:
    def __init__(self, world: World) -> None:
        self.uses: Counter[tuple[str, str]] = Counter()
        """(module, what): how often a library asked for virtual time or seeded chance."""
        self._world = world
        self._dice = stream(world.seed, "libraries")
        self._thread = threading.get_ident()
        self._module_random = stream(world.seed, "module random").getstate()
        self._patches: list[tuple[Any, str, Any]] = []
        self._modules_seen = 0

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        if len(sys.modules) != self._modules_seen:
            self._patches = self._make_patches()
            self._modules_seen = len(sys.modules)
        originals = [(owner, name, getattr(owner, name)) for owner, name, _ in self._patches]
        module_random = random.getstate()
        random.setstate(self._module_random)
        for owner, name, value in self._patches:
            setattr(owner, name, value)
        try:
            yield
        finally:
            for owner, name, value in reversed(originals):
                setattr(owner, name, value)
            self._module_random = random.getstate()
            random.setstate(module_random)

    def _make_patches(self) -> list[tuple[Any, str, Any]]:
        patches: list[tuple[Any, str, Any]] = []
        clocks: dict[int, Any] = {}
        for name in _REAL_CLOCKS:
            real = getattr(time, name)
            clocks[id(real)] = virtual = self._served(f"time.{name}", real, self._clock(name))
            patches.append((time, name, virtual))
        for name in _RANDOM_FUNCTIONS:
            real = getattr(random, name)
            patches.append((random, name, self._served(f"random.{name}", real, real)))
        patches += [
            (os, "urandom", self._served("os.urandom", os.urandom, self._urandom)),
            (random, "_urandom", self._served("os.urandom", os.urandom, self._urandom)),
            (uuid, "uuid4", self._served("uuid.uuid4", uuid.uuid4, self._uuid4)),
            (uuid, "uuid1", self._served("uuid.uuid1", uuid.uuid1, self._uuid4)),
            (
                secrets,
                "token_bytes",
                self._served("secrets", secrets.token_bytes, lambda n=32: self._urandom(n)),
            ),
            (builtins, "open", self._served("open", builtins.open, builtins.open)),
            (os, "open", self._served("os.open", os.open, os.open)),
            (time, "sleep", self._forbidden("time.sleep", time.sleep)),
            (threading.Thread, "start", self._forbidden("a thread", threading.Thread.start)),
            (socket, "socket", self._forbidden_socket()),
            (
                socket,
                "create_connection",
                self._forbidden("socket.create_connection", socket.create_connection),
            ),
            (socket, "getaddrinfo", self._forbidden("socket.getaddrinfo", socket.getaddrinfo)),
            (subprocess, "Popen", self._forbidden("a process", subprocess.Popen)),
            (asyncio, "run", self._forbidden("asyncio.run", asyncio.run)),
        ]
        for module, name, real in _bound_clocks(len(sys.modules)):
            patches.append((module, name, clocks[id(real)]))
        return patches

    # What libraries are served

    def _clock(self, name: str) -> Callable[[], float | int]:
        def monotonic() -> float:
            loop = _running_host_loop()
            return self._world.now if loop is None else loop.time()

        def wall() -> float:
            loop = _running_host_loop()
            return EPOCH_S + self._world.now if loop is None else loop.host.wall_time()

        read = wall if name.startswith("time") else monotonic
        if name.endswith("_ns"):
            return lambda: int(read() * 1e9)
        return read

    def _urandom(self, size: int) -> bytes:
        loop = _running_host_loop()
        return (self._dice if loop is None else loop.host.rng).randbytes(size)

    def _uuid4(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._urandom(16), version=4)

    # Who asks

    def _served(self, what: str, real: Callable[..., Any], virtual: Callable[..., Any]) -> Any:
        def guard(*args: Any, **options: Any) -> Any:
            if threading.get_ident() != self._thread:
                return real(*args, **options)
            module = _asking_module()
            if _is_product(module):
                raise SimEscape(f"{module} used {what}")
            self.uses[module, what] += 1
            return virtual(*args, **options)

        return guard

    def _forbidden(self, what: str, real: Callable[..., Any]) -> Any:
        def guard(*args: Any, **options: Any) -> Any:
            if threading.get_ident() != self._thread:
                return real(*args, **options)
            raise SimEscape(f"{_asking_module()} used {what}")

        return guard

    def _forbidden_socket(self) -> type[socket.socket]:
        guard = self._forbidden("a real socket", lambda: None)

        class NoSocket(socket.socket):
            # A class, because libraries ask isinstance(x, socket.socket).
            def __init__(self, *_: Any, **__: Any) -> None:
                guard()

        return NoSocket


@lru_cache(maxsize=1)
def _bound_clocks(_modules: int) -> list[tuple[Any, str, Any]]:
    """Where `from time import monotonic` and the like have bound a clock: module, name, clock.

    Looked for once per number of loaded modules; every run of a search asks.
    """
    clocks = {id(getattr(time, name)) for name in _REAL_CLOCKS}
    return [
        (module, name, value)
        for module_name, module in sorted(sys.modules.items())
        if _is_product(module_name) or module_name.split(".")[0] in LIBRARIES
        for name, value in list(vars(module).items())
        if id(value) in clocks
    ]


def _running_host_loop() -> HostLoop | None:
    loop = events._get_running_loop()
    return loop if isinstance(loop, HostLoop) else None


def _asking_module() -> str:
    frame = sys._getframe(2)
    while True:
        name = str(frame.f_globals.get("__name__", "?"))
        if name not in _GO_BETWEEN or frame.f_back is None:
            return name
        frame = frame.f_back


def _is_product(module: str) -> bool:
    return module.startswith(PRODUCT) and not module.startswith(NOT_PRODUCT)
