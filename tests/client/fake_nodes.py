"""Real processes and ports in the nodes' place; no broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logboat.client.cluster import launch
from logboat.client.cluster.folder import ClusterFolder
from logboat.client.cluster.processes import NOTHING_AROUND, Around

FAKE_NODE = Path(__file__).with_name("fake_node.py")


@contextmanager
def fake_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within, whoever starts a node starts a fake; whatever runs at the end is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def start_fake(
        folder: ClusterFolder,
        node_id: int,
        around: Around = NOTHING_AROUND,
        *,
        with_faults: bool = False,
    ) -> subprocess.Popen[bytes]:
        command = [*around.command, sys.executable, str(FAKE_NODE), "logboat.node"]
        if with_faults:
            command.append("--with-faults")
        with open(folder.node_log(node_id), "ab") as log:
            child = subprocess.Popen(
                [*command, "--config", folder.node_config(node_id)],
                stdout=log,
                stderr=log,
                env={**os.environ, **around.environment},
            )
        started.append(child)
        return child

    monkeypatch.setattr(launch, "start_node", start_fake)
    try:
        yield
    finally:
        for child in started:
            child.kill()
            child.wait()
