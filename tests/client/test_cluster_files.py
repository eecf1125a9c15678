"""What `up` writes: ports, settings and the state file."""

from __future__ import annotations

import json
import socket
import stat
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from logboat.client.cluster import ports
from logboat.client.cluster.folder import ClusterFolder
from logboat.client.cluster.node_toml import replaced, replication_of, settings_of
from logboat.client.cluster.plan import existing_cluster, new_cluster, write_files
from logboat.client.cluster.ports import FREE_RANGE, free_ports, is_free, usual_ports
from logboat.client.cluster.state import load_state, save_state
from logboat.client.failure import Failure


def flattened(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def test_the_usual_ports_step_by_a_thousand() -> None:
    usual = [usual_ports(node_id) for node_id in range(1, 6)]
    assert [(p.kafka, p.quorum, p.http) for p in usual[:3]] == [
        (9092, 9093, 8082),
        (10092, 10093, 9082),
        (11092, 11093, 10082),
    ]
    every = [port for of_node in usual for _, port in of_node.named()]
    assert len(set(every)) == len(every)


def test_free_ports_are_different_and_below_the_ephemeral_range() -> None:
    every = [port for of_node in free_ports(5) for _, port in of_node.named()]
    assert len(set(every)) == 15
    assert all(FREE_RANGE[0] <= port < FREE_RANGE[1] for port in every)


def test_a_port_whose_node_is_just_being_restarted_is_given_to_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as node:
        port = node.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            node.accept()[0].close()
    monkeypatch.setattr(ports, "FREE_RANGE", (port, port + 1))
    assert is_free(port)  # for the node itself
    with pytest.raises(Failure), ExitStack() as held:
        ports._take_free_ports(1, held)


def test_a_port_that_is_listened_on_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not is_free(server.getsockname()[1])


@pytest.mark.parametrize(
    ("nodes", "factor", "min_isr"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (4, 3, 2), (5, 3, 2)]
)
def test_replication_follows_the_number_of_nodes(nodes: int, factor: int, min_isr: int) -> None:
    settings = replication_of(nodes)
    assert settings["default.replication.factor"] == factor
    assert settings["min.insync.replicas"] == min_isr
    assert settings["offsets.topic.replication.factor"] == factor


def test_node_toml_reads_back_as_it_was_meant(tmp_path: Path) -> None:
    folder = ClusterFolder.at(str(tmp_path / 'a "strange" folder'))
    state = new_cluster(3, any_port=False, ephemeral=False)
    write_files(folder, state)
    for node_id in (1, 2, 3):
        parsed = flattened(tomllib.loads(Path(folder.node_config(node_id)).read_text()))
        assert parsed == settings_of(folder, state, node_id)
    assert (
        parsed["controller.quorum.voters"] == "1@127.0.0.1:9093,2@127.0.0.1:10093,3@127.0.0.1:11093"
    )


def test_the_secret_is_for_its_owner_only_and_written_once(tmp_path: Path) -> None:
    folder = ClusterFolder.at(str(tmp_path / "d"))
    state = new_cluster(1, any_port=False, ephemeral=False)
    write_files(folder, state)
    secret = Path(folder.secret_file)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    before = secret.read_text()
    assert len(bytes.fromhex(before)) == 32
    write_files(folder, state)
    assert secret.read_text() == before


def test_settings_that_a_user_added_survive_new_ports(tmp_path: Path) -> None:
    folder = ClusterFolder.at(str(tmp_path / "d"))
    write_files(folder, new_cluster(1, any_port=False, ephemeral=False))
    config = Path(folder.node_config(1))
    config.write_text(config.read_text() + "log.retention.ms = 1000\n")
    moved = new_cluster(1, any_port=True, ephemeral=False)
    write_files(folder, moved)
    parsed = flattened(tomllib.loads(config.read_text()))
    assert parsed["log.retention.ms"] == 1000
    assert parsed["http.listener"] == moved.nodes[0].http


def test_replaced_knows_quoted_names() -> None:
    assert replaced('"node.id" = 1\n', {"node.id": 2}) == "node.id = 2\n"


def test_the_state_file_reads_back(tmp_path: Path) -> None:
    folder = ClusterFolder.at(str(tmp_path))
    state = new_cluster(3, any_port=True, ephemeral=True).with_pid(2, 4711)
    save_state(folder, state)
    assert load_state(folder) == state


def test_another_number_of_nodes_is_refused(tmp_path: Path) -> None:
    folder = ClusterFolder.at(str(tmp_path))
    write_files(folder, new_cluster(3, any_port=True, ephemeral=False))
    with pytest.raises(Failure, match="holds a cluster of 3 nodes, not 5"):
        existing_cluster(folder, 5)


def test_nodes_beyond_the_voters_are_told_of_the_voters_only(tmp_path: Path) -> None:
    folder = ClusterFolder.at(str(tmp_path))
    state = new_cluster(5, 3, any_port=False, ephemeral=False)
    write_files(folder, state)
    for node_id in range(1, 6):
        parsed = flattened(tomllib.loads(Path(folder.node_config(node_id)).read_text()))
        voters = "1@127.0.0.1:9093,2@127.0.0.1:10093,3@127.0.0.1:11093"
        assert parsed["controller.quorum.voters"] == voters
    assert load_state(folder) == state
    assert existing_cluster(folder, 5, 3) == state
    with pytest.raises(Failure, match="holds a cluster with 3 voters, not 5"):
        existing_cluster(folder, 5, 5)


def test_at_most_five_nodes_vote_unless_less_are_asked_for() -> None:
    def voters(nodes: int, asked: int | None = None) -> int:
        return len(new_cluster(nodes, asked, any_port=False, ephemeral=False).voters)

    assert [voters(1), voters(3), voters(5), voters(9), voters(9, 3)] == [1, 3, 5, 5, 3]
    with pytest.raises(Failure, match="4 of 3 nodes cannot vote"):
        voters(3, 4)


def test_a_state_file_from_before_there_were_observers_names_voters(tmp_path: Path) -> None:
    folder = ClusterFolder.at(str(tmp_path))
    state = new_cluster(3, any_port=True, ephemeral=False)
    save_state(folder, state)
    path = Path(folder.state_file)
    document = json.loads(path.read_text())
    for node in document["nodes"]:
        del node["votes"]
    path.write_text(json.dumps(document))
    assert load_state(folder) == state


def test_cluster_ids_look_like_kafkas() -> None:
    for _ in range(200):
        cluster_id = new_cluster(1, any_port=False, ephemeral=False).cluster_id
        assert len(cluster_id) == 22
        assert not cluster_id.startswith("-")
