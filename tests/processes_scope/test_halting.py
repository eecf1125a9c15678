"""What must say nothing more is held still before its power goes."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from logboat.jepsen_style.processes.halting import halt, is_still

BUSY_WITH_TWO_THREADS = """
import threading
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
print("spinning", flush=True)
spin()
"""


def test_every_thread_is_still_when_halt_returns() -> None:
    command = [sys.executable, "-c", BUSY_WITH_TWO_THREADS]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            assert not is_still(child.pid)
            asyncio.run(halt(child.pid))
            assert is_still(child.pid)
        finally:
            child.kill()


def test_a_process_that_has_ended_is_still() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    asyncio.run(halt(child.pid))
