"""While a world runs, no way leads around the seam."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from logboat.jepsen_style.simulation import Host, SimEscape, WatchdogExpired, World


async def forever(_: Host) -> None:
    await asyncio.get_running_loop().create_future()


def run_as(module: str, source: str, seed: int = 1) -> object:
    """The value of an expression evaluated on a host by code of the named module."""
    namespace: dict[str, Any] = {"__name__": module}
    exec(
        "import asyncio, os, random, secrets, time, uuid\n"
        f"async def work():\n    return {source}\n",
        namespace,
    )
    work: Callable[[], Coroutine[Any, Any, object]] = namespace["work"]
    with World(seed) as world:
        host = world.host("n1")
        host.start(forever)
        return world.call(host, work())


ESCAPES = [
    "time.time()",
    "time.time_ns()",
    "time.monotonic()",
    "time.perf_counter()",
    "random.random()",
    "random.choice([1, 2])",
    "random.SystemRandom().random()",
    "os.urandom(4)",
    "uuid.uuid4()",
    "secrets.token_hex(4)",
    "open('/dev/null')",
    "os.open('/dev/null', os.O_RDONLY)",
]


@pytest.mark.parametrize("source", ESCAPES)
def test_our_own_modules_are_stopped(source: str) -> None:
    with pytest.raises(SimEscape, match=r"logboat\.node\.x used"):
        run_as("logboat.node.x", source)


@pytest.mark.parametrize("source", ESCAPES[:-2])
def test_libraries_get_values_that_the_seed_decides(source: str) -> None:
    assert run_as("library.x", source) == run_as("library.x", source)


@pytest.mark.parametrize("source", ["os.urandom(8)", "uuid.uuid4()", "random.random()"])
def test_another_seed_gives_libraries_other_values(source: str) -> None:
    assert run_as("library.x", source, 1) != run_as("library.x", source, 2)


@pytest.mark.parametrize(
    "escape",
    [
        lambda: threading.Thread(target=print).start(),
        lambda: time.sleep(1),
        lambda: socket.socket(),
        lambda: socket.create_connection(("127.0.0.1", 1)),
        lambda: socket.getaddrinfo("localhost", 1),
        lambda: subprocess.run(["true"], check=False),
        lambda: asyncio.run(forever(None)),  # type: ignore[arg-type]
        lambda: asyncio.get_running_loop().add_reader(0, print),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_threads_sockets_sleeps_and_processes_are_errors_for_everybody(
    escape: Callable[[], object],
) -> None:
    async def work() -> None:
        escape()

    with World(1) as world:
        host = world.host("n1")
        host.start(forever)
        with pytest.raises(SimEscape):
            world.call(host, work())


def test_library_time_is_the_host_s_time_and_its_use_is_counted() -> None:
    async def read() -> tuple[float, float, float]:
        return time.monotonic(), asyncio.get_running_loop().time(), time.time()

    with World(1) as world:
        host = world.host("n1")
        host.start(forever)
        host.step_wall_clock(1_000_000)
        monotonic, loop_time, wall = world.call(host, read())
        assert monotonic == pytest.approx(loop_time, abs=1e-3)
        assert wall == pytest.approx(host.wall_time(), abs=1e-3)
        assert world.guards.uses[__name__, "time.monotonic"] == 1


def test_outside_a_run_everything_is_real_again() -> None:
    before = (time.time, random.random, os.urandom, socket.socket, uuid.uuid4, secrets.token_bytes)
    state = random.getstate()
    with World(1) as world:
        host = world.host("n1")
        host.start(forever)

        async def roll() -> float:
            return random.random()

        world.call(host, roll())
        # Between two runs the harness measures real time.
        assert time.time() > 1_700_000_000 + 1
        after = (time.time, random.random, os.urandom, socket.socket, uuid.uuid4)
    assert after == before[:5]
    assert secrets.token_bytes is before[5]
    assert random.getstate() == state


def test_a_loop_that_never_awaits_is_broken_off() -> None:
    async def spin(_: Host) -> None:
        while True:
            pass

    with World(1, processor_limit_s=0.2) as world:
        world.host("n1").start(spin)
        with pytest.raises(WatchdogExpired):
            world.run(1)


def test_a_loop_that_never_rests_is_broken_off() -> None:
    async def restless(_: Host) -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    with World(1, processor_limit_s=0.2) as world:
        world.host("n1").start(restless)
        with pytest.raises(WatchdogExpired):
            world.run(1_000_000)


def test_a_swallowed_watchdog_still_ends_the_run() -> None:
    async def stubborn(_: Host) -> None:
        while True:
            try:
                while True:
                    pass
            except BaseException:
                await asyncio.sleep(0)

    with World(1, processor_limit_s=0.2) as world:
        world.host("n1").start(stubborn)
        with pytest.raises(WatchdogExpired):
            world.run(1_000_000)
