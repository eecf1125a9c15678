"""What a crash or a person makes of the files of a cluster's folder is one sentence, which names
the file, or costs nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.client.chaos.record import note, recorded
from logboat.client.cluster.folder import ClusterFolder
from logboat.client.cluster.plan import new_cluster, write_files
from logboat.client.cluster.state import load_state
from logboat.client.failure import Failure
from logboat.node.__main__ import load
from logboat.node.config import ConfigRefused

GARBAGE = st.one_of(
    st.binary(min_size=1, max_size=12),
    st.sampled_from([b"9", b'"', b"[]", b"{}", b"\n", b"null", b"\0", b"\xff", b".", b"x"]),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ClusterFolder:
    made = ClusterFolder.at(str(tmp_path_factory.mktemp("cluster")))
    write_files(made, new_cluster(3, any_port=False, ephemeral=False))
    for node_id in (1, 2, 3):
        note(made, node_id, "kill", 1.5, "ann")
    return made


def garbled(path: Path, choices: st.DataObject) -> bytes:
    data = bytearray(path.read_bytes())
    at = choices.draw(st.integers(0, len(data) - 1))
    garbage = choices.draw(GARBAGE)
    if choices.draw(st.booleans()):
        data[at : at + len(garbage)] = garbage
    else:
        data[at:] = garbage[: choices.draw(st.integers(0, len(garbage)))]
    return bytes(data)


@given(choices=st.data())
def test_a_garbled_state_file_is_refused_by_name_or_can_be_used(
    folder: ClusterFolder, choices: st.DataObject
) -> None:
    path = Path(folder.state_file)
    whole = path.read_bytes()
    try:
        path.write_bytes(garbled(path, choices))
        try:
            state = load_state(folder)
        except Failure as failure:
            if folder.state_file not in str(failure):
                raise
        else:
            assert all(0 < port < 1 << 16 for node in state.nodes for port in node.ports)
    finally:
        path.write_bytes(whole)


@given(choices=st.data())
def test_a_garbled_history_costs_what_is_garbled(
    folder: ClusterFolder, choices: st.DataObject
) -> None:
    path = Path(folder.chaos_history)
    whole = path.read_bytes()
    try:
        path.write_bytes(garbled(path, choices))
        assert len(sorted(recorded(folder), key=lambda one: (one.at_ms, one.node))) <= 4
    finally:
        path.write_bytes(whole)


@given(choices=st.data())
def test_a_garbled_configuration_is_refused_with_a_sentence_or_kept(
    folder: ClusterFolder, choices: st.DataObject
) -> None:
    """By the node, which names the file itself, and by `up`, which writes ports into it."""
    path = Path(folder.node_config(2))
    whole = path.read_bytes()
    try:
        path.write_bytes(garbled(path, choices))
        try:
            load(str(path))
        except ConfigRefused as refused:
            assert "\n" not in str(refused)  # noqa: PT017
        try:
            write_files(folder, load_state(folder))
        except Failure as failure:
            if str(path) not in str(failure):
                raise
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:", "127.0.0.1:9o92", "127.0.0.1:0"])
def test_an_address_without_a_port_is_no_address(folder: ClusterFolder, address: str) -> None:
    path = Path(folder.state_file)
    whole = path.read_bytes()
    document = json.loads(whole)
    document["nodes"][1]["kafka"] = address
    try:
        path.write_text(json.dumps(document))
        with pytest.raises(Failure, match="is damaged or of another version"):
            load_state(folder)
    finally:
        path.write_bytes(whole)
