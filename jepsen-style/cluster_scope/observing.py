"""What a history says of the cluster beside what clients did: the partitions' leaders and ISR, as
the first node to apply a change has them, and the faults. Of a simulation that is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...metadata.image import NO_LEADER, PartitionImage
from ..clients import NEMESIS, OBSERVER, Journal
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
