"""LocalCluster, with fakes in the nodes' place."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from logboat.client.cluster.folder import ClusterFolder
from logboat.client.cluster.launch import start_one
from logboat.client.cluster.remove import remove_cluster
from logboat.client.failure import Failure
from logboat.testing import LocalCluster, NotInTime
from tests.client.fake_nodes import fake_nodes


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with fake_nodes(monkeypatch):
        yield


def test_entering_waits_until_ready_and_leaving_removes_everything() -> None:
    with LocalCluster(nodes=2) as cluster:
        assert cluster.node_ids == [1, 2]
        assert len(cluster.bootstrap_servers.split(",")) == 2
        assert all(url.startswith("http://127.0.0.1:") for url in cluster.http_urls)
        assert cluster.is_running(1)
        folder = cluster.folder.path
        pid = cluster.pid(1)
    assert not os.path.exists(folder)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_killed_node_is_gone_and_can_be_started_again() -> None:
    with LocalCluster(nodes=2) as cluster:
        before = cluster.pid(2)
        cluster.kill(2)
        assert not cluster.is_running(2)
        cluster.start(2)
        cluster.wait_ready()
        assert cluster.pid(2) != before
        with pytest.raises(RuntimeError, match="is running"):
            cluster.start(2)


def test_a_node_that_somebody_else_started_on_the_folder_ends_with_the_cluster() -> None:
    with LocalCluster(nodes=2) as cluster:
        cluster.kill(2)
        other = start_one(cluster.folder, 2)
        other.send_signal(signal.SIGSTOP)
    assert other.wait(60) is not None


def test_a_stopped_node_leaves_in_order_even_when_paused() -> None:
    with LocalCluster(nodes=1) as cluster:
        cluster.pause(1)
        cluster.stop(1)
        assert not cluster.is_running(1)


def test_a_node_is_restarted_whether_it_runs_or_not() -> None:
    with LocalCluster(nodes=1) as cluster:
        first = cluster.pid(1)
        cluster.restart(1)
        second = cluster.pid(1)
        cluster.kill(1)
        cluster.restart(1)
        assert len({first, second, cluster.pid(1)}) == 3
        assert cluster.is_running(1)


def test_a_paused_cluster_is_removed_all_the_same() -> None:
    with LocalCluster(nodes=2) as cluster:
        cluster.pause(1)
        pid = cluster.pid(1)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_every_wait_has_a_bound() -> None:
    with LocalCluster(nodes=1) as cluster, pytest.raises(NotInTime, match="never: not within 0 s"):
        cluster.wait_until(lambda: "because", "never", 0.05)


def test_settings_reach_every_node() -> None:
    with LocalCluster(nodes=1, settings={"log.retention.ms": 5}) as cluster:
        config = Path(cluster.folder.node_config(1)).read_text()
    assert "log.retention.ms = 5" in config


def test_a_kept_folder_stays() -> None:
    with LocalCluster(nodes=1) as cluster:
        cluster.keep_folder()
        folder = cluster.folder.path
    assert os.path.exists(folder)
    with LocalCluster(nodes=1, directory=folder):
        pass
    assert os.path.exists(folder)
    with pytest.raises(Failure), LocalCluster(nodes=2, directory=folder):
        pass
    remove_cluster(ClusterFolder.at(folder))
    assert not os.path.exists(folder)


def test_asking_before_the_start_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="not running"):
        _ = LocalCluster().bootstrap_servers
