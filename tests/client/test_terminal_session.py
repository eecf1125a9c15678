"""As a person would: a terminal with a cluster in it, somebody who reads along, and Ctrl-C."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]

SECONDS = 180.0


class Terminal:
    """A tmux server of its own, with windows by name."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")
        self._folder = folder
        self._tmux("new-session", "-d", "-s", "s", "-n", "cluster", "-x", "200", "-y", "50", "sh")

    def _tmux(self, *arguments: str) -> str:
        environment = {k: v for k, v in os.environ.items() if k not in ("TMUX", "LOGBOAT_HTTP")}
        return subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", self._socket, *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
            cwd=self._folder,
            env={**environment, "PS1": "$ "},
        ).stdout

    def window(self, name: str) -> None:
        self._tmux("new-window", "-n", name, "sh")

    def type(self, window: str, text: str) -> None:
        self._tmux("send-keys", "-t", f"s:{window}", "-l", text)
        self._tmux("send-keys", "-t", f"s:{window}", "Enter")

    def press(self, window: str, key: str) -> None:
        self._tmux("send-keys", "-t", f"s:{window}", key)

    def screen(self, window: str) -> str:
        return self._tmux("capture-pane", "-p", "-J", "-S", "-200", "-t", f"s:{window}")

    def visible(self, window: str) -> str:
        """Without what has scrolled away."""
        return self._tmux("capture-pane", "-p", "-J", "-t", f"s:{window}")

    def await_screen(self, window: str, shows: Callable[[str], bool]) -> str:
        end = time.monotonic() + SECONDS
        while not shows(screen := self.screen(window)):
            assert time.monotonic() < end, screen
            time.sleep(0.05)
        return screen

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


def table_of(screen: str) -> list[str]:
    """The lines of the nodes; none while it is being painted."""
    lines = screen.splitlines()
    header = next((n for n, line in enumerate(lines) if line.startswith("NODE  PID")), None)
    return [] if header is None else lines[header + 1 : header + 4]


def test_a_cluster_is_started_used_watched_and_stopped_by_hand(terminal: Terminal) -> None:
    logboat = f"{sys.executable} -m logboat.client.cli"
    terminal.type("cluster", f"{logboat} cluster up --any-port --data-dir d; echo ended $?")
    shown = terminal.await_screen("cluster", lambda screen: "export LOGBOAT_BOOTSTRAP" in screen)
    export = next(line for line in shown.splitlines() if line.startswith("export "))

    for window in ("work", "reader", "lag"):
        terminal.window(window)
        terminal.type(window, export)
    terminal.type("work", f"{logboat} topic create orders -p 1; echo made $?")
    terminal.await_screen("work", lambda screen: "made 0" in screen)

    terminal.type("reader", f"{logboat} consume orders -f '[%v]\\n'; echo ended $?")
    terminal.type("work", f"echo hello | {logboat} produce orders; echo written $?")
    terminal.await_screen("work", lambda screen: "written 0" in screen)
    terminal.await_screen("reader", lambda screen: "[hello]" in screen)
    terminal.type("work", f"{logboat} produce orders; echo ended $?")
    terminal.type("work", "typed")
    terminal.await_screen("reader", lambda screen: "[typed]" in screen)
    terminal.press("work", "C-c")
    shown = terminal.await_screen("work", lambda screen: "ended 130" in screen)
    assert "Traceback" not in shown
    terminal.press("reader", "C-c")
    shown = terminal.await_screen("reader", lambda screen: "ended 130" in screen)
    assert "Traceback" not in shown

    terminal.type("work", f"{logboat} consume orders -g readers -n 2; echo read $?")
    terminal.await_screen("work", lambda screen: "read 0" in screen)
    terminal.type("lag", f"{logboat} group lag readers -w; echo ended $?")
    terminal.await_screen("lag", lambda screen: "TOTAL-LAG 0" in screen)
    terminal.type("work", f"echo more | {logboat} produce orders; echo again $?")
    terminal.await_screen("lag", lambda screen: "TOTAL-LAG 1" in screen)
    terminal.press("lag", "C-c")
    shown = terminal.await_screen("lag", lambda screen: "ended 130" in screen)
    assert "Traceback" not in shown

    terminal.type("work", f"{logboat} cluster node kill 3 --data-dir d; echo killed $?")
    terminal.await_screen("cluster", lambda screen: "was killed by SIGKILL" in screen)

    def one_is_dead(_: str) -> bool:
        shown = terminal.visible("cluster")
        assert shown.count("NODE  PID") <= 1, "not painted in the same place"
        rows = [line.split() for line in table_of(shown)]
        return [row[2] for row in rows if len(row) > 2] == ["ready", "ready", "dead"]

    terminal.await_screen("cluster", one_is_dead)
    terminal.type("work", f"{logboat} cluster node start 3 --data-dir d; echo started $?")
    terminal.await_screen("work", lambda screen: "started 0" in screen)

    def all_are_ready(_: str) -> bool:
        rows = [line.split() for line in table_of(terminal.visible("cluster"))]
        return [row[2] for row in rows if len(row) > 2] == ["ready"] * 3

    terminal.await_screen("cluster", all_are_ready)
    terminal.press("cluster", "C-c")
    shown = terminal.await_screen("cluster", lambda screen: "ended 0" in screen)
    assert "All nodes have stopped." in shown
