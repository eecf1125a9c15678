"""What was done to processes of this machine, in a file of the cluster's folder: a node that was
killed cannot tell."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import Any

from ..cluster.folder import ClusterFolder

MOST_KEPT = 500
"""Older ones are forgotten, now and then."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One fault of one node. Times are milliseconds since 1970."""

    at_ms: int
    until_ms: int | None
    """None: nobody said."""
    node: int
    fault: str
    other: int | None
    amount: str | None
    by: str


def note(folder: ClusterFolder, node_id: int, fault: str, for_s: float | None, by: str) -> None:
    """This happens to the process now. A folder that cannot be written is no reason not to."""
    now_ms = time.time_ns() // 1_000_000
    until_ms = None if for_s is None else now_ms + round(for_s * 1000)
    entry = Entry(now_ms, until_ms, node_id, fault, None, None, by)
    try:
        kept = recorded(folder)
        full = len(kept) >= 2 * MOST_KEPT
        with open(folder.chaos_history, "w" if full else "a", encoding="utf-8") as file:
            lines = [*kept[-MOST_KEPT:], entry] if full else [entry]
            file.writelines(json.dumps(asdict(one)) + "\n" for one in lines)
    except OSError:
        return


def recorded(folder: ClusterFolder) -> list[Entry]:
    """In the order in which it happened."""
    try:
        with open(folder.chaos_history, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    except OSError:
        return []
    return [entry for line in lines if (entry := _entry(line)) is not None]


def of_node(node_id: int, told: dict[str, Any]) -> Entry:
    """What a node's own history says."""
    return Entry(
        told["at_ms"],
        told["until_ms"],
        node_id,
        told["kind"],
        told["node"],
        told["amount"],
        told["by"],
    )


def _entry(line: str) -> Entry | None:
    """None: it is torn, or of another version."""
    try:
        entry = Entry(**json.loads(line))
    except (ValueError, TypeError):
        return None
    numbers = (entry.at_ms, entry.node, 0 if entry.until_ms is None else entry.until_ms)
    return entry if all(type(number) is int for number in numbers) else None
