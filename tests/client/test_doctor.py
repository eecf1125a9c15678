"""`logboat doctor`: what is wrong with where a node says it is, and with its clock."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace

import pytest

from logboat.client import doctor

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever answers here may be slow."""
    monkeypatch.setattr(doctor, "SECONDS", 60.0)


@contextmanager
def somebody(answer: bytes | None) -> Iterator[str]:
    """Listens, and answers whatever comes first with this; None: not at all."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                if answer is None:
                    connection.recv(1)  # Until the other side has had enough.
                else:
                    connection.sendall(answer)

        serving = threading.Thread(target=serve)
        serving.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        serving.join()


def http_answer(date: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: 2\r\n\r\n{{}}".encode()


def test_a_broker_at_the_advertised_address_is_good() -> None:
    two_apis = b"\0\0\0\x16" + b"\0\0\0\0" + b"\0\0" + b"\0\0\0\x02" + bytes(12)
    with somebody(two_apis) as address:
        found = doctor._kafka("it answers", address)
    assert (found.good, found.said) == (True, f"{address} (2 APIs)")


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\0\x02\x02\x0a" + bytes(9)]
)
def test_another_server_at_the_advertised_address_is_wrong(answer: bytes) -> None:
    with somebody(answer) as address:
        found = doctor._kafka("it answers", address)
    assert (found.good, found.said) == (False, f"{address}: somebody else listens there")


def test_an_advertised_address_that_does_not_answer_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "SECONDS", 0.2)
    with somebody(None) as address:
        found = doctor._kafka("it answers", address)
    assert (found.good, found.said) == (False, f"{address}: timed out")
    assert "Connection refused" in doctor._kafka("it answers", NOBODY).said


def test_a_clock_that_is_wrong_is_told() -> None:
    with somebody(http_answer("Thu, 01 Jan 1970 00:00:00 GMT")) as address:
        found = doctor._clock("the time", address)
    assert not found.good
    assert found.said.startswith(f"{address}, ")
    assert "does not answer" in doctor._clock("the time", NOBODY).said


@pytest.mark.parametrize("told", [0, 3, 6])
def test_a_right_clock_that_is_told_slowly_is_right(
    monkeypatch: pytest.MonkeyPatch, told: int
) -> None:
    looks = iter((100.0, 106.5))
    monkeypatch.setattr(doctor, "time", SimpleNamespace(time=lambda: next(looks)))
    with somebody(http_answer(formatdate(100 + told, usegmt=True))) as address:
        assert doctor._clock("the time", address).good


def statvfs(free_bytes: int, free_files: int = 5, files: int = 10) -> os.statvfs_result:
    blocks = free_bytes // 4096
    return os.statvfs_result((4096, 4096, 4 * blocks, blocks, blocks, files, 5, free_files, 0, 255))


def test_a_file_system_is_looked_at_once_for_all_nodes_on_it(tmp_path: Path) -> None:
    folders = {node_id: str(tmp_path) for node_id in (1, 2, 3)}
    (found,) = doctor.room_of_folders(folders)
    assert found.what == "nodes 1, 2, 3 have room for data"
    assert str(tmp_path) in found.said


@pytest.mark.parametrize(
    ("found", "good"),
    [
        (statvfs(600 << 20), True),
        (statvfs(100 << 20), False),
        (statvfs(600 << 20, free_files=0), False),
        (statvfs(600 << 20, free_files=0, files=0), True),
    ],
)
def test_a_disk_that_is_as_good_as_full_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: os.statvfs_result, good: bool
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: found)
    (room,) = doctor.room_of_folders({1: str(tmp_path)})
    assert (room.what, room.good) == ("node 1 has room for data", good)


def test_a_folder_that_is_not_there_is_wrong(tmp_path: Path) -> None:
    missing, there = doctor.room_of_folders({1: str(tmp_path / "gone"), 2: str(tmp_path)})
    assert (missing.good, missing.what) == (False, "node 1 has room for data")
    assert there.what == "node 2 has room for data"
