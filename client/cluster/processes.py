"""Node processes: start one, find one again after a crash of whoever started it, end it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .folder import ClusterFolder

POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Around:
    """What a node's process is put into, by who experiments with it."""

    command: Sequence[str] = ()
    """Words before the node's own; it must end in an exec, so that the pid is the node's."""
    environment: Mapping[str, str] = field(default_factory=dict)


NOTHING_AROUND = Around()


def start_node(
    folder: ClusterFolder,
    node_id: int,
    around: Around = NOTHING_AROUND,
    *,
    with_faults: bool = False,
) -> subprocess.Popen[bytes]:
    """Start the node of that id; it inherits the environment and writes into its log file."""
    node = [sys.executable, "-m", "logboat.node", "--config", folder.node_config(node_id)]
    if with_faults:
        node.append("--with-faults")
    with open(folder.node_log(node_id), "ab") as log:
        return subprocess.Popen(
            [*around.command, *node],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # A file named like a module in the user's working directory must not be imported.
            env={**os.environ, "PYTHONSAFEPATH": "1", **around.environment},
            # The terminal's Ctrl-C reaches whoever supervises, not the nodes: they are stopped
            # in order, and a detached one survives its terminal.
            start_new_session=True,
        )


def is_node(pid: int, config: str) -> bool:
    """Whether `pid` lives and runs the node of this config: pids are given out again after a
    crash, so a number alone proves nothing."""
    arguments = _command_line(pid)
    return config in arguments and "logboat.node" in arguments


def find_nodes(configs: Mapping[int, str], hints: Mapping[int, int | None]) -> dict[int, int]:
    """The pid of each node that runs, by node id. `hints` are looked at first; a node started by
    hand, or by an `up` that crashed before it wrote its state, is found by its command line."""
    found = {
        node_id: pid
        for node_id, pid in hints.items()
        if pid is not None and is_node(pid, configs[node_id])
    }
    missing = {config: node_id for node_id, config in configs.items() if node_id not in found}
    if not missing:
        return found
    for pid in _all_pids():
        arguments = _command_line(pid)
        if "logboat.node" in arguments:
            found |= {missing[config]: pid for config in arguments if config in missing}
    return found


def signal_nodes(pids: Iterable[int], signal_number: int) -> None:
    """Send the signal to each; one that has just ended is no error."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal_number)


def wait_until_ended(nodes: Mapping[int, str], seconds: float) -> dict[int, str]:
    """Wait for all of pid -> config to end; those still running after `seconds` are returned."""
    deadline = time.monotonic() + seconds
    left = dict(nodes)
    while True:
        left = {pid: config for pid, config in left.items() if is_node(pid, config)}
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(POLL_SECONDS)


def stop_nodes(nodes: Mapping[int, str], *, patience_seconds: float) -> list[int]:
    """End all of pid -> config: politely, and by SIGKILL after `patience_seconds` or Ctrl-C. The
    pids that had to be killed are returned."""
    signal_nodes(nodes, signal.SIGTERM)
    try:
        stubborn = wait_until_ended(nodes, patience_seconds)
    except KeyboardInterrupt:
        stubborn = dict(nodes)
    signal_nodes(stubborn, signal.SIGKILL)
    wait_until_ended(stubborn, 5.0)
    return sorted(stubborn)


def ending_in_words(return_code: int) -> str:
    """How a process ended, for people."""
    if return_code >= 0:
        return f"ended with status {return_code}"
    try:
        return f"was killed by {signal.Signals(-return_code).name}"
    except ValueError:
        return f"was killed by signal {-return_code}"


def _command_line(pid: int) -> list[str]:
    """The arguments of a living process; empty for a zombie or when there is none."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsdecode(file.read()).split("\0")
    except OSError:
        return [] if os.path.isdir("/proc/self") else _command_line_by_ps(pid)


def _command_line_by_ps(pid: int) -> list[str]:
    # macOS has no /proc. A path with spaces is not found again there; such nodes show as dead.
    shown = subprocess.run(
        ["ps", "-o", "stat=,command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    stat, *arguments = shown.stdout.split() or ["Z"]
    return [] if stat.startswith("Z") else arguments


def _all_pids() -> list[int]:
    if os.path.isdir("/proc/self"):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    shown = subprocess.run(["ps", "-axo", "pid="], capture_output=True, text=True, check=False)
    return [int(pid) for pid in shown.stdout.split()]
