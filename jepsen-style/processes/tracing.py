"""System calls of a running node that fail, wait or kill: strace's injection, no root needed.

While one is attached every call of the node stops twice, so the node is slower, too.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

SYNCS = "fdatasync,fsync"
ATTACHED_WITHIN_S = 5.0
DETACHED_WITHIN_S = 5.0
LOOK_S = 0.01

_INJECTED = ("(INJECTED)", "(DELAYED)", "+++ killed by SIGKILL +++")
"""What strace writes of it; a signal that kills is told of no other way."""


def failing(after: int) -> str:
    """Every sync of a thread fails, but its next `after` ones."""
    return f"error=EIO:when={after + 1}+"


def slow(milliseconds: int) -> str:
    return f"delay_enter={milliseconds}ms"


def killing(number: int) -> str:
    """SIGKILL when a thread begins its `number`-th sync, counted from 1."""
    return f"signal=SIGKILL:when={number}"


class Tracer:
    """strace beside one process."""

    def __init__(self, pid: int, injection: str) -> None:
        self._pid = pid
        with tempfile.NamedTemporaryFile(prefix="logboat-strace-", delete=False) as file:
            self._output = Path(file.name)
        self._process = subprocess.Popen(
            [
                *("strace", "-f", "-qq", "-p", str(pid), "-o", str(self._output)),
                *("-e", f"trace={SYNCS}", "-e", f"inject={SYNCS}:{injection}"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    async def attached(self) -> bool:
        """Whether it is; a process that ends meanwhile never is."""
        end = asyncio.get_running_loop().time() + ATTACHED_WITHIN_S
        while asyncio.get_running_loop().time() < end and self._process.poll() is None:
            if self._traces_all():
                return True
            await asyncio.sleep(LOOK_S)
        return False

    async def detach(self) -> bool:
        """Whether anything was injected."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        try:
            await asyncio.to_thread(self._process.wait, DETACHED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        try:
            told = self._output.read_text(errors="replace")
            return any(sign in told for sign in _INJECTED)
        finally:
            self._output.unlink()

    def _traces_all(self) -> bool:
        ours = f"TracerPid:\t{self._process.pid}\n"
        try:
            threads = list(Path(f"/proc/{self._pid}/task").iterdir())
            return bool(threads) and all(
                ours in (thread / "status").read_text() for thread in threads
            )
        except OSError:
            return False


def why_not() -> str | None:
    """What keeps this machine from it; None when it can. Tried on a process that is no child."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    return asyncio.run(_try_it())


async def _try_it() -> str | None:
    with _victim() as victim:
        tracer = Tracer(victim.pid, failing(0))
        attached = await tracer.attached()
        assert victim.stdin is not None
        with suppress(BrokenPipeError):
            victim.stdin.write(b"x")
            victim.stdin.close()
        victim.wait()
        injected = await tracer.detach()
    if attached and injected:
        return None
    return "strace may not attach to other processes here" if os.geteuid() else "strace fails here"


def _victim() -> subprocess.Popen[bytes]:
    """It syncs when it is told to."""
    syncs = "import os, sys; sys.stdin.read(1); os.fsync(os.open('/', os.O_RDONLY))"
    return subprocess.Popen(
        [sys.executable, "-c", syncs], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
