"""A cluster of real processes that a test owns: started, hurt and removed by it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from ..client.cluster.folder import ClusterFolder
from ..client.cluster.guardian import Guardian, end_nodes
from ..client.cluster.launch import RunningCluster, bring_up, claim, last_words, start_one
from ..client.cluster.node_toml import Value
from ..client.cluster.plan import moved_to
from ..client.cluster.probe import Answer, ask
from ..client.cluster.processes import NOTHING_AROUND, Around, ending_in_words
from ..client.cluster.readiness import why_not_ready
from ..client.cluster.state import NodeState

READY_SECONDS = 180.0
"""A machine that does much else may be slow; nothing is late because of it."""
STOP_SECONDS = 30.0
HTTP_SECONDS = 30.0
POLL_SECONDS = 0.02

PATIENT: Mapping[str, Value] = {
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 30_000,
    "controller.quorum.election.timeout.ms": 500,
}
"""Settings with which no busy machine has a broker fenced, or a voter stand for election, of its
own accord. A node that was killed is missed at once all the same, for nobody listens where it was;
one that stands still is not."""


class NotInTime(Exception):
    """A bounded wait ended before what it waited for; the message says what was seen last."""


class LocalCluster:
    """Nodes 1 to `nodes` on free loopback ports, in a temporary folder unless `directory` is given.

    A context manager: entering waits until the cluster is ready, leaving ends every process and
    removes the temporary folder; so does a guardian when this process is killed. Every wait has a
    bound and raises `NotInTime`.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        voters: int | None = None,
        directory: str | None = None,
        settings: Mapping[str, Value] | None = None,
        ready_seconds: float = READY_SECONDS,
    ) -> None:
        """`voters`: the first so many form the quorum, by default all, but not more than 5.
        `settings`: node settings by Kafka's names, over those that `cluster up` writes."""
        self._size = nodes
        self._voters = voters
        self._directory = directory
        self._settings = settings
        self._ready_seconds = ready_seconds
        self._keeps_folder = directory is not None
        self._cluster: RunningCluster | None = None
        self._folder: ClusterFolder | None = None
        self._guardian: Guardian | None = None
        self._around: dict[int, Around] = {}

    def __enter__(self) -> LocalCluster:
        self._folder = ClusterFolder.at(self._directory or tempfile.mkdtemp(prefix="logboat-"))
        self._guardian = Guardian(self._folder, remove=not self._keeps_folder)
        try:
            with claim(self._folder, nodes=self._size, voters=self._voters, any_port=True):
                self._cluster = bring_up(
                    self._folder,
                    nodes=self._size,
                    voters=self._voters,
                    any_port=True,
                    ready_seconds=self._ready_seconds,
                    settings=self._settings,
                )
        except BaseException:
            self._remove_folder()
            self._dismiss_guardian()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process, paused ones too, and remove the temporary folder: in good order if it
        stays, at once if nobody will miss what is in it."""
        if self._cluster is None:
            return
        for child in self._cluster.children.values():
            if child.poll() is None:
                child.send_signal(signal.SIGCONT)
                child.send_signal(signal.SIGTERM if self._keeps_folder else signal.SIGKILL)
        deadline = time.monotonic() + STOP_SECONDS
        for child in self._cluster.children.values():
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        # Somebody may have started others on this folder, as `logboat cluster node start` does.
        end_nodes(self.folder, patience_seconds=STOP_SECONDS)
        self._cluster = None
        self._remove_folder()
        self._dismiss_guardian()

    # Where it is

    @property
    def folder(self) -> ClusterFolder:
        """The cluster's folder, as `logboat cluster ... --data-dir` takes it."""
        if self._folder is None:
            raise RuntimeError("the cluster was not started: use `with LocalCluster() as cluster`")
        return self._folder

    @property
    def node_ids(self) -> list[int]:
        return [node.node_id for node in self._running.state.nodes]

    @property
    def bootstrap_servers(self) -> str:
        """What Kafka clients call `bootstrap.servers`."""
        return self._running.state.bootstrap_servers

    @property
    def http_urls(self) -> list[str]:
        """In order of the node ids."""
        return [f"http://{node.http}" for node in self._running.state.nodes]

    def node(self, node_id: int) -> NodeState:
        return self._running.state.node(node_id)

    def data_dir(self, node_id: int) -> str:
        """The node's `log.dirs`: partition folders with Kafka's files."""
        return self.folder.node_data(node_id)

    def pid(self, node_id: int) -> int:
        return self._running.children[node_id].pid

    def is_running(self, node_id: int) -> bool:
        return self._running.children[node_id].poll() is None

    def keep_folder(self) -> None:
        """Leave the temporary folder where it is: there is something to look at."""
        self._keeps_folder = True
        if self._guardian is not None:
            self._guardian.keep_folder()

    # What a test does to it

    def kill(self, node_id: int) -> None:
        """SIGKILL; the process is gone when this returns."""
        child = self._running.children[node_id]
        child.kill()
        child.wait()

    def stop(self, node_id: int, *, seconds: float = STOP_SECONDS) -> None:
        """SIGTERM, and wait until the node has left in order. A node that ends with another
        status than 0 is an error."""
        child = self._running.children[node_id]
        # A paused process would keep the signal waiting for ever.
        child.send_signal(signal.SIGCONT)
        child.terminate()
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise NotInTime(f"node {node_id} runs {seconds} s after SIGTERM") from None
        if code != 0:
            words = last_words(self.folder, node_id)
            raise RuntimeError(f"node {node_id} {ending_in_words(code)} at a stop: {words}")

    def start(self, node_id: int, *, wait: bool = True) -> None:
        """Start a node that was killed or stopped; with `wait` return when it says it is ready."""
        if self.is_running(node_id):
            raise RuntimeError(f"node {node_id} is running")
        child = start_one(self.folder, node_id, self._around.get(node_id, NOTHING_AROUND))
        self._running.children[node_id] = child
        self._running.state = self._running.state.with_pid(node_id, child.pid)
        if wait:
            self.wait_until(lambda: self._why_node_not_ready(node_id), "node ready")

    def restart(self, node_id: int, *, wait: bool = True) -> None:
        """Stop it in good order, if it runs, and start it again; `wait` as of `start`."""
        if self.is_running(node_id):
            self.stop(node_id)
        self.start(node_id, wait=wait)

    def pause(self, node_id: int) -> None:
        """SIGSTOP: the process keeps its connections and answers nothing."""
        self._running.children[node_id].send_signal(signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        self._running.children[node_id].send_signal(signal.SIGCONT)

    # What experiments put around it

    def start_within(self, node_id: int, around: Around) -> None:
        """From its next start on the node's process is put into this."""
        self._around[node_id] = around

    def move(self, hosts: Mapping[int, str]) -> None:
        """These nodes, none of which may run, listen on other hosts when they start again."""
        self._running.state = moved_to(self.folder, self._running.state, hosts)

    def undo_if_killed(self, *command: str) -> None:
        """Have a command run should this process be killed, once the nodes are gone."""
        if self._guardian is not None:
            self._guardian.undo(*command)

    # What a test waits for

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Until every node is ready and a new topic of the default replication factor would take
        a record."""
        self.wait_until(lambda: why_not_ready(self._running.state), "cluster ready", seconds)

    def wait_until(
        self, why_not: Callable[[], str | None], what: str, seconds: float = READY_SECONDS
    ) -> None:
        """Poll until `why_not` has no objection left."""
        deadline = time.monotonic() + seconds
        while (reason := why_not()) is not None:
            if time.monotonic() >= deadline:
                raise NotInTime(f"{what}: not within {seconds:.0f} s: {reason}")
            time.sleep(POLL_SECONDS)

    def wait_in_sync(self, topic: str, seconds: float = READY_SECONDS) -> None:
        """Until every replica of every partition is in the ISR, as every living node sees it."""
        self.wait_until(lambda: self._why_not_in_sync(topic), f"{topic} in sync", seconds)

    def wait_leader(self, topic: str, partition: int, seconds: float = READY_SECONDS) -> int:
        """The partition's leader, as one living node sees it, once there is one."""
        found = [-1]

        def why_none() -> str | None:
            try:
                found[0] = self.leader_of(topic, partition)
            except RuntimeError as error:
                return str(error)
            return None if found[0] >= 0 else "nobody leads"

        self.wait_until(why_none, f"a leader of {topic}-{partition}", seconds)
        return found[0]

    def is_in_sync(self, topic: str) -> bool:
        return self._why_not_in_sync(topic) is None

    # What it says over HTTP

    def get(self, path: str, *, node_id: int | None = None) -> Answer | None:
        """GET from that node, or from the first living one; None when it does not answer."""
        return self.request("GET", path, node_id=node_id)

    def post(self, path: str, body: Any, *, node_id: int | None = None) -> Answer | None:
        return self.request("POST", path, body, node_id=node_id)

    def request(
        self, method: str, path: str, body: Any = None, *, node_id: int | None = None
    ) -> Answer | None:
        address = self._address(node_id)
        return ask(address, path, method=method, body=body, timeout_seconds=HTTP_SECONDS)

    def leader_of(self, topic: str, partition: int, *, node_id: int | None = None) -> int:
        """The partition's leader, or -1, as one living node sees it."""
        answer = self.get(f"/api/v1/topics/{topic}", node_id=node_id)
        if answer is None or answer.status != 200:
            raise RuntimeError(f"no view of {topic}: {answer}")
        return int(answer.body["partitions"][partition]["leader"])

    @property
    def _running(self) -> RunningCluster:
        if self._cluster is None:
            raise RuntimeError("the cluster is not running")
        return self._cluster

    def _address(self, node_id: int | None) -> str:
        if node_id is None:
            node_id = next((n for n in self.node_ids if self.is_running(n)), self.node_ids[0])
        return self.node(node_id).http

    def _why_node_not_ready(self, node_id: int) -> str | None:
        child = self._running.children[node_id]
        if (code := child.poll()) is not None:
            words = last_words(self.folder, node_id)
            raise RuntimeError(f"node {node_id} {ending_in_words(code)}: {words}")
        answer = self.get("/readyz", node_id=node_id)
        return None if answer is not None and answer.status == 200 else f"/readyz: {answer}"

    def _why_not_in_sync(self, topic: str) -> str | None:
        for node_id in self.node_ids:
            if not self.is_running(node_id):
                continue
            answer = self.get(f"/api/v1/topics/{topic}", node_id=node_id)
            if answer is None or answer.status != 200:
                return f"node {node_id} answers {answer}"
            for partition in answer.body["partitions"]:
                if sorted(partition["isr"]) != sorted(partition["replicas"]):
                    return f"node {node_id} sees {partition}"
        return None

    def _dismiss_guardian(self) -> None:
        if self._guardian is not None:
            self._guardian.dismiss()
            self._guardian = None

    def _remove_folder(self) -> None:
        if not self._keeps_folder and self._folder is not None:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self._folder.path)
