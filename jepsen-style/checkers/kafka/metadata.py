"""Topics as the map that the quorum keeps behind `barrier()` (RULES V5): linearizable by name."""

from __future__ import annotations

from collections.abc import Iterator

from ..linearizability.check import check_calls
from ..linearizability.models import Topics
from ..verdict import Anomaly, Status
from .records import Records

SEARCH_LIMIT = 2_000_000


def topics(records: Records) -> Iterator[Anomaly]:
    """`topics-not-linearizable`: no order of creations, deletions and descriptions explains what
    was answered. `undecided` when the search for one took too long.
    """
    history = records.history
    calls = [
        (call, history.invoked[index], history.completed[index], index)
        for index, call in records.topics
    ]
    verdict = check_calls(calls, Topics(), SEARCH_LIMIT, minimise=True)
    if verdict.status is Status.UNKNOWN:
        yield Anomaly("undecided", f"topics: {verdict.reason}")
    for anomaly in verdict.anomalies:
        yield Anomaly("topics-not-linearizable", anomaly.description, anomaly.operations)
