"""`logboat cluster node ...`: what may happen to one node, on purpose."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

from ..failure import Failure
from ..terminal import say
from .folder import ClusterFolder
from .places import DataDir, Ephemeral, existing_folder

node = typer.Typer(
    name="node",
    help="One node: kill, stop, start, restart, pause, resume.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NodeId = Annotated[int, typer.Argument(metavar="NODE", min=1)]


@node.command()
def kill(node_id: NodeId, data_dir: DataDir = None, ephemeral: Ephemeral = False) -> None:
    """SIGKILL, as a crash would."""
    pid = _pid(existing_folder(data_dir, ephemeral), node_id)
    _signal(pid, signal.SIGKILL)
    say(f"Killed node {node_id} (pid {pid}).")


@node.command()
def stop(node_id: NodeId, data_dir: DataDir = None, ephemeral: Ephemeral = False) -> None:
    """Stop it in good order: it hands its partitions over first."""
    from .launch import STOP_SECONDS
    from .processes import stop_nodes

    folder = existing_folder(data_dir, ephemeral)
    pid = _pid(folder, node_id)
    killed = stop_nodes({pid: folder.node_config(node_id)}, patience_seconds=STOP_SECONDS)
    say(f"Stopped node {node_id}." if not killed else f"Node {node_id} had to be killed.")


@node.command()
def start(node_id: NodeId, data_dir: DataDir = None, ephemeral: Ephemeral = False) -> None:
    """Start it again where it was; returns when the node is ready."""
    folder = existing_folder(data_dir, ephemeral)
    _start(folder, node_id)


@node.command()
def restart(node_id: NodeId, data_dir: DataDir = None, ephemeral: Ephemeral = False) -> None:
    """Stop it in good order, then start it."""
    stop(node_id, data_dir, ephemeral)
    _start(existing_folder(data_dir, ephemeral), node_id)


@node.command()
def pause(node_id: NodeId, data_dir: DataDir = None, ephemeral: Ephemeral = False) -> None:
    """SIGSTOP: it is there and does nothing, until `resume`."""
    _signal(_pid(existing_folder(data_dir, ephemeral), node_id), signal.SIGSTOP)
    say(f"Paused node {node_id}; `logboat cluster node resume {node_id}` lets it go on.")


@node.command()
def resume(node_id: NodeId, data_dir: DataDir = None, ephemeral: Ephemeral = False) -> None:
    """SIGCONT."""
    _signal(_pid(existing_folder(data_dir, ephemeral), node_id), signal.SIGCONT)
    say(f"Node {node_id} goes on.")


def _start(folder: ClusterFolder, node_id: int) -> None:
    from .launch import last_words, start_one
    from .processes import ending_in_words
    from .readiness import node_is_ready
    from .readiness import pause as wait_a_little
    from .state import load_state

    state = load_state(folder)
    _known(folder, node_id)
    if _running(folder).get(node_id) is not None:
        raise Failure(f"node {node_id} runs already")
    child = start_one(folder, node_id)
    while not node_is_ready(state.node(node_id)):
        if (code := child.poll()) is not None:
            words = last_words(folder, node_id) or "it wrote nothing"
            raise Failure(f"node {node_id} {ending_in_words(code)}: {words}")
        wait_a_little()
    say(f"Node {node_id} is ready (pid {child.pid}).")


def _known(folder: ClusterFolder, node_id: int) -> None:
    from .state import load_state

    state = load_state(folder)
    if node_id not in [one.node_id for one in state.nodes]:
        raise Failure(f"there is no node {node_id}; the cluster has {len(state.nodes)}")


def _running(folder: ClusterFolder) -> dict[int, int]:
    from .launch import running_nodes
    from .state import load_state

    return running_nodes(folder, load_state(folder))


def _pid(folder: ClusterFolder, node_id: int) -> int:
    _known(folder, node_id)
    pid = _running(folder).get(node_id)
    if pid is None:
        raise Failure(
            f"node {node_id} does not run; `logboat cluster node start {node_id}` starts it"
        )
    return pid


def _signal(pid: int, number: int) -> None:
    from .processes import signal_nodes

    signal_nodes([pid], number)
