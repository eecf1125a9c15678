"""Whoever owns a cluster may be killed: nothing of it is left running."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logboat.client.cluster.folder import ClusterFolder
from logboat.client.cluster.processes import find_nodes

PATIENCE_S = 60.0

OWNER = """
import sys
import pytest
from logboat.testing import LocalCluster
from tests.client.fake_nodes import fake_nodes

with pytest.MonkeyPatch.context() as patch, fake_nodes(patch):
    with LocalCluster(nodes=2, directory=sys.argv[1] or None) as cluster:
        cluster._guardian.undo("sh", "-c", f"cp {cluster.folder.node_log(1)} {sys.argv[2]}/undone")
        if sys.argv[3] == "keep":
            cluster.keep_folder()
        cluster.pause(2)
        print(cluster.folder.path, flush=True)
        sys.stdin.read()
"""

UP = """
import sys
import pytest
from logboat.client.cluster.up import UpOptions, up
from tests.client.fake_nodes import fake_nodes

with pytest.MonkeyPatch.context() as patch, fake_nodes(patch):
    up(UpOptions(nodes=2, voters=None, data_dir=None, ephemeral=True, any_port=True, detach=False))
"""


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def somebody_minds(folder: ClusterFolder) -> bool:
    """Whether any process, a guardian too, has the folder on its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if folder.path.encode() in path.read_bytes():
                return True
    return False


def living(folder: ClusterFolder) -> dict[int, int]:
    return find_nodes({node_id: folder.node_config(node_id) for node_id in (1, 2)}, {})


@contextmanager
def owner(script: str, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": root, **environment},
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("keeps", ["", "keep"])
def test_a_killed_test_leaves_neither_nodes_nor_its_temporary_folder(
    tmp_path: Path, keeps: str
) -> None:
    with owner(OWNER, "", str(tmp_path), keeps, TMPDIR=str(tmp_path)) as process:
        assert process.stdout is not None
        folder = ClusterFolder(process.stdout.readline().strip())
        assert set(living(folder)) == {1, 2}
        process.send_signal(signal.SIGKILL)
        wait_until(lambda: not living(folder))
        wait_until((tmp_path / "undone").exists)
        wait_until(lambda: not somebody_minds(folder))
        assert os.path.exists(folder.path) is bool(keeps)


def test_a_killed_test_leaves_a_folder_that_it_named(tmp_path: Path) -> None:
    named = tmp_path / "cluster"
    with owner(OWNER, str(named), str(tmp_path), "") as process:
        assert process.stdout is not None
        folder = ClusterFolder(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
        wait_until(lambda: not living(folder))
        wait_until((tmp_path / "undone").exists)
        wait_until(lambda: not somebody_minds(folder))
        assert folder.exists()


def test_a_killed_ephemeral_up_leaves_nothing(tmp_path: Path) -> None:
    with owner(UP, TMPDIR=str(tmp_path)) as process:
        folders: list[ClusterFolder] = []

        def is_up() -> bool:
            folders[:] = [ClusterFolder(str(path)) for path in tmp_path.glob("logboat-*/cluster-*")]
            return len(folders) == 1 and set(living(folders[0])) == {1, 2}

        wait_until(is_up)
        process.send_signal(signal.SIGKILL)
        wait_until(lambda: not living(folders[0]) and not os.path.exists(folders[0].path))
