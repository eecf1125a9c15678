"""What observers saw of the cluster itself: leaders, replicas, batches, truncations.

Observations are events of processes that are no clients (`process` is a name), with `f` and a map
as `value`:

| f | value |
| --- | --- |
| `durability` | mode, and all that `promises` tells of; topic? (none: all) |
| `leader` | key, epoch, leader (from the quorum's log, in its order) |
| `isr` | key, epoch, isr, elr?, partition_epoch?, proposed? (see `ledger`) |
| `high-watermark` | key, node, incarnation, high_watermark |
| `batches` | key, log_start?, batches: [[base offset, producer id, epoch, first sequence, count]] |
| `replica` | key, node, log_start, high_watermark, batches: [[base offset, leader epoch, digest]] |
| `delete-records` | key, before (a client is about to ask for it) |
| `retention` | key, before (some replica begins there, as it may by what its topic keeps) |
| `truncate` | key, node, to, in_sync (whether the node was in ISR or ELR) |
| `group` | group, key (the partition that keeps the group's offsets and generations) |
| `group-done` | group, ends: {key: the offset that it has committed, at the end of the log} |
| `fault` | kind, node or nodes, keys? (none: all of the node's) |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...history import NEVER, History
from ..verdict import Anomaly
from .records import Records

Placed = tuple[int, Mapping[str, Any]]
NO_SEQUENCE = -1
SEQUENCES = 1 << 31


def observed(history: History, function: str) -> list[Placed]:
    """Observations of one sort, with the place of each in the history."""
    return [
        (place, event.get("value") or {})
        for place, event in history.observations
        if event.get("f") == function
    ]


def leader_epochs(history: History) -> Iterator[Anomaly]:
    """`two-leaders` in one epoch of a key; `epoch-went-back`; `isr-by-stale-epoch`."""
    leaders: dict[tuple[str, int], int] = {}
    highest: dict[str, int] = {}
    for place, event in history.observations:
        if event.get("f") not in ("leader", "isr"):
            continue
        seen = event.get("value") or {}
        if event["f"] == "isr":
            key, epoch = seen["key"], seen.get("epoch")
            if epoch is not None and epoch < highest.get(key, -1):
                text = f"the ISR of {key!r} was changed by the deposed epoch {epoch}"
                yield Anomaly("isr-by-stale-epoch", text, details={"key": key, "place": place})
            continue
        key, epoch, leader = seen["key"], seen["epoch"], seen["leader"]
        if epoch < highest.get(key, -1):
            text = f"leader epoch of {key!r} fell from {highest[key]} to {epoch}"
            yield Anomaly("epoch-went-back", text, details={"key": key, "place": place})
        highest[key] = max(epoch, highest.get(key, -1))
        if leader is None:
            continue
        first = leaders.setdefault((key, epoch), leader)
        if first != leader:
            text = f"{first} and {leader} both lead {key!r} in epoch {epoch}"
            yield Anomaly("two-leaders", text, details={"key": key, "place": place})


def high_watermarks(history: History) -> Iterator[Anomaly]:
    """`high-watermark-went-back` within one incarnation of a replica (RULES D4)."""
    highest: dict[tuple[Any, ...], int] = {}
    for place, seen in observed(history, "high-watermark"):
        replica = (seen["key"], seen["node"], seen.get("incarnation"))
        mark = seen["high_watermark"]
        if mark < highest.get(replica, -1):
            text = f"the high watermark of {replica} fell from {highest[replica]} to {mark}"
            yield Anomaly(
                "high-watermark-went-back", text, details={"key": seen["key"], "place": place}
            )
        highest[replica] = max(mark, highest.get(replica, -1))


def producer_sequences(history: History) -> Iterator[Anomaly]:
    """`sequence-gap` and `sequence-duplicate`: an idempotent producer's batches in a key's log
    follow each other without hole or repeat, from zero in each producer epoch, which never goes
    back (`producer-epoch-went-back`).
    """
    for _, seen in observed(history, "batches"):
        following: dict[tuple[int, int], int] = {}
        epochs: dict[int, int] = {}
        # Retention may have removed the first batches: then the first one seen begins anywhere.
        is_whole = seen.get("log_start") == 0
        for base, producer, epoch, first, count in sorted(seen["batches"]):
            if first == NO_SEQUENCE:
                continue
            if epoch < epochs.get(producer, epoch):
                yield Anomaly(
                    "producer-epoch-went-back",
                    f"producer {producer} at offset {base} of {seen['key']!r}: epoch {epoch} "
                    f"behind epoch {epochs[producer]}",
                    details={"key": seen["key"], "offset": base},
                )
            epochs[producer] = epoch
            wanted = following.get((producer, epoch), 0 if is_whole else first)
            if first != wanted:
                kind = "sequence-duplicate" if first < wanted else "sequence-gap"
                yield Anomaly(
                    kind,
                    f"producer {producer} epoch {epoch} at offset {base} of {seen['key']!r}: "
                    f"sequence {first} where {wanted} was due",
                    details={"key": seen["key"], "offset": base},
                )
            following[producer, epoch] = (first + count) % SEQUENCES


def replica_equality(history: History) -> Iterator[Anomaly]:
    """`replica-divergence`: at rest all replicas of a key hold equal batches from the largest log
    start to the smallest high watermark (RULES V4: batches, not files).
    """
    latest: dict[str, dict[int, Mapping[str, Any]]] = {}
    for _, seen in observed(history, "replica"):
        latest.setdefault(seen["key"], {})[seen["node"]] = seen
    for key, replicas in latest.items():
        start = max(replica["log_start"] for replica in replicas.values())
        end = min(replica["high_watermark"] for replica in replicas.values())
        reference: tuple[int, list[list[Any]]] | None = None
        for node, replica in sorted(replicas.items()):
            part = [batch for batch in replica["batches"] if start <= batch[0] < end]
            if reference is None:
                reference = (node, part)
            elif part != reference[1]:
                at = first_difference(reference[1], part)
                yield Anomaly(
                    "replica-divergence",
                    f"{key!r} differs between node {reference[0]} and {node} at offset {at}",
                    details={"key": key, "offset": at},
                )


def epoch_records(history: History, compacted: frozenset[str]) -> Iterator[Anomaly]:
    """`two-records-in-epoch`: (leader epoch, offset) names one record for ever, on all disks and
    whatever the faults (RULES B1, V3). Compaction rewrites batches, so such keys are left out.
    """
    names: dict[tuple[str, int, int], tuple[Any, int]] = {}
    for _, seen in observed(history, "replica"):
        if seen["key"] in compacted:
            continue
        for base, epoch, digest in seen["batches"]:
            first, node = names.setdefault((seen["key"], epoch, base), (digest, seen["node"]))
            if first != digest:
                yield Anomaly(
                    "two-records-in-epoch",
                    f"offset {base} of {seen['key']!r} in leader epoch {epoch} is {first!r} "
                    f"on node {node} and {digest!r} on node {seen['node']}",
                    details={"key": seen["key"], "offset": base},
                )


def missing_at_rest(records: Records) -> Iterator[Anomaly]:
    """`lost-at-rest`: acknowledged, perhaps even read, and above all that any replica holds in its
    last observation.
    """
    history = records.history
    ends: dict[str, dict[int, tuple[int, int]]] = {}
    for place, seen in observed(history, "replica"):
        ends.setdefault(seen["key"], {})[seen["node"]] = (seen["high_watermark"], place)
    for key, replicas in ends.items():
        log = records.keys.get(key)
        if log is None:
            continue
        end = max(mark for mark, _ in replicas.values())
        since = min(place for _, place in replicas.values())
        for value, offset in log.acked.items():
            if offset >= end and history.completed[log.writer[value]] < since:
                yield Anomaly(
                    "lost-at-rest",
                    f"{value!r} acknowledged at offset {offset} of {key!r}: "
                    f"the replicas end at {end}",
                    (log.writer[value],),
                    {"key": key, "offset": offset, "value": value},
                )


def first_difference(ours: list[list[Any]], theirs: list[list[Any]]) -> int:
    for mine, other in zip(ours, theirs, strict=False):
        if mine != other:
            return int(min(mine[0], other[0]))
    longer = ours if len(ours) > len(theirs) else theirs
    return int(longer[min(len(ours), len(theirs))][0])


def truncations(records: Records) -> Iterator[Anomaly]:
    """`truncated-acked-record`: a replica in ISR or ELR cut off an offset that a client had seen
    acknowledged by then (RULES V3).
    """
    history = records.history
    for place, seen in observed(history, "truncate"):
        log = records.keys.get(seen["key"])
        if log is None or not seen.get("in_sync", True):
            continue
        for value, offset in log.acked.items():
            operation = log.writer[value]
            done = history.completed[operation]
            if offset >= seen["to"] and done != NEVER and done < place:
                yield Anomaly(
                    "truncated-acked-record",
                    f"node {seen['node']} truncated {seen['key']!r} to {seen['to']}, "
                    f"offset {offset} was acknowledged",
                    (operation,),
                    {"key": seen["key"], "offset": offset, "place": place},
                )
                break
