"""The pytest plugin that installing Logboat registers.

`logboat_cluster` is one 3-node cluster for the whole session, `logboat_node` one node: tests use
topics of their own in it. Under pytest-xdist each worker has its own, on ports of its own. A test
that kills or stops nodes takes a cluster of its own from `LocalCluster`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .local_cluster import LocalCluster


@pytest.fixture(scope="session")
def logboat_cluster() -> Iterator[LocalCluster]:
    """A running 3-node cluster; `.bootstrap_servers` and `.http_urls` say where."""
    # Imported here: every pytest run of every project with Logboat installed loads this file.
    from .local_cluster import PATIENT, LocalCluster

    with LocalCluster(nodes=3, settings=PATIENT) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def logboat_node() -> Iterator[LocalCluster]:
    """A running single node: quicker to start, and nothing replicates."""
    from .local_cluster import LocalCluster

    with LocalCluster(nodes=1) as cluster:
        yield cluster
