"""Clusters of fake nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from logboat.client.cluster.folder import ClusterFolder
from tests.client.fake_nodes import fake_nodes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterFolder]:
    """A folder whose nodes are fakes."""
    with fake_nodes(monkeypatch):
        yield ClusterFolder.at(str(tmp_path / "data"))
