"""What every checker answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Status(Enum):
    """VALID and INVALID are proven; UNKNOWN says that the history cannot decide, and why."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that should not be, with the operations (indexes in the history) that show it."""

    kind: str
    description: str
    operations: tuple[int, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        where = f" (operations {', '.join(map(str, self.operations))})" if self.operations else ""
        return f"{self.kind}: {self.description}{where}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A status, the anomalies that fail it, and those only reported.

    `certificate` is whatever lets a reader verify a VALID without trusting the checker: for
    linearizability the operations in their order, each with its point.
    """

    status: Status
    anomalies: tuple[Anomaly, ...] = ()
    reported: tuple[Anomaly, ...] = ()
    reason: str = ""
    certificate: Any = None

    @property
    def kinds(self) -> frozenset[str]:
        """Every kind of anomaly seen, failing or not."""
        return frozenset(anomaly.kind for anomaly in (*self.anomalies, *self.reported))


def valid(certificate: Any = None, reported: tuple[Anomaly, ...] = ()) -> Verdict:
    return Verdict(Status.VALID, certificate=certificate, reported=reported)


def invalid(*anomalies: Anomaly, reported: tuple[Anomaly, ...] = ()) -> Verdict:
    return Verdict(
        Status.INVALID, anomalies, reported, reason=str(anomalies[0]) if anomalies else ""
    )


def judged(anomalies: list[Anomaly], reported: list[Anomaly] | None = None) -> Verdict:
    """INVALID when anything fails, else VALID."""
    if anomalies:
        return invalid(*anomalies, reported=tuple(reported or ()))
    return valid(reported=tuple(reported or ()))


def unknown(reason: str) -> Verdict:
    return Verdict(Status.UNKNOWN, reason=reason)
