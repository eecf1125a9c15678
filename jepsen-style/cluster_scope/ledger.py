"""What was promised, who must keep it, and every breach in the moment in which it happens.

Invariants, whatever faults strike:

* **names** (RULES B1): (partition, leader epoch, offset) names one record for ever, on all disks;
* **one record per offset** (V3) among acknowledgements and consumers' reads;
* **lost** (V1): every member of ISR and ELR, living or dead, holds every record that was
  acknowledged or consumed. Stronger than that one of them does, and what D1 and D8 promise: any of
  them may be elected. A disk that a fault has damaged is excused until its node has left both and
  come back without the damaged bytes: while they stand there, nobody has read them yet. The same
  goes for a disk without power where a topic trusts the page cache; and once nobody without an
  excuse is left in ISR and ELR of such a topic's partition, its records are *given up*: that loss
  is outside the guarantee, and clients begin anew;
* **watermark** (D4): a replica's high watermark never goes back within its incarnation;
* **two leaders**: a leader epoch belongs to one incarnation of one node (B1);
* **start**: a log begins where its topic's retention or a client's order lets it (`log_starts`).

Of topics that are compacted less is promised, and it is looked at otherwise: `compacted`.

A batch whose write failed half-way and was taken back in the same turn of its node was never seen
by anybody, and its name is free again; should it come back from the dead, that is a breach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...metadata.image import ClusterImage, PartitionImage
from ..clients import TopicPartition
from ..clients.batches import VALUE_ENDS, Batch, name_of
from ..schedule.schedule import Retention
from .compacted import CompactedLogs
from .disks import Key, NodeDisk
from .log_starts import LogStarts

MAX_VIOLATIONS = 200

OnPartition = Callable[[Key, PartitionImage | None, PartitionImage], None]
"""Told of each change of a partition, in the order in which the quorum decided them."""

Name = tuple[int, int, int]
"""`Batch.name`."""


class Known(NamedTuple):
    """A batch that stands, or stood, on some disk."""

    batch: Batch
    data: bytes
    turn: int
    """In which it first appeared."""


class Gone(NamedTuple):
    """Committed offsets of a batch that is no longer on a disk where it should be."""

    node_id: int
    key: Key
    offsets: list[int]
    batch: Batch


def unheard(key: Key, before: PartitionImage | None, after: PartitionImage) -> None:
    """Nobody listens."""


OnStart = Callable[[Key, int], None]
"""Told of where a replica begins from now on, by its topic's retention."""


def unheard_start(key: Key, before: int) -> None:
    """Nobody listens."""


class Ledger:
    """See the module's docstring. `turn` numbers the turns of the world."""

    def __init__(
        self,
        turn: Callable[[], int],
        now: Callable[[], float],
        *,
        passing: Sequence[str] = (),
        cached: Sequence[str] = (),
        compacted: Sequence[str] = (),
        forgetful: Sequence[str] = (),
        retention: Mapping[str, Retention] | None = None,
    ) -> None:
        """`passing`: how topics are called that come and go. Names of records mean nothing over
        their lives, so their own clients judge them. `cached`: topics that trust the page cache.
        `compacted`, `forgetful`: see `CompactedLogs`; `retention`: see `LogStarts`."""
        self.violations: list[str] = []
        self.image: ClusterImage | None = None
        """The newest that any node has applied."""
        self.leader_changes = 0
        self.on_partition: OnPartition = unheard
        self.disks: dict[int, NodeDisk] = {}
        self.given_up: dict[Key, int] = {}
        """Partitions that have lost records outside the guarantee, or may have: of leader epochs up
        to this one."""
        self._passing = tuple(passing)
        self._cached = tuple(cached)
        self._turn = turn
        self._now = now
        self._names: dict[tuple[Key, int], dict[int, Known]] = {}
        """(partition, offset) -> by leader epoch."""
        self._committed: dict[Key, dict[int, Batch]] = {}
        """By offset of a record, the batch in which it was acknowledged or consumed."""
        self._gone: list[Gone] = []
        """What may have gone by retention: judged when the turn is over."""
        self._partitions: dict[Key, PartitionImage] = {}
        self._excused: dict[tuple[int, Key], bool] = {}
        """(node, partition) of a damaged disk -> whether it has left ISR and ELR since."""
        self._leaders: dict[tuple[Key, int], str] = {}
        self.on_start: OnStart = unheard_start
        self.starts = LogStarts(
            retention or {},
            disks=self.disks,
            batches_at=lambda key, offset: [
                known.batch for known in self._names.get((key, offset), {}).values()
            ],
        )
        self.compacted = CompactedLogs(
            compacted,
            forgetful=forgetful,
            violation=self.violation,
            members=self.members,
            disks=self.disks,
        )

    def violation(self, text: str) -> None:
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(f"{text} (at {self._now():.3f} s)")

    def _is_passing(self, key_or_topic: str) -> bool:
        return bool(self._passing) and key_or_topic.startswith(self._passing)

    # The image

    def on_image(self, image: ClusterImage) -> None:
        """Some node has applied it."""
        if self.image is not None and image.index <= self.image.index:
            return
        self.image = image
        for topic in image.topics.values():
            if self._is_passing(topic.name):
                continue
            for partition in topic.partitions:
                key = f"{topic.name}-{partition.partition}"
                before = self._partitions.get(key)
                if before is not partition:
                    self._partitions[key] = partition
                    self._on_partition(key, before, partition)

    def _on_partition(self, key: Key, before: PartitionImage | None, after: PartitionImage) -> None:
        self.on_partition(key, before, after)
        old = () if before is None else (*before.isr, *before.elr)
        if before is not None and self._is_cached(key):
            # Who enters by the very change that ends the last holder was elected, and copied none.
            stay = [node_id for node_id in self.members(key) if node_id in old]
            if not stay:
                self._give_up(key, before.leader_epoch)
        if before is not None and before.leader_epoch != after.leader_epoch:
            self.leader_changes += 1
        for node_id in self.disks:
            if node_id not in after.isr and node_id not in after.elr:
                if (node_id, key) in self._excused:
                    self._excused[node_id, key] = True
            elif node_id not in old:
                if self._excused.get((node_id, key)):
                    if self.disks[node_id].hides_bytes(key):
                        self._excused[node_id, key] = False
                    else:
                        del self._excused[node_id, key]
                self._check_holder(node_id, key)
        self._give_up_without_holder(key)

    def members(self, key: Key) -> tuple[int, ...]:
        """Those in ISR or ELR who have no excuse."""
        partition = self._partitions.get(key)
        if partition is None:
            return ()
        return tuple(
            node_id
            for node_id in (*partition.isr, *partition.elr)
            if (node_id, key) not in self._excused
        )

    def is_excused(self, node_id: int, key: Key) -> bool:
        """Its disk was damaged, and what it holds of the partition does not count now."""
        return (node_id, key) in self._excused

    def excuse(self, node_id: int) -> None:
        """A fault is about to take from this disk what was synced."""
        for key in self._partitions:
            self._excused[node_id, key] = False

    def lose_power(self, node_id: int) -> None:
        """A fault is about to take from this disk what was not synced."""
        for key in self._partitions:
            if self._is_cached(key):
                self._excused[node_id, key] = False
                self._give_up_without_holder(key)

    def _is_cached(self, key: Key) -> bool:
        return key.rpartition("-")[0] in self._cached

    def _give_up_without_holder(self, key: Key) -> None:
        """Every member without an excuse holds every record, so nobody does when there is none."""
        if self._is_cached(key) and not self.members(key):
            self._give_up(key, self._partitions[key].leader_epoch)

    def _give_up(self, key: Key, leader_epoch: int) -> None:
        self.given_up[key] = leader_epoch
        self._committed.pop(key, None)
        self.compacted.forget(key)

    def _check_holder(self, node_id: int, key: Key) -> None:
        if (node_id, key) in self._excused:
            return
        if self.compacted.has(key):
            self.compacted.changed(node_id, key)
            return
        disk = self.disks[node_id]
        for offset, batch in self._committed.get(key, {}).items():
            if not disk.holds(key, batch.base_offset, batch.name):
                self.violation(
                    f"lost: node {node_id} enters ISR or ELR of {key} without offset {offset}"
                )
                return

    # Promises (`clients.Witness`)

    def acknowledged(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        if self.compacted.has(partition.key):
            self._commit_keyed(partition.key, offset, name_of(value), "acknowledged")
            return
        self._commit(partition.key, offset, name_of(value).encode() + VALUE_ENDS, "acknowledged")

    def consumed(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        if self.compacted.has(partition.key):
            self._commit_keyed(partition.key, offset, name_of(value), "consumed")
            return
        self._commit(partition.key, offset, value, "consumed")

    def deleting(self, partition: TopicPartition, before: int) -> None:
        self._let_go(partition.key, before)

    def _let_go(self, key: Key, before: int) -> None:
        self.starts.allow(key, before)
        committed = self._committed.get(key, {})
        for offset in [offset for offset in committed if offset < before]:
            del committed[offset]

    def begins_at(
        self, node_id: int, key: Key, start: int, *, before: int | None, wall_ms: int
    ) -> None:
        """A replica's log begins there now, by what its node believes. `before`: where it began
        earlier in this incarnation."""
        if self._is_passing(key):
            return
        is_excused = self.is_excused(node_id, key) or key in self.given_up
        why = self.starts.why_not(node_id, key, start, wall_ms)
        if before is not None and start < before:
            why = f"before it began at {before}"
        if why is None:
            if start > self.start(key):
                self._let_go(key, start)
                self.on_start(key, start)
        elif not is_excused:
            self.violation(f"start: node {node_id} lets {key} begin at {start}: {why}")

    def may_begin_at(self, partition: TopicPartition) -> int:
        return self.start(partition.key)

    def start(self, key: Key) -> int:
        """Below, nothing is promised any more."""
        return self.starts.allowed(key)

    def may_end_before(self, partition: TopicPartition) -> bool:
        return partition.key in self.given_up

    def leads_in(self, partition: TopicPartition, node_id: int) -> int | None:
        image = self._partitions.get(partition.key)
        if image is None or image.leader != node_id or partition.key in self.given_up:
            return None
        return image.leader_epoch

    def _commit_keyed(self, key: Key, offset: int, name: str, how: str) -> None:
        if key not in self.given_up:
            self.compacted.commit(key, offset, name, how)
            self._give_up_without_holder(key)

    def _commit(self, key: Key, offset: int, value: bytes, how: str) -> None:
        committed = self._committed.setdefault(key, {})
        before = committed.get(offset)
        batch = self._find(key, offset, value, before)
        if batch is None:
            self.violation(f"one record: {key} at {offset} was {how} as {value[:30]!r}, not so")
            return
        if before is not None or offset < self.start(key):
            return
        if batch.leader_epoch <= self.given_up.get(key, -1):
            # The answer may have been under way for long.
            return
        committed[offset] = batch
        self._give_up_without_holder(key)
        for node_id in self.members(key):
            if not self.disks[node_id].holds(key, batch.base_offset, batch.name):
                self.violation(
                    f"lost: {key} at {offset} was {how}, and node {node_id} of its ISR or ELR "
                    "does not hold it"
                )

    def _find(self, key: Key, offset: int, value: bytes, before: Batch | None) -> Batch | None:
        """The batch with this record at this offset; the committed one, when there is one.

        A batch sent again may stand there in two epochs, where two leaders took it. Committed is
        then the one that the members hold. Where they do not, the younger one is missed: had the
        older been committed by then, a leader of the younger would not have written there.
        """
        found = [
            known.batch
            for _, known in sorted(self._names.get((key, offset), {}).items(), reverse=True)
            if value in known.data and (before is None or known.batch.name == before.name)
        ]
        for batch in found:
            if all(
                self.disks[node_id].holds(key, batch.base_offset, batch.name)
                for node_id in self.members(key)
            ):
                return batch
        return found[0] if found else None

    # Disks (`disks.OnBatch`)

    def appeared(self, node_id: int, key: Key, batch: Batch, data: bytes) -> None:
        if self._is_passing(key):
            return
        if self.compacted.has(key):
            self.compacted.appeared(node_id, key, batch, data)
            return
        for offset in range(batch.base_offset, batch.last_offset + 1):
            by_epoch = self._names.setdefault((key, offset), {})
            known = by_epoch.get(batch.leader_epoch)
            if known is None:
                by_epoch[batch.leader_epoch] = Known(batch, data, self._turn())
            elif (known.batch.crc, known.batch.base_offset) != (batch.crc, batch.base_offset):
                self.violation(
                    f"names: node {node_id} holds another record than was written as {key} epoch "
                    f"{batch.leader_epoch} offset {offset}"
                )
                return

    def vanished(self, node_id: int, key: Key, batch: Batch) -> None:
        if self.compacted.has(key):
            self.compacted.changed(node_id, key)
            return
        if self._was_never_seen(key, batch):
            return
        committed = self._committed.get(key, {})
        lost = [
            offset
            for offset in range(batch.base_offset, batch.last_offset + 1)
            if (known := committed.get(offset)) is not None and known.name == batch.name
        ]
        if lost and node_id in self.members(key):
            self._gone.append(Gone(node_id, key, lost, batch))
            if not self.starts.may_move(key):
                self._judge_gone()

    def turn_over(self) -> None:
        """Where logs begin now was told by then (`begins_at`)."""
        if self._gone:
            self._judge_gone()
        self.compacted.look()

    def _judge_gone(self) -> None:
        gone, self._gone = self._gone, []
        for node_id, key, offsets, batch in gone:
            start = self.start(key)
            lost = [offset for offset in offsets if offset >= start]
            if lost and not self.disks[node_id].holds(key, batch.base_offset, batch.name):
                self.violation(
                    f"lost: node {node_id}, in ISR or ELR of {key}, no longer holds offset "
                    f"{lost[0]}"
                )

    def _was_never_seen(self, key: Key, batch: Batch) -> bool:
        """A failed write was taken back in the turn in which it was made."""
        turn = self._turn()
        fresh = False
        for offset in range(batch.base_offset, batch.last_offset + 1):
            by_epoch = self._names.get((key, offset), {})
            known = by_epoch.get(batch.leader_epoch)
            if known is not None and known.turn == turn and known.batch.crc == batch.crc:
                del by_epoch[batch.leader_epoch]
                fresh = True
        return fresh

    # Leaders

    def leads(self, incarnation: str, key: Key, leader_epoch: int) -> None:
        if self._is_passing(key):
            return
        first = self._leaders.setdefault((key, leader_epoch), incarnation)
        if first != incarnation:
            self.violation(
                f"two leaders: {first} and {incarnation} both lead {key} in epoch {leader_epoch}"
            )

    # The end

    def partitions(self) -> Iterator[tuple[Key, PartitionImage]]:
        yield from sorted(self._partitions.items())

    def left_over(self) -> list[str]:
        """Folders of partitions that their node does not host (any more), and the reverse."""
        image = self.image
        if image is None:
            return []
        expected: dict[int, list[Key]] = {node_id: [] for node_id in self.disks}
        for topic in image.topics.values():
            for partition in topic.partitions:
                for node_id in partition.replicas:
                    expected[node_id].append(f"{topic.name}-{partition.partition}")
        return [
            f"node {node_id} has {disk.folders()}, not {sorted(expected[node_id])}"
            for node_id, disk in self.disks.items()
            if disk.folders() != sorted(expected[node_id])
        ]

    def check_everything(self) -> None:
        """Every member against every promise once more."""
        for key, partition in self._partitions.items():
            for node_id in (*partition.isr, *partition.elr):
                self._check_holder(node_id, key)
        self.compacted.look_at_all()
