"""Which brokers the active controller has heard lately (RULES B4).

Pure: told what happened and when, in seconds of the loop's time. Only the active controller has
sessions; a new one starts without any and grants the brokers it finds a short one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class _Session:
    broker_epoch: int
    deadline: float
    metadata_index: int
    """Highest index that the broker said its own image has reached; -1 before it spoke."""


class Sessions:
    """One session per broker; at most as many as there are registered brokers."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._sessions: dict[int, _Session] = {}

    def touch(self, node_id: int, broker_epoch: int, now: float, metadata_index: int = -1) -> None:
        """Heard from the broker: its session lasts a full time-out from now."""
        known = self._sessions.get(node_id)
        if known is not None and known.broker_epoch == broker_epoch:
            metadata_index = max(metadata_index, known.metadata_index)
        self._sessions[node_id] = _Session(broker_epoch, now + self._timeout, metadata_index)

    def grant(self, node_id: int, broker_epoch: int, until: float) -> None:
        """A session for a broker that has not spoken yet (change of controller)."""
        self._sessions[node_id] = _Session(broker_epoch, until, -1)

    def expire(self, node_id: int, now: float) -> None:
        """The broker is known to be dead: nobody listens where it did."""
        session = self._sessions.get(node_id)
        if session is not None:
            session.deadline = min(session.deadline, now)

    def end(self, node_id: int) -> None:
        """The broker is fenced for good or gone: nothing is left to expire."""
        self._sessions.pop(node_id, None)

    def forgive(self, seconds: float) -> None:
        """We were not listening for so long (a stalled loop): that silence was ours."""
        for session in self._sessions.values():
            session.deadline += seconds

    def lives(self, node_id: int, now: float) -> bool:
        session = self._sessions.get(node_id)
        return session is not None and session.deadline > now

    def expired(self, now: float) -> list[tuple[int, int]]:
        """(node id, broker epoch) of each that has been silent too long, by node id."""
        return [
            (node_id, session.broker_epoch)
            for node_id, session in sorted(self._sessions.items())
            if session.deadline <= now
        ]

    def next_deadline(self) -> float | None:
        return min((session.deadline for session in self._sessions.values()), default=None)

    def metadata_index(self, node_id: int) -> int:
        session = self._sessions.get(node_id)
        return -1 if session is None else session.metadata_index
