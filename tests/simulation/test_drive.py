"""What a kill and a loss of power leave on a simulated disk, and how it is made to fail."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from logboat.jepsen_style.simulation import DiskCall, Host, Keep, World
from logboat.seam import DiskLocked, Fatal, offload, write_file_atomically


@pytest.fixture
def host() -> Iterator[Host]:
    with World(1) as world:
        yield world.host("n1")


async def forever(_: Host) -> None:
    await asyncio.get_running_loop().create_future()


def after(host: Host, work: Callable[[Host], Coroutine[Any, Any, Any]]) -> dict[str, bytes]:
    """Run a process to its end; its files."""
    done = host.start(work)
    host.world.run_until(lambda: not host.alive, within=10)
    done.result()
    return files(host)


def files(host: Host) -> dict[str, bytes]:
    return {path: bytes(data) for path, data in host.drive.files().items()}


async def half_synced(host: Host) -> None:
    file = host.disk.open("log", create=True)
    await host.disk.sync_dir(".")
    file.append([b"synced,"])
    await file.sync()
    file.append([b"one,"])
    file.append([b"two"])


def test_a_kill_keeps_all_that_was_written(host: Host) -> None:
    assert after(host, half_synced) == {"log": b"synced,one,two"}
    assert not host.alive


def test_a_power_cut_that_keeps_nothing_leaves_what_was_synced(host: Host) -> None:
    after(host, half_synced)
    host.power_off(Keep.NONE)
    assert files(host) == {"log": b"synced,"}


def test_a_power_cut_that_keeps_all_loses_nothing(host: Host) -> None:
    after(host, half_synced)
    host.power_off(Keep.ALL)
    assert files(host) == {"log": b"synced,one,two"}


@pytest.mark.parametrize("keep", [Keep.PREFIX, Keep.ANY])
def test_a_power_cut_may_keep_a_part_of_the_unsynced_and_never_less_than_the_synced(
    keep: Keep,
) -> None:
    seen = set()
    for seed in range(60):
        with World(seed) as world:
            host = world.host("n1")
            after(host, half_synced)
            host.power_off(keep)
            seen.add(files(host)["log"])
    assert all(content.startswith(b"synced,") for content in seen)
    assert {b"synced,", b"synced,one,", b"synced,one,two"} <= seen
    skipped = {content for content in seen if content == b"synced,\0\0\0\0two"}
    assert bool(skipped) == (keep is Keep.ANY)


def test_a_torn_write_ends_at_a_sector_or_in_zeros() -> None:
    async def work(host: Host) -> None:
        file = host.disk.open("log", create=True)
        await host.disk.sync_dir(".")
        file.append([b"x" * 2000])

    seen = set()
    for seed in range(60):
        with World(seed) as world:
            host = world.host("n1")
            after(host, work)
            host.power_off(Keep.PREFIX)
            seen.add(files(host)["log"])
    assert {b"", b"x" * 512, b"x" * 1024, b"x" * 512 + bytes(1488)} <= seen


def test_a_sync_promises_only_what_was_written_before_it_began(host: Host) -> None:
    async def work(host: Host) -> None:
        file = host.disk.open("log", create=True)
        await host.disk.sync_dir(".")
        file.append([b"before,"])
        sync = asyncio.ensure_future(file.sync())
        await asyncio.sleep(0)
        file.append([b"during"])
        await sync

    after(host, work)
    host.power_off(Keep.NONE)
    assert files(host) == {"log": b"before,"}


def test_a_sync_cut_short_by_the_power_promises_nothing(host: Host) -> None:
    host.drive.sync_latency_s = 1.0

    async def work(host: Host) -> None:
        file = host.disk.open("log", create=True)
        await host.disk.sync_dir(".")
        file.append([b"x"])
        await file.sync()

    host.start(work)
    host.world.run(1.6)
    host.power_off(Keep.NONE)
    assert files(host) == {"log": b""}


def test_syncs_of_several_files_run_side_by_side(host: Host) -> None:
    host.drive.sync_latency_s = 1.0

    async def work(host: Host) -> None:
        opened = [host.disk.open(f"log-{n}", create=True) for n in range(4)]
        await asyncio.gather(*(file.sync() for file in opened))

    after(host, work)
    assert host.world.now < 2


def test_a_name_is_durable_when_its_directory_is_synced_and_not_before(host: Host) -> None:
    async def work(host: Host) -> None:
        disk = host.disk
        for name in ("synced", "unsynced"):
            disk.make_dirs(name)
            file = disk.open(f"{name}/log", create=True)
            file.append([b"x"])
            await file.sync()
        await disk.sync_dir(".")
        await disk.sync_dir("synced")

    after(host, work)
    host.power_off(Keep.NONE)
    assert files(host) == {"synced/log": b"x"}


def test_syncing_a_directory_says_nothing_of_its_own_name(host: Host) -> None:
    async def work(host: Host) -> None:
        host.disk.make_dirs("topic-0")
        host.disk.open("topic-0/log", create=True)
        await host.disk.sync_dir("topic-0")

    after(host, work)
    host.power_off(Keep.NONE)
    assert files(host) == {}


@pytest.mark.parametrize("keep", list(Keep))
def test_a_file_written_atomically_is_old_or_new_after_any_power_cut(keep: Keep) -> None:
    async def work(host: Host) -> None:
        await write_file_atomically(host.disk, "checkpoint", b"old")
        await write_file_atomically(host.disk, "checkpoint", b"new")

    seen = set()
    for number in range(1, 200):
        with World(number) as world:
            host = world.host("n1")

            def crash(call: DiskCall, number: int = number, host: Host = host) -> None:
                if call.number == number:
                    host.power_off(keep)

            host.drive.on_call = crash
            host.start(work)
            world.run(1)
            if host.powered:
                break
            content = files(host).get("checkpoint")
            seen.add(content)
            assert content in (None, b"old", b"new")
    assert b"old" in seen


@pytest.mark.parametrize("keep", list(Keep))
def test_a_rename_over_directories_never_loses_the_file(keep: Keep) -> None:
    async def work(host: Host) -> None:
        for name in ("a", "b"):
            host.disk.make_dirs(name)
        await host.disk.sync_dir(".")
        await write_file_atomically(host.disk, "a/file", b"x")
        host.disk.rename("a/file", "b/file")

    for seed in range(20):
        with World(seed) as world:
            host = world.host("n1")
            after(host, work)
            host.power_off(keep)
            assert sorted(files(host)) in (["a/file"], ["b/file"])


def test_a_crash_point_kills_before_the_effect(host: Host) -> None:
    async def work(host: Host) -> None:
        file = host.disk.open("log", create=True)
        file.append([b"one"])
        file.append([b"two"])

    host.drive.on_call = lambda call: host.kill() if call.number == 3 else None
    host.start(work)
    host.world.run(1)
    assert not host.alive
    assert files(host) == {"log": b"one"}


def test_a_crash_inside_offloaded_work_kills_too(host: Host) -> None:
    async def work(host: Host) -> None:
        file = host.disk.open("log", create=True)
        await offload(lambda: file.append([b"one"]))
        file.append([b"two"])

    host.drive.on_call = lambda call: host.kill() if call.kind == "append" else None
    host.start(work)
    host.world.run(1)
    assert not host.alive
    assert files(host) == {"log": b""}


def test_a_failed_sync_is_fatal_and_its_bytes_read_back_until_the_power_goes(
    host: Host,
) -> None:
    def fail(call: DiskCall) -> None:
        if call.kind == "sync effect":
            raise OSError(errno.EIO, "injected")

    async def work(host: Host) -> None:
        file = host.disk.open("log", create=True)
        await host.disk.sync_dir(".")
        file.append([b"lost"])
        host.drive.on_call = fail
        with pytest.raises(Fatal, match="sync of log failed"):
            await file.sync()
        host.drive.on_call = None
        # The kernel has marked the pages clean: a second sync has nothing to do and succeeds.
        await file.sync()
        assert file.read_at(0, 9) == b"lost"

    after(host, work)
    host.power_off(Keep.ALL)
    assert files(host) == {"log": b""}


def test_a_full_disk_takes_what_fits_and_raises(host: Host) -> None:
    host.drive.capacity_bytes = 1000

    async def work(host: Host) -> None:
        file = host.disk.open("log", create=True)
        file.append([bytes(900)])
        assert host.disk.free_bytes(".") == 100
        with pytest.raises(OSError, match="No space left") as full:
            file.append([bytes(200)])
        assert full.value.errno == errno.ENOSPC
        assert file.size() == 1000
        file.truncate(900)
        file.write_at(0, b"in place")
        with pytest.raises(OSError, match="No space left"):
            file.preallocate(2000)

    after(host, work)


def test_a_lock_dies_with_its_process(host: Host) -> None:
    async def hold(host: Host) -> None:
        host.disk.lock(".lock")
        with pytest.raises(DiskLocked):
            host.disk.lock(".lock")
        await forever(host)

    for _ in range(2):
        host.start(hold)
        host.world.run(1)
        assert host.alive
        host.kill()


def test_a_restart_finds_the_files_of_the_dead(host: Host) -> None:
    after(host, half_synced)

    async def read(host: Host) -> bytes:
        return host.disk.open("log").read_at(0, 100)

    done = host.start(read)
    host.world.run(1)
    assert done.result() == b"synced,one,two"


def test_a_flipped_bit_shows(host: Host) -> None:
    after(host, half_synced)
    host.drive.flip_bit("log", 0)
    assert files(host)["log"].startswith(b"rynced")
