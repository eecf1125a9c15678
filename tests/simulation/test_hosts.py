"""Hosts on virtual time: asyncio as usual, death, pause, clocks."""

from __future__ import annotations

import asyncio
import gc
import signal
import time
import warnings
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest

from logboat.jepsen_style.simulation import Deadlock, Host, HostFailed, NotReached, World
from logboat.seam import offload


async def forever(_: Host) -> None:
    await asyncio.get_running_loop().create_future()


def test_an_hour_of_virtual_time_passes_in_a_moment() -> None:
    began = time.process_time()
    with World(1) as world:
        host = world.host("n1")

        async def ticks(_: Host) -> int:
            count = 0
            while count < 3600:
                await asyncio.sleep(1)
                count += 1
            return count

        main = host.start(ticks)
        world.run_until(main.done, within=3700)
        assert main.result() == 3600
        assert 3600 < world.now < 3601
    assert time.process_time() - began < 20


def test_the_tools_of_asyncio_work() -> None:
    async def work() -> list[object]:
        queue: asyncio.Queue[int] = asyncio.Queue(2)
        lock = asyncio.Lock()
        taken: list[object] = []

        async def produce() -> None:
            for number in range(5):
                await queue.put(number)

        async def consume() -> None:
            for _ in range(5):
                async with lock:
                    taken.append(await queue.get())

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            group.create_task(consume())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await asyncio.sleep(9)
        taken += await asyncio.gather(
            asyncio.wait_for(asyncio.sleep(1, "x"), 3), asyncio.sleep(2, "y")
        )
        taken.append(await offload(lambda: 42))
        taken.append(await asyncio.to_thread(lambda: 7))
        with pytest.raises(ZeroDivisionError):
            await offload(lambda: 1 // 0)
        return taken

    with World(1) as world:
        host = world.host("n1")
        host.start(forever)
        assert world.call(host, work()) == [0, 1, 2, 3, 4, "x", "y", 42, 7]


def test_a_kill_runs_no_finally_block_until_the_end_of_the_run() -> None:
    ran: list[str] = []

    async def main(_: Host) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ran.append("finally")

    with World(1) as world:
        host = world.host("n1")
        host.start(main)
        world.run(1)
        host.kill()
        world.run(2000)
        assert not host.alive
        assert ran == []
    assert ran == ["finally"]


def test_a_process_that_kills_its_own_host_does_not_return_from_it() -> None:
    after: list[str] = []

    async def main(host: Host) -> None:
        host.spawn(forever(host))
        await asyncio.sleep(1)
        host.kill()
        after.append("still alive")

    with World(1) as world:
        host = world.host("n1")
        host.start(main)
        world.run(2)
        assert not host.alive
        host.start(forever)
        world.run(2)
        assert host.alive
    assert after == []


def test_the_dead_touch_nothing_even_from_finally_blocks() -> None:
    async def main(host: Host) -> None:
        file = host.disk.open("x", create=True)
        try:
            host.kill()
        finally:
            file.append([b"from the grave"])

    with World(1) as world:
        host = world.host("n1")
        host.start(main)
        world.run(1)
        assert host.drive.files() == {"x": b""}


def test_two_thousand_kills_and_restarts() -> None:
    async def main(_: Host) -> None:
        await asyncio.gather(asyncio.sleep(1), asyncio.sleep(2))

    with World(1) as world:
        host = world.host("n1")
        for _ in range(2000):
            host.start(main)
            world.run(0.001)
            host.kill()
        assert host.incarnation == 2000


def test_a_paused_host_does_nothing_until_it_is_resumed() -> None:
    ticks: list[float] = []

    async def main(_: Host) -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(world.now)

    with World(1) as world:
        host = world.host("n1")
        host.start(main)
        world.run(3.5)
        host.pause()
        world.run(5)
        assert len(ticks) == 3
        host.resume()
        world.run(1)
        assert 8.5 <= ticks[3] < 8.6


def test_a_stalled_loop_leaves_its_threads_running() -> None:
    done: list[float] = []

    async def main(_: Host) -> None:
        await offload(lambda: done.append(world.now))
        done.append(world.now)

    with World(1) as world:
        host = world.host("n1")
        host.start(main)
        world.run(0.00001)
        host.stall(5)
        world.run(10)
        assert done[0] < 1
        assert done[1] > 5


def test_a_pause_stops_the_threads_too() -> None:
    done: list[float] = []

    async def main(_: Host) -> None:
        await offload(lambda: done.append(world.now))

    with World(1) as world:
        host = world.host("n1")
        host.start(main)
        world.run(0.00001)
        host.pause()
        world.run(5)
        assert done == []
        host.resume()
        world.run(1)
        assert len(done) == 1


def test_each_host_has_monotonic_and_wall_clocks_of_its_own() -> None:
    async def read(host: Host) -> tuple[float, int]:
        return asyncio.get_running_loop().time(), host.clock.now_ms()

    with World(1) as world:
        one, other = world.host("a"), world.host("b")
        other.rate = 1.1
        one.start(forever)
        other.start(forever)
        before = world.call(one, read(one)), world.call(other, read(other))
        other.step_wall_clock(-3600)
        world.run(10)
        after = world.call(one, read(one)), world.call(other, read(other))
    assert after[0][0] - before[0][0] == pytest.approx(10, abs=0.01)
    assert after[1][0] - before[1][0] == pytest.approx(11, abs=0.01)
    assert after[0][1] - before[0][1] == pytest.approx(10_000, abs=10)
    assert after[1][1] - before[1][1] == pytest.approx(11_000 - 3_600_000, abs=10)
    assert abs(before[0][0] - before[1][0]) > 1


def test_sleep_on_a_fast_clock_ends_early_in_world_time() -> None:
    with World(1) as world:
        host = world.host("n1")
        host.rate = 2.0
        host.start(forever)
        world.call(host, asyncio.sleep(10))
        assert world.now == pytest.approx(5, abs=0.01)


def test_reading_the_clock_takes_time_so_that_spinning_on_it_ends() -> None:
    async def spin() -> int:
        loop = asyncio.get_running_loop()
        end, reads = loop.time() + 0.001, 0
        while loop.time() < end:
            reads += 1
        return reads

    with World(1) as world:
        host = world.host("n1")
        host.start(forever)
        assert 9_000 < world.call(host, spin()) < 11_000


def test_a_turn_costs_time_and_what_comes_meanwhile_waits() -> None:
    ran: list[float] = []

    async def main(host: Host) -> None:
        asyncio.get_running_loop().call_later(0.001, lambda: ran.append(world.now))
        host.spend(0.5)
        await forever(host)

    with World(1) as world:
        world.host("n1").start(main)
        world.run(1)
    assert ran[0] >= 0.5


def test_signals_go_to_their_handlers_and_kill_without_one() -> None:
    got: list[str] = []

    async def main(_: Host) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, got.append, "term")
        await asyncio.sleep(1000)

    with World(1) as world:
        host = world.host("n1")
        host.start(main)
        world.run(0.1)
        host.signal(signal.SIGTERM)
        world.run(0.1)
        assert got == ["term"]
        assert host.alive
        host.signal(signal.SIGINT)
        assert not host.alive


def test_the_process_ends_when_its_main_returns() -> None:
    with World(1) as world:
        host = world.host("n1")

        async def main(_: Host) -> None:
            await asyncio.sleep(1)

        host.start(main)
        world.run(2)
        assert not host.alive
        assert host.exit_error is None


def test_an_exception_of_main_fails_the_run_unless_it_is_expected() -> None:
    async def main(_: Host) -> None:
        await asyncio.sleep(1)
        raise ValueError("broken invariant")

    with World(1) as world:
        host = world.host("n1")
        host.start(main)
        with pytest.raises(HostFailed, match=r"n1 .*broken invariant"):
            world.run(2)
        ended: list[tuple[Host, BaseException | None]] = []
        world.on_host_ended = lambda host, error: ended.append((host, error))
        host.start(main)
        world.run(2)
        assert ended[0][0] is host
        assert isinstance(host.exit_error, ValueError)


def test_a_process_that_ends_itself_runs_nothing_more() -> None:
    after: list[str] = []

    async def main(host: Host) -> None:
        try:
            host.exit(ValueError("a broken invariant"))
            after.append("went on")
        except Exception:
            after.append("caught")

    with World(1) as world:
        ended: list[str] = []
        world.on_host_ended = lambda host, error: ended.append(f"{host.name}: {error}")
        host = world.host("n1")
        host.start(main)
        world.run(1)
        assert not host.alive
        assert ended == ["n1: a broken invariant"]
    assert after == []


def test_an_exception_nobody_catches_fails_the_run() -> None:
    def explode() -> None:
        raise KeyError("lost")

    async def main(host: Host) -> None:
        asyncio.get_running_loop().call_later(1, explode)
        await forever(host)

    with World(1) as world:
        world.host("n1").start(main)
        with pytest.raises(HostFailed, match="lost"):
            world.run(2)


def test_a_deadlock_names_who_waits() -> None:
    async def main(_: Host) -> None:
        await asyncio.get_running_loop().create_future()

    with World(1) as world:
        host = world.host("n1")
        host.start(main)
        with pytest.raises(Deadlock, match=r"n1\.1-main .*main"):
            world.run_until(lambda: False, within=60)


def test_what_comes_too_late_is_not_reached() -> None:
    with World(1) as world:
        host = world.host("n1")

        async def main(_: Host) -> None:
            await asyncio.sleep(10)

        task = host.start(main)
        with pytest.raises(NotReached, match="too late at 5"):
            world.run_until(task.done, within=5)
        world.run_until(task.done, within=6)


def test_a_future_of_one_host_is_useless_on_another() -> None:
    shared: list[asyncio.Future[Any]] = []

    async def make(host: Host) -> None:
        shared.append(asyncio.get_running_loop().create_future())
        await forever(host)

    async def use() -> None:
        await shared[0]

    with World(1) as world:
        world.host("a").start(make)
        other = world.host("b")
        other.start(forever)
        with pytest.raises(RuntimeError, match="attached to a different loop"):
            world.call(other, use())


def test_sets_of_futures_and_tasks_are_walked_in_order_of_birth() -> None:
    async def main() -> tuple[list[str], bool]:
        tasks = [asyncio.create_task(asyncio.sleep(1), name=f"t{n}") for n in range(50)]
        done, _ = await asyncio.wait(tasks)
        return [task.get_name() for task in done], hash(tasks[1]) - hash(tasks[0]) > 0

    with World(1) as world:
        host = world.host("n1")
        host.start(forever)
        names, ordered = world.call(host, main())
    assert names == [f"t{n}" for n in range(50)]
    assert ordered


def test_unnamed_tasks_are_named_after_host_and_incarnation() -> None:
    async def name() -> str:
        task = asyncio.current_task()
        assert task is not None
        return task.get_name()

    with World(1) as world:
        host = world.host("n1")
        host.start(forever)
        assert world.call(host, name()) == "n1.1-2"


def test_cancelled_timers_do_not_fill_the_heap() -> None:
    async def main(_: Host) -> None:
        loop = asyncio.get_running_loop()
        for _number in range(5000):
            loop.call_later(1000, print).cancel()
            await asyncio.sleep(0.001)

    with World(1) as world:
        host = world.host("n1")
        task = host.start(main)
        world.run_until(task.done, within=60)
        assert len(world._heap) < 1000


class Watcher:
    """Holds on to a universe that holds on to it, as every scope's watch does."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.on_turn = self.on_turn
        world.on_host_ended = lambda host, error: self.on_turn(host)
        world.network.on_send = lambda endpoint, data: self is not None

    def on_turn(self, host: Host) -> None:
        pass


def ended_universe() -> weakref.ref[Watcher]:
    with World(1) as world:
        return weakref.ref(Watcher(world))


def test_what_a_universe_held_goes_when_the_next_one_begins() -> None:
    """Without a full garbage collection, for which hundreds of seeds would otherwise wait."""
    with World(0):
        watcher = ended_universe()
    with World(2):
        assert watcher() is None


def test_what_a_killed_process_was_about_to_do_is_closed_without_a_word() -> None:
    async def request() -> None:
        await asyncio.sleep(0)

    async def answered(work: Coroutine[Any, Any, None]) -> None:
        await work

    def die() -> None:
        with World(1) as world:
            host = world.host("n1")
            host.start(forever)
            world.run(0.1)
            work = request()
            task = host.spawn(answered(work))
            # As a connection's pipeline does, so that the work outlives its task.
            task.add_done_callback(lambda _: work.close())
            host.kill()
            world.run(0.1)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        die()
        gc.collect()
    assert [str(warning.message) for warning in told] == []
