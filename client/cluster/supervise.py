"""`up` in the foreground: watch the nodes, say when one dies, stop all on Ctrl-C."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType

from ..failure import ExitStatus, Failure
from ..signals import handled
from ..terminal import look_and_watch, say
from .launch import STOP_SECONDS, RunningCluster, last_words
from .processes import POLL_SECONDS, ending_in_words, is_node, signal_nodes
from .state import load_state, save_state

LOOK_SECONDS = 0.2
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""SIGHUP: the terminal was closed; nodes without anyone watching would surprise."""


class StopRequests:
    """Counts the stop signals that arrived: one is a wish, a second one an order."""

    def __init__(self) -> None:
        self._count = 0
        self._interrupts = False
        self._changed = threading.Event()

    @property
    def count(self) -> int:
        return self._count

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or at once when a further signal arrives."""
        if self._changed.wait(seconds):
            self._changed.clear()

    def installed(self) -> AbstractContextManager[None]:
        return handled(STOP_SIGNALS, self._on_signal)

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Within, every stop signal raises KeyboardInterrupt: there is nothing to wait for yet."""
        self._interrupts = True
        try:
            yield
        finally:
            self._interrupts = False

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._interrupts:
            raise KeyboardInterrupt
        self._count += 1
        self._changed.set()


def supervise(
    cluster: RunningCluster,
    stops: StopRequests,
    *,
    look: Callable[[], str | None] = lambda: None,
    shown: str | None = None,
    tell: Callable[[str], None] = say,
) -> ExitStatus:
    """Until a stop is asked for or no node lives. A node that dies is told of, not restarted: a
    supervisor that hides crashes would hide what people run this for.

    `look`: what to show again and again in the place of what is `shown`, if anything is.
    """
    watched = _Watched(cluster, stops, tell)

    def look_unless_stopped() -> str | None:
        return None if stops.count else look()

    look_and_watch(
        look_unless_stopped, watch=True, shown=shown, until=watched.over, wait=watched.wait
    )
    if stops.count:
        return _stop(cluster, watched.pids, stops)
    if _stopped_by_down(cluster):
        say("The cluster was stopped by `logboat cluster down`.")
        return ExitStatus.GOOD
    raise Failure("no node is left running")


class _Watched:
    """The nodes, as they were started: one that died since is told of, too."""

    def __init__(
        self, cluster: RunningCluster, stops: StopRequests, tell: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._stops = stops
        self._tell = tell
        self.pids = {node.node_id: node.pid for node in cluster.state.nodes if node.pid is not None}

    def over(self) -> bool:
        return bool(self._stops.count) or not self.pids

    def wait(self, seconds: float) -> None:
        """Less, when there is something new."""
        for _ in range(max(1, round(seconds / LOOK_SECONDS))):
            self._stops.wait(LOOK_SECONDS)
            if self._stops.count or self._note_ends():
                return

    def _note_ends(self) -> bool:
        ended = {
            node_id: pid
            for node_id, pid in self.pids.items()
            if not _lives(self._cluster, node_id, pid)
        }
        for node_id, pid in ended.items():
            del self.pids[node_id]
            _report_end(self._cluster, node_id, pid, self._tell)
        # Somebody may have started nodes again by hand.
        self.pids = self.pids or self._cluster.pids()
        return bool(ended)


def _stop(cluster: RunningCluster, watched: dict[int, int], stops: StopRequests) -> ExitStatus:
    say("Stopping all nodes; Ctrl-C again to kill them.")
    watched = watched | cluster.pids()
    _forget_pids(cluster)
    signal_nodes(watched.values(), signal.SIGTERM)
    killed = False
    waited = 0.0
    while watched := {
        node_id: pid for node_id, pid in watched.items() if _lives(cluster, node_id, pid)
    }:
        if not killed and (stops.count > 1 or waited >= STOP_SECONDS):
            killed = True
            signal_nodes(watched.values(), signal.SIGKILL)
        stops.wait(POLL_SECONDS)
        waited += POLL_SECONDS
    if killed:
        say("Some nodes had to be killed; they recover their logs at the next start.")
        return ExitStatus.INTERRUPTED
    say("All nodes have stopped.")
    return ExitStatus.GOOD


def _lives(cluster: RunningCluster, node_id: int, pid: int) -> bool:
    child = cluster.children.get(node_id)
    if child is not None and child.pid == pid:
        return child.poll() is None
    return is_node(pid, cluster.folder.node_config(node_id))


def _report_end(
    cluster: RunningCluster, node_id: int, pid: int, tell: Callable[[str], None]
) -> None:
    if _stopped_by_down(cluster):
        return
    child = cluster.children.get(node_id)
    code = None if child is None else child.wait()
    ending = "ended" if code is None else ending_in_words(code)
    # Who was killed had no time for last words; the log ends with something else.
    words = f": {last_words(cluster.folder, node_id)}" if code is not None and code > 0 else ""
    tell(f"node {node_id} (pid {pid}) {ending}{words}")
    config = shlex.quote(cluster.folder.node_config(node_id))
    tell(f"  start it again: logboat node --config {config}")


def _forget_pids(cluster: RunningCluster) -> None:
    for node in cluster.state.nodes:
        cluster.state = cluster.state.with_pid(node.node_id, None)
    with suppress(Failure):
        save_state(cluster.folder, cluster.state)


def _stopped_by_down(cluster: RunningCluster) -> bool:
    try:
        return all(node.pid is None for node in load_state(cluster.folder).nodes)
    except Failure:
        return True  # purged
