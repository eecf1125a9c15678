"""What a foreground `up` shows on a terminal: the cluster as it is now, and what has happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ..failure import Failure
from .banner import banner
from .launch import RunningCluster
from .report import ClusterReport, look_at
from .state import ClusterState, load_state

EVENTS_SHOWN = 8
"""The newest; the rest of the screen is the banner's."""

ANSWER_SECONDS = 0.5
"""For a node that is looked at: one that sleeps must not keep Ctrl-C waiting."""


class LiveTable:
    """The same text as long as nothing changes, so that nothing need be painted again."""

    def __init__(self, cluster: RunningCluster, topics: Sequence[dict[str, Any]]) -> None:
        self._cluster = cluster
        self._topics = topics
        self._events: deque[str] = deque(maxlen=EVENTS_SHOWN)

    def note(self, sentence: str) -> None:
        """It stands below the table from the next look on."""
        self._events.append(sentence)

    def look(self) -> str:
        state = self._state()
        return self.text(state, look_at(self._cluster.folder, state, ANSWER_SECONDS))

    def text(self, state: ClusterState, report: ClusterReport) -> str:
        events = ["", *self._events] if self._events else []
        shown = banner(state, report, self._topics)
        return "\n".join([shown, *events, "", "Ctrl-C stops the cluster."])

    def _state(self) -> ClusterState:
        """With the nodes that somebody has started again."""
        try:
            return load_state(self._cluster.folder)
        except Failure:
            return self._cluster.state  # It is being purged.
