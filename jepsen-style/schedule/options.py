"""Values that the options of a fault may take when a schedule is drawn; the first is the mildest.

Data, so that seeds and Hypothesis draw from the same. What stands twice is twice as likely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType

from .kinds import KEEPS, Option
from .schedule import CLASSIC, CONSUMER

_SELDOM = (False, False, True)
PRODUCE, FETCH, ALTER_PARTITION = 0, 1, 56
CLIENT_APIS = (PRODUCE, FETCH, 3, 22)
"""The others are Metadata and InitProducerId; followers fetch, too."""
CONTROLLER_APIS = (ALTER_PARTITION, 63)
"""And BrokerHeartbeat: what nodes ask of the active controller."""
GROUP_APIS = {CLASSIC: (8, 9, 11, 12, 14), CONSUMER: (8, 9, 68)}
"""OffsetCommit and OffsetFetch; JoinGroup, Heartbeat and SyncGroup, or ConsumerGroupHeartbeat: what
members ask of their coordinator, by the protocol of their group."""
OF_ONE_API = frozenset({"lost-responses", "lost-requests", "late-responses", "late-requests"})
"""Kinds that strike the frames of one API."""
_APIS = (*CLIENT_APIS, *CONTROLLER_APIS)
_LOST = {"silently": (False, True), "api": _APIS}
_LATE = {"by_ms": (300, 1_500, 4_000), "api": _APIS}
_PLACE = {
    "place": ("log", "index", "checkpoint", "quorum"),
    "where": tuple(round(0.001 * number, 3) for number in range(1_000)),
}

VALUES: Mapping[str, Mapping[str, Sequence[Option]]] = MappingProxyType(
    {
        "isolate": {"direction": ("in", "out", "both", "both"), "clients": _SELDOM},
        "halves": {"clients": _SELDOM},
        "delay": {"latency_ms": range(200), "jitter_ms": range(200)},
        "reorder": {"jitter_ms": (30, 300)},
        "loss": {"chance": (0.02, 0.1, 0.3)},
        "lost-responses": _LOST,
        "lost-requests": _LOST,
        "late-responses": _LATE,
        "late-requests": _LATE,
        "power-cut": {"keep": KEEPS[::-1]},
        "blackout": {"keep": KEEPS[::-1]},
        "failed-sync": {"after_syncs": range(10)},
        "write-error": {"after_writes": range(20)},
        "read-error": {"after_reads": range(20)},
        "full-disk": {"slack_bytes": (20_000, 700, 0)},
        "slow-disk": {"sync_ms": (30, 100, 400)},
        "bit-flip": {**_PLACE, "bit": range(8)},
        "misdirected-write": _PLACE,
        "stale-block": _PLACE,
        "clock-step": {"seconds": (5.0, -5.0, 3600.0, -3600.0)},
        "clock-skew": {"rate": (1.01, 0.99, 1.1, 0.9)},
    }
)
"""By kind and option; a kind that is missing has none to draw."""


def draw_options(dice: Random, kind: str) -> dict[str, Option]:
    return {name: dice.choice(values) for name, values in VALUES.get(kind, {}).items()}
