"""Ends a cluster whose owner died without doing so: a killed test leaves nothing running.

The owner starts a `Guardian` beside its nodes and holds the write end of a pipe to it. However the
owner ends, the pipe ends with it, and the guardian sees that. A signal at the parent's death would
be less: it comes at the end of the *thread* that started a node, and removes no folder. A watch
inside the nodes would be less, too: a paused node does not look.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

from .folder import ClusterFolder
from .processes import find_nodes, signal_nodes, stop_nodes

PATIENCE_SECONDS = 5.0
"""For nodes whose data stays; those whose data goes are killed at once."""

LOOKS = 2
"""The owner may have died between making a process and the node's command line in it."""

_KEEP = "keep"
_DISMISSED = "dismissed"


class Guardian:
    """The owner's side. `remove`: the folder goes away with the cluster."""

    def __init__(self, folder: ClusterFolder, *, remove: bool) -> None:
        command = [sys.executable, "-m", __name__, folder.path, *(["--remove"] if remove else [])]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            # Neither the terminal's Ctrl-C nor a signal to the owner's group is meant for it.
            start_new_session=True,
        )

    def undo(self, *command: str) -> None:
        """Have this run, too, should the owner die: once the nodes are gone, the last one first."""
        self._say(command)

    def keep_folder(self) -> None:
        self._say(_KEEP)

    def dismiss(self) -> None:
        """The owner has seen to everything itself."""
        self._say(_DISMISSED)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()

    def _say(self, message: str | Sequence[str]) -> None:
        assert self._process.stdin is not None
        # One that was killed cannot help any more; its owner can.
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()


def guard(folder: ClusterFolder, *, remove: bool) -> None:
    """The process's life: until standard input ends."""
    undo: list[list[str]] = []
    for line in sys.stdin:
        message = json.loads(line)
        if message == _DISMISSED:
            return
        if message == _KEEP:
            remove = False
        else:
            undo.append(message)
    for _ in range(LOOKS):
        end_nodes(folder, patience_seconds=0.0 if remove else PATIENCE_SECONDS)
    for command in reversed(undo):
        subprocess.run(command, check=False)
    if remove:
        shutil.rmtree(folder.path, ignore_errors=True)


def end_nodes(folder: ClusterFolder, *, patience_seconds: float) -> None:
    """Whoever started them: they are found by their command lines."""
    configs = {
        number: os.path.join(path, "node.toml") for number, path in enumerate(folder.node_dirs())
    }
    found = find_nodes(configs, {})
    # A paused one would keep an orderly stop waiting.
    signal_nodes(found.values(), signal.SIGCONT)
    stop_nodes(
        {pid: configs[number] for number, pid in found.items()}, patience_seconds=patience_seconds
    )


if __name__ == "__main__":
    guard(ClusterFolder(sys.argv[1]), remove="--remove" in sys.argv[2:])
