"""Real node processes for tests: started from a `node.toml`, watched and ended."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

LISTEN_S = 120.0


def write_config(folder: Path, kafka: int, internode: int, **settings: str) -> Path:
    """`node.toml` of a node that is alone; its data directory is `folder/data`."""
    given = {
        "node.id": "1",
        "cluster.id": "test-cluster",
        "log.dirs": str(folder / "data"),
        "listeners": f"PLAINTEXT://127.0.0.1:{kafka},INTERNODE://127.0.0.1:{internode}",
    }
    given.update({name.replace("_", "."): value for name, value in settings.items()})
    path = folder / "node.toml"
    path.write_text("".join(f'"{name}" = "{value}"\n' for name, value in given.items()))
    return path


def node_command(config: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "logboat.node", "--config", str(config), *arguments]


def run_to_end(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Of a node that is expected to end by itself."""
    return subprocess.run(
        node_command(config, *arguments), capture_output=True, text=True, timeout=60, check=False
    )


@contextlib.contextmanager
def node_process(
    config: Path, *, descriptors: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A node that listens; killed at the end if it still runs. Its log is `node.log`.

    `descriptors`: how many it may have.
    """
    command = node_command(config)
    if descriptors is not None:
        command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
    addresses = config.parent / "addresses.json"
    addresses.unlink(missing_ok=True)
    with open(config.parent / "node.log", "ab") as log:
        child = subprocess.Popen(command, stderr=log)
    try:
        wait_until_listening(child, addresses)
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()


def wait_until_listening(child: subprocess.Popen[bytes], addresses: Path) -> None:
    deadline = time.monotonic() + LISTEN_S
    while time.monotonic() < deadline:
        assert child.poll() is None, "the node ended"
        if addresses.exists():
            document = json.loads(addresses.read_text())
            host, _, port = document["kafka"].rpartition(":")
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
                return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens after {LISTEN_S} s")
