"""Quorums that lack a guard, to show that the scope sees what the guard is good for."""

from __future__ import annotations

from collections.abc import Sequence

from ...raftlog.guards import (
    ALL_GUARDS,
    Backtracking,
    DurableFirst,
    Guard,
    GuardFactory,
    NoForwarding,
    NoNeedlessTruncation,
    OldSnapshots,
    PreVoting,
    SnapshotCommit,
    SnapshotSpin,
    TermOfAnswers,
)

BY_NUMBER: dict[str, type[Guard]] = {
    "G1": TermOfAnswers,
    "G2": SnapshotCommit,
    "G4": NoNeedlessTruncation,
    "G5": Backtracking,
    "G6": SnapshotSpin,
    "G7": NoForwarding,
    "G8": OldSnapshots,
    "G9": DurableFirst,
    "G10": PreVoting,
}
"""G3 became part of G1."""

TICK_S = 0.02
"""How often a bare engine is usually made to look at its election timer."""


class FixedTick(Guard):
    """Corrects nothing: the engine's election timer is looked at, as by anybody who uses it.

    The driver ticks from deadlines, and the deadline of an election is G10's. Without this, leaving
    out G10 would leave all voters to the driver's tick of one second, which they take in step.
    """

    name = "fixed tick"

    def next_due(self) -> float | None:
        return None if self.node.leading else self.node.now() + TICK_S


def guards_of(*, bare: bool = False, without: str | None = None) -> Sequence[type[Guard]]:
    """All guards, none, or all but one. Raises ValueError for a guard that does not exist."""
    if bare:
        return ()
    if without is None:
        return ALL_GUARDS
    if without not in BY_NUMBER:
        raise ValueError(f"no guard {without!r}, there are {', '.join(BY_NUMBER)}")
    return tuple(guard for guard in ALL_GUARDS if guard is not BY_NUMBER[without])


def ticking(guards: Sequence[type[Guard]]) -> Sequence[GuardFactory]:
    """The same guards, with a timer where G10's is missing."""
    return guards if PreVoting in guards else (*guards, FixedTick)
