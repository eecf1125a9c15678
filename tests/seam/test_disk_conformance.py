"""The contract of `seam.Disk`, asked of the machine's disk, of the simulated one, and of one that
can be filled and is not."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logboat.jepsen_style.simulation import World
from logboat.seam import Disk, DiskLocked, Fatal, read_file, replace_file, write_file_atomically
from logboat.seam.faulty_disk import FaultyDisk
from logboat.seam.real_disk import RealDisk
from tests.seam.injected import new_switches

Check = Callable[[Disk], Coroutine[Any, Any, None]]


class Bench:
    """Runs a check as a process that owns a disk, below a folder of its own."""

    def run(self, check: Check) -> None:
        raise NotImplementedError

    def path(self, name: str) -> str:
        raise NotImplementedError


class RealBench(Bench):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def run(self, check: Check) -> None:
        disk = RealDisk()
        try:
            asyncio.run(check(self._shown(disk)))
        finally:
            disk.close()

    def _shown(self, disk: Disk) -> Disk:
        return disk


class FaultyBench(RealBench):
    def _shown(self, disk: Disk) -> Disk:
        return FaultyDisk(disk, new_switches())


class SimulatedBench(Bench):
    def path(self, name: str) -> str:
        return f"data/{name}"

    def run(self, check: Check) -> None:
        with World(1) as world:
            host = world.host("n1")
            host.drive.make_dirs("data")
            done = host.start(lambda host: check(host.disk))
            world.run_until(done.done, within=60)


@pytest.fixture(params=["real", "simulated", "faulty"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    if request.param == "simulated":
        return SimulatedBench()
    return RealBench(tmp_path) if request.param == "real" else FaultyBench(tmp_path)


def test_append_returns_where_the_first_byte_went(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("log"), create=True)
        assert file.path == bench.path("log")
        assert file.append([b"abc", memoryview(b"de"), bytearray(b"f")]) == 0
        assert file.append([b"gh"]) == 6
        assert file.append([]) == 8
        assert file.size() == 8
        assert file.read_at(0, 100) == b"abcdefgh"
        file.close()

    bench.run(check)


def test_append_takes_more_parts_than_one_vectored_write_holds(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("log"), create=True)
        parts = [b"%05d" % number for number in range(3000)]
        file.append(parts)
        assert file.read_at(0, 20_000) == b"".join(parts)
        file.close()

    bench.run(check)


def test_read_at_returns_fewer_bytes_only_at_the_end(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("log"), create=True)
        file.append([b"0123456789"])
        assert file.read_at(3, 4) == b"3456"
        assert file.read_at(8, 4) == b"89"
        assert file.read_at(10, 4) == b""
        assert file.read_at(99, 4) == b""
        file.close()

    bench.run(check)


def test_write_at_overwrites_in_place_and_beyond_the_end_leaves_zeros(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("log"), create=True)
        file.append([b"0123456789"])
        file.write_at(2, b"xy")
        file.write_at(12, b"z")
        assert file.read_at(0, 100) == b"01xy456789\0\0z"
        file.close()

    bench.run(check)


def test_truncate_cuts_and_grows_with_zeros(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("log"), create=True)
        file.append([b"0123456789"])
        file.truncate(4)
        assert file.read_at(0, 100) == b"0123"
        file.truncate(6)
        assert file.read_at(0, 100) == b"0123\0\0"
        assert file.append([b"!"]) == 6
        file.close()

    bench.run(check)


def test_preallocate_only_grows(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("log"), create=True)
        file.append([b"abc"])
        file.preallocate(5)
        assert file.read_at(0, 100) == b"abc\0\0"
        file.preallocate(2)
        assert file.size() == 5
        file.close()

    bench.run(check)


def test_a_map_outlives_its_file(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("log"), create=True)
        file.append([b"0123456789"])
        view = file.map(4)
        file.close()
        disk.remove(bench.path("log"))
        assert bytes(view) == b"0123"
        assert view.readonly
        empty = disk.open(bench.path("empty"), create=True)
        assert bytes(empty.map(0)) == b""
        with pytest.raises(ValueError):  # noqa: PT011
            empty.map(1)
        empty.close()

    bench.run(check)


def test_a_removed_file_stays_readable_through_its_handle(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("log"), create=True)
        file.append([b"abc"])
        disk.remove(bench.path("log"))
        assert file.read_at(0, 3) == b"abc"
        again = disk.open(bench.path("log"), create=True)
        assert again.size() == 0
        file.close()
        again.close()

    bench.run(check)


def test_two_handles_see_one_file(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        one = disk.open(bench.path("log"), create=True)
        other = disk.open(bench.path("log"))
        one.append([b"abc"])
        assert other.append([b"de"]) == 3
        assert one.read_at(0, 9) == b"abcde"
        one.close()
        other.close()

    bench.run(check)


def test_sync_and_sync_dir_return(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("log"), create=True)
        file.append([b"abc"])
        await asyncio.gather(file.sync(), file.sync(), disk.sync_dir(bench.path("")))
        file.close()

    bench.run(check)


def test_closing_under_a_running_sync_lets_the_sync_end(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("log"), create=True)
        file.append([b"abc"])
        sync = asyncio.ensure_future(file.sync())
        await asyncio.sleep(0)
        file.close()
        await sync

    bench.run(check)


def test_a_closed_file_refuses_everything(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("log"), create=True)
        file.close()
        file.close()
        for call in (
            lambda: file.append([b"x"]),
            lambda: file.read_at(0, 1),
            file.size,
            lambda: file.truncate(0),
        ):
            with pytest.raises(OSError) as refused:  # noqa: PT011
                call()
            assert refused.value.errno == errno.EBADF

    bench.run(check)


def test_a_failed_sync_is_fatal(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        with pytest.raises(Fatal, match=r"sync of .*nowhere failed"):
            await disk.sync_dir(bench.path("nowhere"))

    bench.run(check)


def test_names(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        root = bench.path("")
        assert disk.list(root) == []
        disk.make_dirs(bench.path("b/c"))
        disk.make_dirs(bench.path("b/c"))
        disk.open(bench.path("b/file"), create=True).close()
        disk.open(bench.path("a"), create=True).close()
        assert disk.list(root) == ["a", "b"]
        assert disk.list(bench.path("b")) == ["c", "file"]
        assert disk.exists(bench.path("a"))
        assert disk.exists(bench.path("b/c"))
        assert not disk.exists(bench.path("z"))
        assert not disk.exists(bench.path("z/y"))
        assert disk.is_dir(bench.path("b"))
        assert not disk.is_dir(bench.path("a"))
        assert not disk.is_dir(bench.path("z"))
        assert disk.free_bytes(root) > 0

    bench.run(check)


def test_a_file_says_when_it_was_last_changed(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        file = disk.open(bench.path("file"), create=True)
        made = file.modified_ms()
        assert made > 1_600_000_000_000
        file.append([b"a"])
        assert file.modified_ms() >= made
        changed = file.modified_ms()
        disk.rename(bench.path("file"), bench.path("renamed"))
        assert disk.open(bench.path("renamed")).modified_ms() == changed

    bench.run(check)


def test_rename_replaces_a_file_and_moves_a_directory(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        await write_file_atomically(disk, bench.path("old"), b"old")
        await write_file_atomically(disk, bench.path("new"), b"new")
        disk.rename(bench.path("new"), bench.path("old"))
        assert read_file(disk, bench.path("old")) == b"new"
        assert not disk.exists(bench.path("new"))
        disk.make_dirs(bench.path("topic-0"))
        await replace_file(disk, bench.path("topic-0/log"), b"log")
        disk.rename(bench.path("topic-0"), bench.path("topic-0.deleted"))
        assert read_file(disk, bench.path("topic-0.deleted/log")) == b"log"
        assert disk.list(bench.path("")) == ["old", "topic-0.deleted"]
        disk.rename(bench.path("old"), bench.path("old"))
        assert read_file(disk, bench.path("old")) == b"new"

    bench.run(check)


def test_remove_tree_takes_everything_and_asks_for_nothing(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        disk.make_dirs(bench.path("t/a/b"))
        disk.open(bench.path("t/a/b/file"), create=True).close()
        disk.remove_tree(bench.path("t"))
        assert not disk.exists(bench.path("t"))
        disk.remove_tree(bench.path("t"))

    bench.run(check)


@pytest.mark.parametrize(
    ("number", "call"),
    [
        (errno.ENOENT, lambda d, p: d.open(p("missing"))),
        (errno.ENOENT, lambda d, p: d.open(p("missing/file"), create=True)),
        (errno.EISDIR, lambda d, p: d.open(p("dir"))),
        (errno.EISDIR, lambda d, p: d.open(p("dir"), create=True)),
        (errno.ENOTDIR, lambda d, p: d.open(p("file/x"), create=True)),
        (errno.ENOENT, lambda d, p: d.list(p("missing"))),
        (errno.ENOTDIR, lambda d, p: d.list(p("file"))),
        (errno.EEXIST, lambda d, p: d.make_dirs(p("file"))),
        (errno.ENOTDIR, lambda d, p: d.make_dirs(p("file/x"))),
        (errno.ENOENT, lambda d, p: d.remove(p("missing"))),
        (errno.EISDIR, lambda d, p: d.remove(p("dir"))),
        (errno.ENOTDIR, lambda d, p: d.remove_tree(p("file"))),
        (errno.ENOENT, lambda d, p: d.rename(p("missing"), p("x"))),
        (errno.ENOENT, lambda d, p: d.rename(p("file"), p("missing/x"))),
        (errno.EISDIR, lambda d, p: d.rename(p("file"), p("dir"))),
        (errno.ENOTDIR, lambda d, p: d.rename(p("dir"), p("file"))),
        (errno.ENOTEMPTY, lambda d, p: d.rename(p("other"), p("dir"))),
        (errno.EINVAL, lambda d, p: d.rename(p("dir"), p("dir/inner/x"))),
        (errno.ENOENT, lambda d, p: d.free_bytes(p("missing"))),
    ],
)
def test_the_usual_errors(
    bench: Bench, number: int, call: Callable[[Disk, Callable[[str], str]], object]
) -> None:
    async def check(disk: Disk) -> None:
        disk.make_dirs(bench.path("dir/inner"))
        disk.make_dirs(bench.path("other"))
        disk.open(bench.path("file"), create=True).close()
        with pytest.raises(OSError) as raised:  # noqa: PT011
            call(disk, bench.path)
        assert raised.value.errno == number

    bench.run(check)


def test_a_lock_excludes_and_can_be_released(bench: Bench) -> None:
    async def check(disk: Disk) -> None:
        lock = disk.lock(bench.path(".lock"))
        with pytest.raises(DiskLocked):
            disk.lock(bench.path(".lock"))
        assert disk.exists(bench.path(".lock"))
        lock.release()
        lock.release()
        disk.lock(bench.path(".lock")).release()

    bench.run(check)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.binary(max_size=20)),
            st.tuples(st.just("write_at"), st.integers(0, 60), st.binary(max_size=20)),
            st.tuples(st.just("truncate"), st.integers(0, 60)),
            st.tuples(st.just("preallocate"), st.integers(0, 60)),
            st.tuples(st.just("read_at"), st.integers(0, 60), st.integers(0, 60)),
        ),
        max_size=20,
    )
)
def test_both_disks_hold_the_same_bytes_after_the_same_calls(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[Any, ...]]
) -> None:
    seen: list[list[object]] = []

    for bench in (RealBench(tmp_path_factory.mktemp("disk")), SimulatedBench()):

        async def check(disk: Disk, bench: Bench = bench) -> None:
            file = disk.open(bench.path("file"), create=True)
            answers: list[object] = []
            for name, *arguments in calls:
                given = [arguments] if name == "append" else arguments
                answers.append(getattr(file, name)(*given))
            answers.append((file.size(), file.read_at(0, 1000)))
            file.close()
            seen.append(answers)

        bench.run(check)
    assert seen[0] == seen[1]
