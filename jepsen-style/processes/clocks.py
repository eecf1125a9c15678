"""Wall clocks of nodes: each reads from a file how far and how fast it goes.

By libfaketime, where that gets along with this Python, else by `wrong_clock` inside the node's
process. Only the time of day moves, as under NTP; what measures durations stays.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ...client.cluster.processes import Around
from ..schedule import Fault
from .process_faults import Do, Heal

LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
)
RIGHT = "+0"
HOUR_S = 3600
WRONG_CLOCK = Path(__file__).with_name("wrong_clock.py")


class Clocks:
    """One file for each node. A clock that is set by several faults obeys the last one."""

    def __init__(self, node_ids: Sequence[int], folder: Path, library: str | None) -> None:
        """`library`: of libfaketime, if that is the means."""
        folder.mkdir()
        self._library = library
        self._files = {node_id: folder / f"node-{node_id}" for node_id in node_ids}
        for node_id in node_ids:
            self._set(node_id, RIGHT)
        self.kinds: Mapping[str, Do] = {"clock-step": self._step, "clock-skew": self._skew}

    def around(self, node_id: int) -> Around:
        file = self._files[node_id].absolute()
        if self._library is not None:
            return Around(environment=environment(self._library, file))
        return Around([sys.executable, str(WRONG_CLOCK), str(file)])

    async def _step(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        return self._turn(nodes, f"{float(fault.option('seconds')):+g}")

    async def _skew(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        return self._turn(nodes, f"+0 x{float(fault.option('rate')):g}")

    def _turn(self, nodes: Sequence[int], text: str) -> Heal:
        for node_id in nodes:
            self._set(node_id, text)

        async def heal() -> None:
            for node_id in nodes:
                self._set(node_id, RIGHT)

        return heal

    def _set(self, node_id: int, text: str) -> None:
        # Whole at once: a node may be reading.
        path = self._files[node_id]
        temporary = path.with_suffix(".tmp")
        temporary.write_text(text + "\n")
        os.replace(temporary, path)


def environment(library: str, file: Path) -> dict[str, str]:
    return {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def find_library() -> tuple[str | None, str]:
    """Where a libfaketime is that works, or why there is none."""
    found = next((path for path in LIBRARIES if os.path.exists(path)), None)
    if found is None:
        return None, "it is not installed"
    return (found, "") if _works(found) else (None, "it breaks this Python's time.sleep")


def _works(library: str) -> bool:
    """It moves the time of day, and waiting goes on: version 0.9.10 fails clock_nanosleep."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "clock")
        file.write_text(f"+{HOUR_S}\n")
        told = subprocess.run(
            [sys.executable, "-c", "import time; time.sleep(0.01); print(time.time())"],
            env={**os.environ, **environment(library, file)},
            capture_output=True,
            text=True,
            check=False,
        )
    return told.returncode == 0 and float(told.stdout) - time.time() > HOUR_S / 2
