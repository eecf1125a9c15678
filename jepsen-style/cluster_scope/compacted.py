"""What is promised of topics that are compacted, record by record: cleaning rewrites batches.

* **names** (RULES B1): (partition, leader epoch, offset) names one record for ever, on all disks;
* **one record per offset** among acknowledgements and consumers' reads: offsets never change;
* **last of its key**: every member of ISR and ELR holds the last record that was committed of each
  key, or a later one of that key. Then the others may be gone, and no older value comes back. A
  tombstone may go as well, once `delete.retention.ms` is over.

Looked at between turns: amid one, a segment and what it was cleaned to may both be without a name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from ..clients.batches import Batch, Keyed, keyed_of
from .disks import Key, NodeDisk

MAX_OFFSET = 1 << 62


class Placed(NamedTuple):
    offset: int
    record: Keyed


class CompactedLogs:
    def __init__(
        self,
        topics: Collection[str],
        *,
        forgetful: Collection[str],
        violation: Callable[[str], None],
        members: Callable[[Key], Sequence[int]],
        disks: Mapping[int, NodeDisk],
    ) -> None:
        """`forgetful`: those of the topics whose tombstones go within a run."""
        self._topics = topics
        self._forgetful = forgetful
        self._violation = violation
        self._members = members
        self._disks = disks
        self._records: dict[tuple[Key, Batch], list[Placed]] = {}
        """Of each batch that ever stood on some disk, wherever in its file."""
        self._names: dict[tuple[Key, int], dict[int, Keyed]] = {}
        """(partition, offset) -> by leader epoch."""
        self._committed: dict[tuple[Key, int], str] = {}
        """(partition, offset) -> the record's name."""
        self._last: dict[Key, dict[str, Placed]] = {}
        """By partition and key: the last one that was committed."""
        self._changed: dict[tuple[int, Key], None] = {}
        """What is to be looked at when the turn is over."""

    def has(self, key: Key) -> bool:
        return bool(self._topics) and key.rpartition("-")[0] in self._topics

    def forget(self, key: Key) -> None:
        """The partition was given up: begin anew."""
        self._last.pop(key, None)
        for placed in [placed for placed in self._committed if placed[0] == key]:
            del self._committed[placed]

    def changed(self, node_id: int, key: Key) -> None:
        """On this disk, or who counts on it."""
        self._changed[node_id, key] = None

    def appeared(self, node_id: int, key: Key, batch: Batch, data: bytes) -> None:
        self.changed(node_id, key)
        if (key, _anywhere(batch)) in self._records:
            return
        placed = [Placed(offset, record) for offset, record in keyed_of(data)]
        self._records[key, _anywhere(batch)] = placed
        for offset, record in placed:
            by_epoch = self._names.setdefault((key, offset), {})
            known = by_epoch.setdefault(batch.leader_epoch, record)
            if known != record:
                self._violation(
                    f"names: node {node_id} holds {record.name} where {known.name} was written as "
                    f"{key} epoch {batch.leader_epoch} offset {offset}"
                )

    def commit(self, key: Key, offset: int, name: str, how: str) -> None:
        before = self._committed.setdefault((key, offset), name)
        known = self._names.get((key, offset), {}).values()
        record = next((record for record in known if record.name == name), None)
        if before != name or record is None:
            self._violation(f"one record: {key} at {offset} was {how} as {name!r}, not so")
            return
        last = self._last.setdefault(key, {})
        if record.key not in last or last[record.key].offset < offset:
            last[record.key] = Placed(offset, record)
            for node_id in self._members(key):
                self.changed(node_id, key)

    def look(self) -> None:
        """A turn is over: whoever changed, and is counted on, must hold what is promised."""
        if self._changed:
            changed, self._changed = self._changed, {}
            for node_id, key in changed:
                if node_id in self._members(key):
                    self._look_at(node_id, key)

    def look_at_all(self) -> None:
        for key in self._last:
            for node_id in self._members(key):
                self._look_at(node_id, key)

    def _look_at(self, node_id: int, key: Key) -> None:
        here = self.last(node_id, key)
        for record_key, (offset, record) in self._last.get(key, {}).items():
            found = here.get(record_key)
            if found is not None and (found.offset > offset or found == (offset, record)):
                continue
            if record.value is None and found is None and self._is_forgetful(key):
                continue
            held = "nothing" if found is None else f"{found.record.name} at {found.offset}"
            self._violation(
                f"lost: node {node_id}, in ISR or ELR of {key}, holds {held} as the last of "
                f"{record_key}, not {record.name} at {offset}"
            )
            return

    def last(self, node_id: int, key: Key, below: int = MAX_OFFSET) -> dict[str, Placed]:
        """By key of the records on this disk: the last one that lies `below`."""
        found: dict[str, Placed] = {}
        for batch in self._disks[node_id].batches(key):
            for placed in self._records[key, _anywhere(batch)]:
                if placed.offset < below:
                    found[placed.record.key] = placed
        return found

    def _is_forgetful(self, key: Key) -> bool:
        return key.rpartition("-")[0] in self._forgetful


def _anywhere(batch: Batch) -> Batch:
    return batch._replace(position=0, end=batch.size)
