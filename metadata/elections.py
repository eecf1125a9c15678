"""Who is in sync, who is eligible, who leads: Kafka's rules with KIP-966 (RULES D8).

Everything that changes a partition's ISR or leader goes through `change_partition`; its arguments
say what happened, the rules below say what follows.

* **Election order**: the ISR; then the ELR (both clean); then, when both are empty, the last known
  leader, which counts as unclean; then any acceptable replica if the topic allows that; else no
  leader. Candidates are tried in the order of the replica list, so the preferred leader comes
  first. *Acceptable* is a replica that lives: registered, not fenced, not shutting down.
* **A valid sitting leader is never replaced**: one that is acceptable and in the ISR.
* **ELR** (eligible leader replicas): while the ISR has at least min(`min.insync.replicas`,
  replication factor) members, there is none. Below, whoever leaves the ISR stays eligible, because
  the high watermark stands still (D1): the new ELR is old ELR + old ISR, less the new ISR, less
  those that lost data. The ISR may so become empty.
* **Epochs**: any change of leader, also to or from nobody, grows the leader epoch by one; any
  change at all grows the partition epoch by one.

Example: replicas 1,2,3, min.insync.replicas 2. Broker 3 dies: ISR 1,2, ELR empty. Broker 2 dies:
ISR 1, ELR 2. Broker 1, the leader, dies: ISR empty, ELR 1,2, no leader; the watermark cannot have
moved since 2 left, so whichever of both comes back first may lead and has every committed record.
"""

from __future__ import annotations

from collections.abc import Callable

from ..seam import frozen
from .image import NO_LEADER, PartitionImage


@frozen
class ElectionRules:
    """What the partition's topic and the living brokers say."""

    acceptable: Callable[[int], bool]
    """May this broker lead now?"""
    min_insync_replicas: int
    unclean_allowed: bool


def change_partition(
    partition: PartitionImage,
    rules: ElectionRules,
    *,
    isr: tuple[int, ...] | None = None,
    lost_data: int | None = None,
    lost_disk: bool = False,
    prefer: bool = False,
) -> PartitionImage:
    """The partition after an event; the same object when nothing changes.

    `isr`: the in-sync replicas from now on; None keeps them.
    `lost_data`: a replica that may lack committed records: it leaves ISR and ELR. It must not be
    acceptable, for its restart is what tells of the loss.
    `lost_disk`: that replica's disk is empty, so it is nobody's last known leader either: electing
    an empty log without a word would truncate what others still hold.
    `prefer`: move the leadership to the preferred leader if that is clean.
    """
    kept = partition.isr if isr is None else isr
    # Runs for every partition of a dying broker in one command: lists of three, no generators.
    target_isr = tuple([r for r in partition.replicas if r in kept and r != lost_data])
    minimum = min_isr(partition, rules)
    eligible = _eligible(partition, minimum, target_isr, lost_data)
    last_known_leader = partition.last_known_leader
    if lost_disk and last_known_leader == lost_data:
        last_known_leader = NO_LEADER

    leader, unclean = _elect(partition, rules, target_isr, eligible, last_known_leader, prefer)
    if leader != NO_LEADER and (unclean or leader not in target_isr):
        # The new leader's log is the truth from now on, and nobody else is known to match it.
        target_isr = (leader,)
        eligible = _eligible(partition, minimum, target_isr, lost_data)

    if leader != NO_LEADER:
        last_known_leader = NO_LEADER
    elif partition.leader != NO_LEADER and not (lost_disk and partition.leader == lost_data):
        last_known_leader = partition.leader
    last_known_elr = _last_known_elr(partition, minimum, target_isr, eligible)

    if (
        leader == partition.leader
        and target_isr == partition.isr
        and eligible == partition.elr
        and last_known_elr == partition.last_known_elr
        and last_known_leader == partition.last_known_leader
    ):
        return partition
    return _with(partition, leader, target_isr, eligible, last_known_elr, last_known_leader)


def _with(
    partition: PartitionImage,
    leader: int,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    last_known_elr: tuple[int, ...],
    last_known_leader: int,
) -> PartitionImage:
    """Something of this is new, so the epochs grow."""
    # Field by field: `replace` costs several times as much, ten thousand times over.
    return PartitionImage(
        partition.partition,
        partition.replicas,
        isr,
        leader,
        partition.leader_epoch + (leader != partition.leader),
        partition.partition_epoch + 1,
        elr,
        last_known_elr,
        last_known_leader,
        partition.adding_replicas,
        partition.removing_replicas,
    )


class Alike:
    """One event for many partitions: what is alike is decided once.

    The ten thousand partitions of a broker that dies differ in their epochs, and have a few dozen
    sets of replicas, ISR, ELR and leader between them; the rest of the rules is their topics'.
    """

    def __init__(self, change: Callable[[PartitionImage], PartitionImage]) -> None:
        """`change`: the event, by `change_partition` with the same arguments for all of them."""
        self._change = change
        self._decided: dict[tuple[object, ...], PartitionImage | None] = {}
        """By what a partition was, one that it came to; None: it stays as it is."""

    def change(self, partition: PartitionImage) -> PartitionImage:
        before = (
            partition.replicas,
            partition.isr,
            partition.leader,
            partition.elr,
            partition.last_known_elr,
            partition.last_known_leader,
        )
        if before not in self._decided:
            after = self._change(partition)
            self._decided[before] = None if after is partition else after
            return after
        like = self._decided[before]
        if like is None:
            return partition
        return _with(
            partition, like.leader, like.isr, like.elr, like.last_known_elr, like.last_known_leader
        )


def min_isr(partition: PartitionImage, rules: ElectionRules) -> int:
    """More than all replicas cannot be asked for (RULES D1)."""
    return min(rules.min_insync_replicas, len(partition.replicas))


def _eligible(
    partition: PartitionImage,
    minimum: int,
    target_isr: tuple[int, ...],
    lost_data: int | None,
) -> tuple[int, ...]:
    if len(target_isr) >= minimum:
        return ()
    candidates = partition.elr + partition.isr
    return tuple(
        [
            replica
            for replica in partition.replicas
            if replica in candidates and replica not in target_isr and replica != lost_data
        ]
    )


def _last_known_elr(
    partition: PartitionImage,
    minimum: int,
    target_isr: tuple[int, ...],
    eligible: tuple[int, ...],
) -> tuple[int, ...]:
    """Who was eligible and lost data since the ISR fell below its minimum; for people only."""
    if len(target_isr) >= minimum:
        return ()
    candidates = partition.last_known_elr + partition.elr + partition.isr
    present = target_isr + eligible
    return tuple(
        [
            replica
            for replica in partition.replicas
            if replica in candidates and replica not in present
        ]
    )


def _elect(
    partition: PartitionImage,
    rules: ElectionRules,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    last_known_leader: int,
    prefer: bool,
) -> tuple[int, bool]:
    """The leader from now on (or NO_LEADER), and whether it may lack committed records."""
    sitting = partition.leader
    if prefer and partition.replicas[0] in isr and rules.acceptable(partition.replicas[0]):
        return partition.replicas[0], False
    if sitting in isr and rules.acceptable(sitting):
        return sitting, False
    for clean in (isr, elr):
        for replica in partition.replicas:
            if replica in clean and rules.acceptable(replica):
                return replica, False
    if not isr and not elr and last_known_leader != NO_LEADER:
        known = last_known_leader
        if known in partition.replicas and rules.acceptable(known):
            return known, True
    if rules.unclean_allowed:
        for replica in partition.replicas:
            if rules.acceptable(replica):
                return replica, True
    return NO_LEADER, False
