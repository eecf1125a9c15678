"""How the workers of pytest-xdist share the suite.

The first worker plays with real processes while the others compute, until one kind is done: two
clusters side by side would starve each other, and who waits for one leaves a processor to somebody
who can use it. The tests of a file stay together, and so do files that have something expensive in
common, which is made once then. What takes longest begins first, so that all workers end together.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

FIRST_WORKER = "gw0"

WITH_PROCESSES = (
    "tests/client/",
    "tests/client_library/",
    "tests/foreign/",
    "tests/http/",
    "tests/node/",
    "tests/processes_scope/",
    "tests/testing/",
)

TOGETHER = ("tests/partitions/kafka_oracle/", "tests/foreign/")

APART = ("tests/foreign/test_group_clients.py", "tests/foreign/test_coordinator_death.py")
"""Files that take nothing of what their folder has in common."""

LONGEST_FIRST = (
    "tests/testing/test_churn_processes.py",
    "tests/foreign/",
    "tests/processes_scope/test_run_",
    "tests/client/test_command_line_on_a_cluster.py",
    "tests/node/test_three_nodes.py",
    "tests/node/test_quorum_processes.py",
    "tests/testing/",
    "tests/cluster_scope/",
    "tests/simulation/",
    "tests/partitions/",
    "tests/checkers/",
)
"""The rest in the order of its names."""


def share_of(nodeid: str) -> str:
    """What a test is handed out with: its file, or all of a folder."""
    path = nodeid.partition("::")[0]
    if path.startswith(APART):
        return path
    return next((folder for folder in TOGETHER if path.startswith(folder)), path)


def _rank(share: str) -> int:
    ranks = (rank for rank, path in enumerate(LONGEST_FIRST) if share.startswith(path))
    return next(ranks, len(LONGEST_FIRST))


def next_share(left: list[str], worker: str) -> str:
    """Of the shares that nobody has yet, which this worker takes."""
    mine = worker == FIRST_WORKER
    return min(left, key=lambda share: (share.startswith(WITH_PROCESSES) != mine, _rank(share)))


class Shares(LoadScopeScheduling):  # type: ignore[misc]
    """The scopes of its parent class are our shares."""

    def _split_scope(self, nodeid: str) -> str:
        return share_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        chosen = next_share(list(self.workqueue), node.gateway.id)
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)
