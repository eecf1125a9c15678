"""Start the nodes of a cluster and wait until it takes records; or stop what was started."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from ..failure import Failure
from ..terminal import say
from .first_topics import FirstTopic, make_topics, refuse_more_replicas
from .folder import ClusterFolder
from .node_toml import Value
from .plan import (
    DEFAULT_NODES,
    existing_cluster,
    new_cluster,
    with_usable_ports,
    write_files,
)
from .ports import NodePorts, first_taken
from .processes import (
    NOTHING_AROUND,
    Around,
    ending_in_words,
    find_nodes,
    start_node,
    stop_nodes,
)
from .readiness import pause, why_not_ready
from .state import ClusterState, load_state, save_state

READY_SECONDS = 60.0
"""How long `up` waits: recovery of large logs after a crash takes a while."""

STOP_SECONDS = 15.0
"""How long a node may take to end after SIGTERM before it is killed."""

PORT_ATTEMPTS = 5


@dataclass(slots=True)
class RunningCluster:
    """Processes of a cluster that this process started, beside those it found running."""

    folder: ClusterFolder
    state: ClusterState
    children: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    """By node id: started here. Only children tell how they ended."""

    def pids(self) -> dict[int, int]:
        """Nodes that live now."""
        return running_nodes(self.folder, self.state)

    def stop(self, patience_seconds: float = STOP_SECONDS) -> None:
        """End every node of the cluster, whoever started it."""
        stop_cluster(self.folder, self.state, patience_seconds)
        self._reap()

    def stop_children(self) -> None:
        """End only what was started here."""
        configs = {
            child.pid: self.folder.node_config(node_id) for node_id, child in self.children.items()
        }
        stop_nodes(configs, patience_seconds=STOP_SECONDS)
        self._reap()
        for node_id in self.children:
            self.state = self.state.with_pid(node_id, None)
        _note(self.folder, self.state)

    def _reap(self) -> None:
        for child in self.children.values():
            child.wait()


@contextmanager
def claim(
    folder: ClusterFolder,
    *,
    nodes: int | None,
    any_port: bool,
    voters: int | None = None,
    topics: Sequence[FirstTopic] = (),
) -> Iterator[None]:
    """Be the one `up` of this folder. What can be seen to be wrong beforehand (ports in use,
    another cluster, no permission) raises Failure before anything is written."""
    state, _ = _plan(folder, nodes, voters, any_port=any_port, ephemeral=False)
    refuse_more_replicas(topics, len(state.nodes))
    try:
        os.makedirs(folder.path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise Failure(f"cannot make {folder.path}: {error.strerror}") from error
    with folder.held_by_one_up():
        yield


def _plan(
    folder: ClusterFolder,
    nodes: int | None,
    voters: int | None,
    *,
    any_port: bool,
    ephemeral: bool,
    with_faults: bool = False,
) -> tuple[ClusterState, list[int]]:
    """The cluster as it will be, and which of its nodes are to be started."""
    state = existing_cluster(folder, nodes, voters)
    if state is None:
        size = nodes or DEFAULT_NODES
        state = new_cluster(size, voters, any_port=any_port, ephemeral=ephemeral)
    running = running_nodes(folder, state)
    to_start = [node.node_id for node in state.nodes if node.node_id not in running]
    if not to_start:
        raise Failure(f"the cluster in {folder.path} is running; `logboat cluster down` ends it")
    state = replace(
        state,
        with_faults=with_faults,
        nodes=tuple(replace(node, pid=running.get(node.node_id)) for node in state.nodes),
    )
    return with_usable_ports(state, to_start, any_port), to_start


class _NodeEndedEarly(Exception):
    def __init__(self, node_id: int, sentence: str) -> None:
        super().__init__(sentence)
        self.node_id = node_id


def bring_up(
    folder: ClusterFolder,
    *,
    nodes: int | None,
    any_port: bool,
    voters: int | None = None,
    ephemeral: bool = False,
    with_faults: bool = False,
    ready_seconds: float = READY_SECONDS,
    settings: Mapping[str, Value] | None = None,
    topics: Sequence[FirstTopic] = (),
) -> RunningCluster:
    """Start every node that does not run yet; return when the cluster is ready, and `topics` are
    there.

    `settings` go into the config of nodes that are new. `with_faults` holds for the nodes that are
    started, here and singly later, until the next `up`.

    The caller holds the folder's lock. Raises Failure with one sentence, and then nothing runs
    that was started here. A restart keeps cluster id, node ids and ports.
    """
    for attempt in range(PORT_ATTEMPTS):
        state, to_start = _plan(
            folder,
            nodes,
            voters,
            any_port=any_port,
            ephemeral=ephemeral,
            with_faults=with_faults,
        )
        write_files(folder, state, settings)
        cluster = RunningCluster(folder, state)
        try:
            _start(cluster, to_start)
            _wait_while(why_not_ready, cluster, ready_seconds)
            _wait_while(partial(make_topics, topics), cluster, ready_seconds)
            return cluster
        except _NodeEndedEarly as early:
            cluster.stop_children()
            if attempt + 1 < PORT_ATTEMPTS and any_port and _lost_a_port(state, early.node_id):
                continue
            raise Failure(str(early)) from early
        except BaseException:
            cluster.stop_children()
            raise
    raise Failure("no free ports: other processes took them as fast as they were chosen")


def start_one(
    folder: ClusterFolder, node_id: int, around: Around = NOTHING_AROUND
) -> subprocess.Popen[bytes]:
    """Start one node of an existing cluster again, without waiting for it."""
    state = load_state(folder)
    child = start_node(folder, node_id, around, with_faults=state.with_faults)
    _note(folder, state.with_pid(node_id, child.pid))
    return child


def running_nodes(folder: ClusterFolder, state: ClusterState) -> dict[int, int]:
    """The pids of the nodes that live, by node id."""
    configs = {node.node_id: folder.node_config(node.node_id) for node in state.nodes}
    return find_nodes(configs, {node.node_id: node.pid for node in state.nodes})


def stop_cluster(
    folder: ClusterFolder, state: ClusterState, patience_seconds: float = STOP_SECONDS
) -> Mapping[int, int]:
    """End all nodes of the cluster and note it; the pids that ran are returned by node id."""
    running = running_nodes(folder, state)
    for node in state.nodes:
        state = state.with_pid(node.node_id, None)
    # Noted first: a foreground `up` elsewhere then knows that this is wanted.
    _note(folder, state)
    configs = {pid: folder.node_config(node_id) for node_id, pid in running.items()}
    stop_nodes(configs, patience_seconds=patience_seconds)
    return running


def _note(folder: ClusterFolder, state: ClusterState) -> None:
    """Nodes end also where no byte can be written any more; they are found without a pid, too."""
    try:
        save_state(folder, state)
    except Failure as failure:
        say(f"logboat: {failure.sentence}")


def last_words(folder: ClusterFolder, node_id: int) -> str:
    """The last line that the node wrote, for people."""
    try:
        with open(folder.node_log(node_id), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip().removeprefix("logboat node: ") if lines else ""


def _start(cluster: RunningCluster, node_ids: list[int]) -> None:
    for node_id in node_ids:
        child = start_node(cluster.folder, node_id, with_faults=cluster.state.with_faults)
        cluster.children[node_id] = child
        cluster.state = cluster.state.with_pid(node_id, child.pid)
    save_state(cluster.folder, cluster.state)


def _wait_while(
    reason_to: Callable[[ClusterState], str | None], cluster: RunningCluster, seconds: float
) -> None:
    """Raises Failure after `seconds`, and _NodeEndedEarly."""
    deadline = time.monotonic() + seconds
    while (reason := reason_to(cluster.state)) is not None:
        for node_id, child in cluster.children.items():
            if (code := child.poll()) is not None:
                words = last_words(cluster.folder, node_id) or "it wrote nothing"
                raise _NodeEndedEarly(node_id, f"node {node_id} {ending_in_words(code)}: {words}")
        if time.monotonic() >= deadline:
            raise Failure(f"the cluster is not ready after {seconds:.0f} s: {reason}")
        pause()


def _lost_a_port(state: ClusterState, node_id: int) -> bool:
    """Whether somebody else listens now where the ended node wanted to."""
    return first_taken([(node_id, NodePorts(*state.node(node_id).ports))]) is not None
