"""What a history says of the cluster beside what clients did: the partitions' leaders and ISR, as
the first node to apply a change has them, and the faults. Of a simulation that is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...metadata.image import NO_LEADER, PartitionImage
from ..clients import NEMESIS, OBSERVER, Journal
from ..clients.batches import NO_PRODUCER, Batch
from ..schedule import Fault
from .disks import Key


def observe_partition(
    journal: Journal, key: Key, before: PartitionImage | None, after: PartitionImage
) -> None:
    """A change came into force. A node that starts again makes the same image anew: no change."""
    if before == after:
        return
    epoch = after.leader_epoch
    if before is None or (epoch, after.leader) != (before.leader_epoch, before.leader):
        leader = None if after.leader == NO_LEADER else after.leader
        journal.observe(OBSERVER, "leader", {"key": key, "epoch": epoch, "leader": leader})
    seen = {
        "key": key,
        "epoch": epoch,
        "isr": list(after.isr),
        "elr": list(after.elr),
        "partition_epoch": after.partition_epoch,
    }
    journal.observe(OBSERVER, "isr", seen)


def observe_fault(journal: Journal, fault: Fault, role: str, nodes: Sequence[int]) -> None:
    seen = {"kind": fault.kind, "role": role, "node": nodes[0], "nodes": list(nodes)}
    journal.observe(NEMESIS, "fault", {**seen, "for_ms": fault.for_ms, **fault.options})


def observe_heal(journal: Journal, fault: Fault, role: str, nodes: Sequence[int]) -> None:
    seen = {"kind": fault.kind, "role": role, "node": nodes[0], "nodes": list(nodes)}
    journal.observe(NEMESIS, "heal", seen)


def observe_batches(journal: Journal, key: Key, log_start: int, batches: Sequence[Batch]) -> None:
    """What idempotent producers have in a partition in the end."""
    seen = [
        [
            batch.base_offset,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.last_offset - batch.base_offset + 1,
        ]
        for batch in batches
        if batch.producer_id != NO_PRODUCER
    ]
    journal.observe(OBSERVER, "batches", {"key": key, "log_start": log_start, "batches": seen})
