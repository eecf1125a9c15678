"""What `up` prints when the cluster stands."""

from __future__ import annotations

import shutil
import sys

from .report import ClusterReport, as_table
from .state import ClusterState


def banner(state: ClusterState, report: ClusterReport) -> str:
    """The table, the `export` line and three things to try, ready to be pasted."""
    kafka = state.bootstrap_servers
    program = _program()
    return "\n".join(
        [
            as_table(report),
            "",
            f"export LOGBOAT_BOOTSTRAP={kafka} LOGBOAT_HTTP={state.http_urls}",
            "",
            "Three things to try, after the export:",
            f"  {program} topic create greetings && echo hello | {program} produce greetings",
            f"  kcat -b {kafka} -t greetings -C -e   # or any other Kafka client",
            f"  kill -9 {_leader_pid(report)}   # the quorum's leader; nothing is lost",
        ]
    )


def _program() -> str:
    """What to type: a virtual environment that is not active is not on the path."""
    return "logboat" if shutil.which("logboat") else sys.argv[0]


def _leader_pid(report: ClusterReport) -> str:
    leaders = [node.pid for node in report.nodes if node.role == "leader"]
    return str(leaders[0] if leaders else report.nodes[0].pid)
