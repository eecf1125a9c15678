"""Carries a plan out, and undoes it: at its end, on Ctrl-C, and when it is told to end.

Each strike has a thread of its own, since a node that stands still does not answer: the others
happen on time all the same. When this process is killed, what nodes broke in themselves still ends
by itself; only a node that it killed stays dead.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Lock, current_thread, main_thread
from types import FrameType

from ..cluster.folder import ClusterFolder
from ..cluster.launch import STOP_SECONDS, running_nodes, start_one
from ..cluster.processes import is_node, signal_nodes, stop_nodes, wait_until_ended
from ..cluster.readiness import node_is_ready
from ..cluster.readiness import pause as wait_a_little
from ..cluster.state import load_state
from ..failure import ExitStatus, Failure
from ..node_api import NodeApi, nodes_of_cluster
from ..signals import handled
from ..terminal import say
from .nodes import FAULTS, heal_all, known
from .plan import Plan, Step
from .record import note
from .roles import View, Who
from .times import in_words
from .who import who

ANSWER_SECONDS = 5.0
"""For a node that is to be hurt; one that stands still is missed."""

READY_SECONDS = 60.0
MOST_AT_ONCE = 16
KILLED_SECONDS = 10.0


@dataclass(slots=True)
class Strike:
    """One blow of a step, and what became of it."""

    at_s: float
    step: Step
    nodes: Sequence[int] = ()
    outcome: str = "done"

    @property
    def done(self) -> bool:
        return self.outcome == "done"

    def as_row(self) -> tuple[str, ...]:
        nodes = ",".join(map(str, self.nodes)) or "-"
        lasts = in_words(self.step.for_s) if self.step.for_s else "-"
        return in_words(self.at_s), self.step.in_words(), nodes, lasts, self.outcome

    def as_document(self) -> dict[str, object]:
        return {
            "at_s": self.at_s,
            "step": self.step.number,
            "fault": self.step.fault,
            "nodes": list(self.nodes),
            "for_s": self.step.for_s,
            "outcome": self.outcome,
        }


@dataclass(frozen=True, slots=True)
class Ready:
    """A plan that the cluster can be hurt by."""

    plan: Plan
    nodes: Mapping[int, NodeApi]
    folder: ClusterFolder | None


def prepare(plan: Plan, api: NodeApi, folder: ClusterFolder | None) -> Ready:
    """Whom the plan names is there, lets itself be hurt, and is of the cluster of the folder.
    Raises Failure; nothing has happened then."""
    nodes = nodes_of_cluster(api)
    for step in plan.steps:
        for meant in (step.nodes, step.others):
            if meant is not None:
                _exists(plan, step, meant, api, nodes)
    if not all(step.of_processes for step in plan.steps):
        for one in nodes.values():
            one.call("GET", FAULTS)
    if folder is not None:
        cluster_id = api.call("GET", "/api/v1/cluster")["cluster_id"]
        if load_state(folder).cluster_id != cluster_id:
            raise Failure(
                f"{folder.path} is another cluster than {api.url}: whose nodes are to be killed? "
                "Name one by --data-dir"
            )
    return Ready(plan, nodes, folder)


def _exists(plan: Plan, step: Step, meant: Who, api: NodeApi, nodes: Mapping[int, NodeApi]) -> None:
    try:
        known(nodes, meant.numbers)
        if meant.topic is not None:
            from ..node_api import topic_path

            partitions = api.call("GET", topic_path(meant.topic))["partitions"]
            if meant.partition >= len(partitions):
                raise Failure(f"{meant.topic} has {len(partitions)} partitions")
    except Failure as failure:
        raise Failure(
            f"{plan.name}: step {step.number}: {failure.sentence}", failure.status
        ) from failure


def carry_out(ready: Ready) -> list[Strike]:
    """All strikes, in order. Raises KeyboardInterrupt once everything is undone; Failure when
    something could not be undone."""
    run = _Run(ready)
    with _stops_interrupt():
        try:
            run.play()
        finally:
            run.undo()
    return run.strikes


class _Run:
    def __init__(self, ready: Ready) -> None:
        self._plan = ready.plan
        self._nodes = ready.nodes
        self._folder = ready.folder
        self._view = View(ready.nodes, Random(ready.plan.seed))
        self._by = who(f"plan {Path(ready.plan.name).name}")
        self._began = time.monotonic()
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="strike")
        self._ending = False
        self._starting = Lock()
        """The cluster's file of pids has one writer at a time."""
        self.strikes = [Strike(at_s, step) for at_s, step in ready.plan.strikes()]
        self._under_way: list[Future[None]] = []

    def play(self) -> None:
        say(f"{len(self.strikes)} strikes within {in_words(self._plan.length_s)}; Ctrl-C heals.")
        for strike in self.strikes:
            self._wait_until(strike.at_s)
            self._under_way.append(self._pool.submit(self._strike, strike))
        self._wait_until(self._plan.length_s)
        for one in self._under_way:
            one.result()

    def undo(self) -> None:
        """A second Ctrl-C does not keep it from doing so: it is told, and goes on."""
        self._ending = True
        say("Healing...")
        with _deaf_to_stops():
            self._pool.shutdown(wait=True, cancel_futures=True)
            if self._folder is not None:
                revive(self._folder)
            heal_all(self._nodes)
        say("Healed.")

    def _wait_until(self, at_s: float) -> None:
        time.sleep(max(0.0, self._began + at_s - time.monotonic()))

    def _strike(self, strike: Strike) -> None:
        step = strike.step
        try:
            strike.nodes = self._view.find(step.nodes)
            if not strike.nodes:
                raise Failure(f"nobody is {step.nodes.text} now")
            for node_id in strike.nodes:
                self._hurt(node_id, step)
        except Failure as failure:
            strike.outcome = failure.sentence
        nodes = ", ".join(map(str, strike.nodes)) or "nobody"
        lasts = f" for {in_words(step.for_s)}" if step.for_s else ""
        ended = "" if strike.done else f": {strike.outcome}"
        say(f"{strike.at_s:7.1f}s  {step.in_words()} (node {nodes}){lasts}{ended}")

    def _hurt(self, node_id: int, step: Step) -> None:
        if step.of_processes:
            self._hurt_process(node_id, step)
            return
        fault: dict[str, object] = {
            "kind": step.fault,
            "for": f"{round(step.for_s * 1000)}ms",
            "by": self._by,
        }
        faults = [fault]
        match step.fault:
            case "clock":
                fault["offset"] = step.amount
            case "partition" | "delay" | "drop":
                if step.fault == "delay":
                    fault["delay"] = step.amount
                if step.fault == "drop":
                    fault["chance"] = step.chance
                others = self._view.others_than(node_id, step.others)
                if not others:
                    raise Failure(f"nobody but node {node_id} itself is on the other side")
                faults = [{**fault, "node": other} for other in others]
        for one in faults:
            self._nodes[node_id].call("POST", FAULTS, one, timeout_seconds=ANSWER_SECONDS)

    # Processes of this machine

    def _hurt_process(self, node_id: int, step: Step) -> None:
        folder = self._folder
        assert folder is not None
        pid = running_nodes(folder, load_state(folder)).get(node_id)
        if pid is None:
            raise Failure(f"node {node_id} does not run")
        config = folder.node_config(node_id)
        note(folder, node_id, step.fault, step.for_s or None, self._by)
        if step.fault == "kill":
            signal_nodes([pid], signal.SIGKILL)
            wait_until_ended({pid: config}, KILLED_SECONDS)
            self._sleep(step.for_s)
        else:
            stop_nodes({pid: config}, patience_seconds=STOP_SECONDS)
        with self._starting:
            if not self._ending and node_id not in running_nodes(folder, load_state(folder)):
                start_one(folder, node_id)

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._ending and time.monotonic() < end:
            wait_a_little()


def wake(folder: ClusterFolder) -> None:
    """Who stands still goes on, also one that was stopped (SIGSTOP): it cannot be asked to."""
    signal_nodes(running_nodes(folder, load_state(folder)).values(), signal.SIGCONT)


def revive(folder: ClusterFolder) -> None:
    """Start whoever does not run, and wait until all are ready. One that stands still goes on.
    Raises Failure when one is not ready in time."""
    wake(folder)
    state = load_state(folder)
    running = running_nodes(folder, state)
    for node in state.nodes:
        if node.node_id not in running:
            start_one(folder, node.node_id)
            say(f"Started node {node.node_id}.")
    end = time.monotonic() + READY_SECONDS
    for node in state.nodes:
        while not node_is_ready(node):
            pid = load_state(folder).node(node.node_id).pid
            if pid is not None and not is_node(pid, folder.node_config(node.node_id)):
                raise Failure(f"node {node.node_id} has ended; `logboat cluster logs` says why")
            if time.monotonic() > end:
                raise Failure(
                    f"node {node.node_id} is not ready after {READY_SECONDS:.0f} s",
                    ExitStatus.TIMED_OUT,
                )
            wait_a_little()


def _stops_interrupt() -> AbstractContextManager[None]:
    """Whoever ends this process in order has everything undone, too."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    return _heard((signal.SIGTERM, signal.SIGHUP), interrupt)


def _deaf_to_stops() -> AbstractContextManager[None]:
    def say_so(_number: int, _frame: FrameType | None) -> None:
        say("Still healing; a kill -9 would leave it to the faults' own ends.")

    return _heard((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), say_so)


def _heard(
    numbers: Sequence[int], handler: Callable[[int, FrameType | None], None]
) -> AbstractContextManager[None]:
    """Nobody sends signals to another thread than the main one."""
    return handled(numbers if current_thread() is main_thread() else (), handler)
