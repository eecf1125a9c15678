"""The means that hurt disks, networks and system calls, each tried on something small."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from logboat.jepsen_style.processes.namespaces import Namespaces, Walls, why_no_namespaces
from logboat.jepsen_style.processes.tracing import Tracer, failing, killing, slow, why_not
from logboat.jepsen_style.processes.volumes import EXT4, TMPFS, Volume, why_no
from logboat.testing import LocalCluster

pytestmark = pytest.mark.processes

TRIES_S = 0.3
"""How long a test looks for what must not come."""
PATIENCE_S = 60.0


@contextmanager
def volume(kind: str, tmp_path: Path) -> Iterator[Volume]:
    if (reason := why_no(kind)) is not None:
        pytest.skip(f"{kind}: {reason}")
    made = Volume(kind, tmp_path / "image", tmp_path / "mounted")
    try:
        yield made
    finally:
        made.unmount()


def write_and_sync(fd: int) -> None:
    os.write(fd, b"late")
    os.fsync(fd)


def test_a_power_cut_takes_what_was_not_synced_and_nothing_else(tmp_path: Path) -> None:
    with volume(EXT4, tmp_path) as disk:
        kept, torn, lost = (disk.mount_point / name for name in ("kept", "torn", "lost"))
        for path in (kept, torn):
            with path.open("wb") as file:
                file.write(b"synced")
                file.flush()
                os.fsync(file.fileno())
        with torn.open("ab") as file:
            file.write(b" and not")
        lost.write_bytes(b"never")
        fd = os.open(kept, os.O_WRONLY | os.O_APPEND)
        disk.cut_power()
        with pytest.raises(OSError, match="Input/output error"):
            write_and_sync(fd)
        os.close(fd)
        disk.unmount()
        disk.mount()
        assert kept.read_bytes() == b"synced"
        assert torn.read_bytes() == b"synced"
        assert not lost.exists()


@pytest.mark.parametrize("kind", [EXT4, TMPFS])
def test_a_full_disk_refuses_and_has_room_again(tmp_path: Path, kind: str) -> None:
    with volume(kind, tmp_path) as disk:
        path = disk.mount_point / "file"
        path.write_bytes(b"before")
        disk.fill(0)
        with pytest.raises(OSError, match="No space left"):
            path.write_bytes(bytes(1 << 20))
        disk.drain()
        path.write_bytes(bytes(1 << 20))


def test_a_power_cut_does_not_fill_a_disk_again_that_was_drained(tmp_path: Path) -> None:
    with volume(EXT4, tmp_path) as disk:
        disk.fill(0)
        subprocess.run(["sync", "--file-system", disk.mount_point], check=True)
        disk.drain()
        disk.cut_power()
        disk.unmount()
        disk.mount()
        (disk.mount_point / "file").write_bytes(bytes(1 << 20))


def test_slack_is_left_on_a_full_disk(tmp_path: Path) -> None:
    with volume(EXT4, tmp_path) as disk:
        disk.fill(1 << 20)
        (disk.mount_point / "file").write_bytes(bytes(1 << 19))
        with pytest.raises(OSError, match="No space left"):
            (disk.mount_point / "file").write_bytes(bytes(1 << 22))


SYNCS_ON_COMMAND = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for line in sys.stdin:
    began = time.monotonic()
    try:
        os.fdatasync(fd)
        print("synced", time.monotonic() - began, flush=True)
    except OSError as error:
        print("failed", error.errno, flush=True)
"""


@contextmanager
def syncing(tmp_path: Path, injection: str) -> Iterator[tuple[subprocess.Popen[str], Tracer]]:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    command = [sys.executable, "-c", SYNCS_ON_COMMAND, str(tmp_path / "file")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        tracer = Tracer(child.pid, injection)
        try:
            assert asyncio.run(tracer.attached())
            yield child, tracer
        finally:
            child.kill()


def sync(child: subprocess.Popen[str]) -> list[str]:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    return child.stdout.readline().split()


def test_the_chosen_sync_fails_and_works_again_once_strace_lets_go(tmp_path: Path) -> None:
    with syncing(tmp_path, failing(1)) as (child, tracer):
        assert sync(child)[0] == "synced"
        assert sync(child) == ["failed", str(errno.EIO)]
        assert sync(child) == ["failed", str(errno.EIO)]
        assert asyncio.run(tracer.detach())
        assert sync(child)[0] == "synced"


def test_a_process_dies_at_the_chosen_sync(tmp_path: Path) -> None:
    with syncing(tmp_path, killing(2)) as (child, tracer):
        assert sync(child)[0] == "synced"
        assert sync(child) == []
        assert child.wait(PATIENCE_S) == -9
        assert asyncio.run(tracer.detach())


def test_a_slow_sync_takes_its_time(tmp_path: Path) -> None:
    with syncing(tmp_path, slow(150)) as (child, tracer):
        word, seconds = sync(child)
        assert word == "synced"
        assert float(seconds) >= 0.15
        assert asyncio.run(tracer.detach())


def test_a_tracer_that_met_no_sync_has_injected_nothing(tmp_path: Path) -> None:
    with syncing(tmp_path, failing(0)) as (child, tracer):
        assert not asyncio.run(tracer.detach())
        assert sync(child)[0] == "synced"


ECHO = """
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as server:
    print("listens", flush=True)
    connection, _ = server.accept()
    while data := connection.recv(100):
        connection.sendall(data)
"""


class OnPaper(LocalCluster):
    """Only what namespaces ask of a cluster."""

    @property
    def node_ids(self) -> list[int]:
        return [1, 2]

    def move(self, hosts: object) -> None:
        pass


@contextmanager
def namespaces() -> Iterator[Namespaces]:
    if (reason := why_no_namespaces()) is not None:
        pytest.skip(reason)
    made = Namespaces(OnPaper(2))
    try:
        yield made
    finally:
        made.close()


def echoed(connection: socket.socket, within_s: float) -> bytes | None:
    connection.settimeout(within_s)
    try:
        return connection.recv(100)
    except TimeoutError:
        return None


@contextmanager
def echo(inside: Namespaces) -> Iterator[socket.socket]:
    """A connection to a server in node 1's namespace that sends everything back."""
    host, port = inside.host(1), 7001
    command = [*inside.enter(1), sys.executable, "-c", ECHO, host, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            with socket.create_connection((host, port)) as connection:
                yield connection
        finally:
            server.kill()


@pytest.mark.parametrize("way", [(None, 1), (1, None)])
async def test_packets_are_dropped_one_way_and_come_later(
    way: tuple[int | None, int | None],
) -> None:
    with namespaces() as made, echo(made) as connection:
        walls = Walls(made, client_ports={1: 7001, 2: 7002}, internode_proxies={1: 1, 2: 2})
        connection.sendall(b"one")
        assert echoed(connection, PATIENCE_S) == b"one"
        await walls.cut([way])
        await walls.cut([way])
        connection.sendall(b"two")
        assert echoed(connection, TRIES_S) is None
        await walls.join([way])
        assert echoed(connection, TRIES_S) is None
        await walls.join([way])
        assert echoed(connection, PATIENCE_S) == b"two"


def test_a_way_between_nodes_is_cut_on_connections_of_either_side() -> None:
    made = SimpleNamespace(gateway="10.0.0.1")
    walls = Walls(
        cast(Namespaces, made), client_ports={1: 11, 2: 12}, internode_proxies={1: 21, 2: 22}
    )
    assert walls.rules((1, 2)) == [
        (1, "OUTPUT -p tcp -d 10.0.0.1 --dport 22"),
        (2, "INPUT -p tcp -s 10.0.0.1 --sport 21"),
    ]
