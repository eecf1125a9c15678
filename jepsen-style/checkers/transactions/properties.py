"""Which anomalies an isolation level forbids.

Adya's levels by their forbidden phenomena; the *strong* ones also forbid cycles that need real
time. `G1` and what no level allows (a transaction that contradicts itself, values from nowhere)
are forbidden by all.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...history import HistoryError
from ..verdict import Anomaly, Verdict, judged

ALWAYS = frozenset(
    {"internal", "G1a", "G1b", "duplicate-elements", "incompatible-order", "garbage-read"}
)
DATA_CYCLES = frozenset({"G0", "G1c", "G-single", "G-nonadjacent", "G2-item"})
SNAPSHOT_CYCLES = DATA_CYCLES - {"G2-item"}

OWN_MODEL = "model"

PROPERTIES: Mapping[str, tuple[frozenset[str], bool]] = {
    "read-committed": (frozenset({"G0", "G1c"}), False),
    "snapshot-isolation": (SNAPSHOT_CYCLES, False),
    "serializable": (DATA_CYCLES, False),
    "strong-snapshot-isolation": (SNAPSHOT_CYCLES, True),
    "strict-serializable": (DATA_CYCLES, True),
}
"""Name: (classes of cycles forbidden, whether realtime and process edges count)."""


def property_named(description: str | None) -> str:
    """The level that leading words name; the model's own is strict-serializable, as Elle's."""
    if description is None or description.startswith("the model's own"):
        return "strict-serializable"
    for name in sorted(PROPERTIES, key=len, reverse=True):
        if description.startswith(name):
            return name
    raise HistoryError(f"unknown property {description!r}; known: {', '.join(PROPERTIES)}")


def forbids(property: str, kind: str) -> bool:
    cycles, real_time = PROPERTIES[property]
    if kind in ALWAYS:
        return True
    base = kind.removesuffix("-cycle-exists")
    base = {"PL-1": "G0", "PL-2": "G1c"}.get(base.removeprefix("strong-"), base)
    timed = base.endswith(("-realtime", "-process")) or kind.startswith("strong-")
    base = base.removesuffix("-realtime").removesuffix("-process")
    return base in cycles and (real_time or not timed)


def judge(found: list[Anomaly], property: str) -> Verdict:
    return judged(
        [anomaly for anomaly in found if forbids(property, anomaly.kind)],
        [anomaly for anomaly in found if not forbids(property, anomaly.kind)],
    )
