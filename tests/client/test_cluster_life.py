"""Starting, watching and stopping node processes, with fakes in the nodes' place."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from logboat.client.chaos.record import note
from logboat.client.cluster import launch, plan
from logboat.client.cluster.folder import ClusterFolder
from logboat.client.cluster.launch import (
    RunningCluster,
    bring_up,
    claim,
    running_nodes,
    stop_cluster,
)
from logboat.client.cluster.ports import NodePorts, first_taken, free_ports
from logboat.client.cluster.processes import find_nodes, is_node
from logboat.client.cluster.readiness import why_not_ready
from logboat.client.cluster.remove import remove_cluster
from logboat.client.cluster.report import look_at
from logboat.client.cluster.state import ClusterState, load_state, save_state
from logboat.client.cluster.supervise import StopRequests, supervise
from logboat.client.failure import ExitStatus, Failure


def up(folder: ClusterFolder, nodes: int | None = 2, ready_seconds: float = 60.0) -> RunningCluster:
    with claim(folder, nodes=nodes, any_port=True):
        return bring_up(folder, nodes=nodes, any_port=True, ready_seconds=ready_seconds)


def test_up_returns_when_every_node_is_ready(folder: ClusterFolder) -> None:
    cluster = up(folder)
    report = look_at(folder, load_state(folder))
    assert report.state == "ready"
    assert [node.role for node in report.nodes] == ["leader", "follower"]
    assert {node.node_id: node.pid for node in report.nodes} == cluster.pids()


def test_a_second_up_is_refused_while_all_nodes_run(folder: ClusterFolder) -> None:
    up(folder)
    with pytest.raises(Failure, match="is running"):
        up(folder)


def test_a_restart_keeps_ids_and_ports(folder: ClusterFolder) -> None:
    first = up(folder).state
    stop_cluster(folder, load_state(folder))
    assert look_at(folder, load_state(folder)).state == "down"
    again = up(folder, nodes=None).state
    assert again.cluster_id == first.cluster_id
    assert [node.ports for node in again.nodes] == [node.ports for node in first.nodes]


def test_up_starts_only_the_node_that_is_missing(folder: ClusterFolder) -> None:
    before = up(folder)
    before.children[2].kill()
    before.children[2].wait()
    assert look_at(folder, load_state(folder)).state == "degraded"
    after = up(folder)
    assert list(after.children) == [2]
    assert after.pids()[1] == before.pids()[1]


def test_a_node_that_ends_at_start_is_named_and_the_others_are_stopped(
    folder: ClusterFolder,
) -> None:
    up(folder)
    stop_cluster(folder, load_state(folder))
    Path(folder.node_dir(2), "behaviour").write_text("die")
    with pytest.raises(Failure, match="node 2 ended with status 1: fake node: the disk is on fire"):
        up(folder)
    assert running_nodes(folder, load_state(folder)) == {}


def test_a_cluster_that_does_not_get_ready_is_stopped(
    folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    up(folder)
    stop_cluster(folder, load_state(folder))
    Path(folder.node_dir(1), "behaviour").write_text("unready")
    seen: list[str | None] = []

    def looked(state: ClusterState) -> str | None:
        seen.append(why_not_ready(state))
        return seen[-1]

    def monotonic() -> float:
        """A long time passes once the node has said so."""
        return time.monotonic() + 1_000 * bool(seen and "no controller" in str(seen[-1]))

    monkeypatch.setattr(launch, "why_not_ready", looked)
    monkeypatch.setattr(launch, "time", SimpleNamespace(monotonic=monotonic))
    with pytest.raises(Failure, match="node 1 is not ready: no controller"):
        up(folder, ready_seconds=600.0)
    assert running_nodes(folder, load_state(folder)) == {}


def test_a_port_lost_to_another_process_is_replaced(
    folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as thief:
        stolen = thief.getsockname()[1]
        choices = iter([[NodePorts(20_001, 20_002, stolen)]])
        monkeypatch.setattr(
            "logboat.client.cluster.plan.free_ports",
            lambda count: next(choices, None) or free_ports(count),
        )
        # The thief came between choosing and binding: `up` did not see it beforehand.
        looks = iter([None])
        monkeypatch.setattr(
            "logboat.client.cluster.plan.first_taken",
            lambda ports: next(looks, first_taken(ports)),
        )
        cluster = bring_up_without_claim(folder)
    assert stolen not in cluster.state.nodes[0].ports


def bring_up_without_claim(folder: ClusterFolder) -> RunningCluster:
    os.makedirs(folder.path)
    return bring_up(folder, nodes=1, any_port=True, ready_seconds=60.0)


def test_a_port_in_use_is_one_sentence_and_nothing_is_written(
    folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setattr(plan, "usual_ports", lambda _: NodePorts(port, port, port))
        with (
            pytest.raises(Failure, match=f"port {port} is in use, which node 1 needs"),
            claim(folder, nodes=1, any_port=False),
        ):
            pass
    assert not os.path.exists(folder.path)


def test_a_stale_pid_of_another_program_is_not_a_node(folder: ClusterFolder) -> None:
    up(folder)
    state = load_state(folder)
    stop_cluster(folder, state)
    save_state(folder, state.with_pid(1, os.getpid()))
    assert running_nodes(folder, load_state(folder)) == {}
    assert up(folder).pids()[1] != os.getpid()


def test_a_node_is_found_by_its_command_line_when_the_state_lost_its_pid(
    folder: ClusterFolder,
) -> None:
    cluster = up(folder)
    configs = {1: folder.node_config(1), 2: folder.node_config(2)}
    assert find_nodes(configs, {1: None, 2: None}) == cluster.pids()
    assert not is_node(cluster.children[1].pid, configs[2])


def test_down_kills_a_node_that_does_not_listen(folder: ClusterFolder) -> None:
    up(folder)
    stop_cluster(folder, load_state(folder))
    Path(folder.node_dir(1), "behaviour").write_text("deaf")
    cluster = up(folder)
    stop_cluster(folder, load_state(folder), patience_seconds=2.0)
    assert cluster.children[1].wait() == -signal.SIGKILL
    assert cluster.children[2].wait() == 0


def test_down_ends_nodes_also_where_nothing_can_be_written(
    folder: ClusterFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = up(folder)
    os.mkdir(f"{folder.state_file}.{os.getpid()}.tmp")
    stop_cluster(folder, load_state(folder))
    assert cluster.pids() == {}
    assert "cannot write" in capsys.readouterr().err


def test_only_one_up_looks_after_a_folder(folder: ClusterFolder) -> None:
    with (
        claim(folder, nodes=1, any_port=True),
        pytest.raises(Failure, match="another `logboat cluster up`"),
        claim(folder, nodes=1, any_port=True),
    ):
        pass


def test_purge_removes_what_up_made_and_nothing_else(folder: ClusterFolder) -> None:
    up(folder)
    note(folder, 1, "kill", None, "somebody")
    stop_cluster(folder, load_state(folder))
    Path(folder.path, "notes.txt").write_text("mine")
    remove_cluster(folder)
    assert os.listdir(folder.path) == ["notes.txt"]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def later(seconds: float, act: object) -> threading.Thread:
    def run() -> None:
        time.sleep(seconds)
        assert callable(act)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_dead_node_is_reported_and_one_ctrl_c_stops_the_rest(
    folder: ClusterFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = up(folder)
    stops = StopRequests()

    def kill_one_then_interrupt() -> None:
        cluster.children[2].kill()
        until(lambda: cluster.children[2].returncode is not None)
        os.kill(os.getpid(), signal.SIGINT)

    with stops.installed():
        thread = later(0.0, kill_one_then_interrupt)
        status = supervise(cluster, stops)
        thread.join()
    assert status == ExitStatus.GOOD
    said = capsys.readouterr().err
    assert "node 2" in said
    assert "was killed by SIGKILL" in said
    assert cluster.pids() == {}
    assert cluster.children[1].wait() == 0


def test_a_second_ctrl_c_kills_at_once(
    folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience_s = 600.0
    monkeypatch.setattr("logboat.client.cluster.supervise.STOP_SECONDS", patience_s)
    up(folder)
    stop_cluster(folder, load_state(folder))
    Path(folder.node_dir(1), "behaviour").write_text("deaf")
    cluster = up(folder)
    stops = StopRequests()

    def interrupt_twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        until(lambda: stops.count == 1)
        os.kill(os.getpid(), signal.SIGINT)

    with stops.installed():
        started = time.monotonic()
        thread = later(0.1, interrupt_twice)
        status = supervise(cluster, stops)
        thread.join()
    assert status == ExitStatus.INTERRUPTED
    assert time.monotonic() - started < patience_s / 2
    assert cluster.pids() == {}


def test_down_elsewhere_ends_a_foreground_up_in_peace(
    folder: ClusterFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = up(folder)
    thread = later(0.2, lambda: stop_cluster(folder, load_state(folder)))
    assert supervise(cluster, StopRequests()) == ExitStatus.GOOD
    thread.join()
    assert "was stopped by `logboat cluster down`" in capsys.readouterr().err


def test_a_cluster_whose_nodes_all_died_is_a_failure(folder: ClusterFolder) -> None:
    cluster = up(folder)
    for child in cluster.children.values():
        child.kill()
    with pytest.raises(Failure, match="no node is left"):
        supervise(cluster, StopRequests())
