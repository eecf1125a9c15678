"""What `up` prints when the cluster stands."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Any

from .first_topics import in_words
from .report import ClusterReport, as_table
from .state import ClusterState


def banner(
    state: ClusterState, report: ClusterReport, topics: Sequence[dict[str, Any]] = ()
) -> str:
    """The table, the `export` line and three things to try, ready to be pasted. `topics` were
    asked for."""
    kafka = state.bootstrap_servers
    program = _program()
    named = [f"topic {topic['name']}: {in_words(topic)}" for topic in topics]
    first = topics[0]["name"] if topics else "greetings"
    created = "" if topics else f"{program} topic create {first} && "
    return "\n".join(
        [
            as_table(report),
            *named,
            "",
            f"export LOGBOAT_BOOTSTRAP={kafka} LOGBOAT_HTTP={state.http_urls}",
            "",
            "Three things to try, after the export:",
            f"  {created}echo hello | {program} produce {first}",
            f"  kcat -b {kafka} -t {first} -C -e   # or any other Kafka client",
            f"  kill -9 {_leader_pid(report)}   # the quorum's leader; nothing is lost",
        ]
    )


def _program() -> str:
    """What to type: a virtual environment that is not active is not on the path."""
    return "logboat" if shutil.which("logboat") else sys.argv[0]


def _leader_pid(report: ClusterReport) -> str:
    leaders = [node.pid for node in report.nodes if node.role == "leader"]
    return str(leaders[0] if leaders else report.nodes[0].pid)
