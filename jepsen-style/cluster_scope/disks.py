"""Which batches each node's disk holds, kept up to date write by write.

Read from the bytes with the clients' own codec: what the broker believes about its log is not
asked. Only whole batches with good checksums count that follow on each other, up to the first that
does not: a misdirected write may leave a whole one where another belongs.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple, Protocol

from ..clients.batches import Batch, scan
from ..simulation.cluster import DATA
from ..simulation.drive import DirectoryNode, DiskChange, Drive, FileNode

_SEGMENT = re.compile(rf"{DATA}/([^/]+-\d+)/(\d{{20}})\.log(?:\.swap)?")
"""What takes the place of a segment is of the log as soon as it is to be swapped."""
INTERNAL = "__"
_FOLDER = re.compile(rf"{DATA}(?:/[^/]+-\d+)?")

Key = str
"""A partition, as its folder and histories name it."""


class Held(NamedTuple):
    """One batch on one disk."""

    batch: Batch
    path: str


class End(NamedTuple):
    """Of what stands in a segment, batch after batch."""

    position: int
    offset: int
    """The next one due."""


class OnBatch(Protocol):
    """Told of what appears on a disk and of what is no longer there."""

    def appeared(self, node_id: int, key: Key, batch: Batch, data: bytes) -> None: ...

    def vanished(self, node_id: int, key: Key, batch: Batch) -> None: ...


class NodeDisk:
    """The partitions' segments on one drive."""

    def __init__(
        self, node_id: int, drive: Drive, on_batch: OnBatch, *, compacted: Collection[str] = ()
    ) -> None:
        """`compacted`: topics in whose logs there may be gaps."""
        self.node_id = node_id
        self._compacted = compacted
        self._on_batch = on_batch
        self._held: dict[Key, dict[int, Held]] = {}
        """By base offset."""
        self._files: dict[str, list[int]] = {}
        """Base offsets in each segment, as they follow each other."""
        self._ends: dict[str, End] = {}
        """By segment."""
        self.attach(drive)

    def attach(self, drive: Drive) -> None:
        """From now on this is the node's drive."""
        self._drive = drive
        drive.on_change = self._on_change
        self.look_again()

    def holds(self, key: Key, base_offset: int, name: tuple[int, int, int]) -> bool:
        held = self._held.get(key, {}).get(base_offset)
        return held is not None and held.batch.name == name

    def end(self, key: Key) -> int:
        """The next offset after the last batch, or where an empty log begins."""
        held = self._held.get(key)
        if held:
            return held[max(held)].batch.last_offset + 1
        return max((_base_of(path) for path in self._segments(key)), default=0)

    def hides_bytes(self, key: Key) -> bool:
        """Whether anything stands behind the last whole batch of a segment."""
        for path in self._segments(key):
            node = self._drive.find(path)
            if isinstance(node, FileNode) and len(node.cached) > self._end_of(path).position:
                return True
        return False

    def batches(self, key: Key) -> list[Batch]:
        return [held.batch for _, held in sorted(self._held.get(key, {}).items())]

    def folders(self) -> list[Key]:
        """Of partitions, whole or empty; not of those on their way out."""
        data = self._drive.find(DATA)
        entries = sorted(data.entries) if isinstance(data, DirectoryNode) else []
        return [name for name in entries if _FOLDER.fullmatch(f"{DATA}/{name}")]

    # Changes

    def _on_change(self, change: DiskChange) -> None:
        match = _SEGMENT.fullmatch(change.path)
        if change.renamed:
            # Checkpoints are renamed all the time; only what holds segments matters here.
            if match is not None:
                self._look_again_at(match[1])
            elif _FOLDER.fullmatch(change.path):
                self.look_again()
            return
        if match is None:
            return
        known = self._end_of(change.path).position
        if change.written and change.position >= known:
            self._read_on(match[1], change.path)
        elif change.written or change.position < known:
            self._read_again(match[1], change.path)

    def look_again(self) -> None:
        """At everything: power was lost, a disk was changed, names have moved."""
        for key in list(dict.fromkeys([*self._held, *self.folders()])):
            self._look_again_at(key)

    def _look_again_at(self, key: Key) -> None:
        before = self._held.pop(key, {})
        for path in [path for path in self._files if path.startswith(f"{DATA}/{key}/")]:
            del self._files[path]
            self._ends.pop(path, None)
        for path in self._segments(key):
            self._read_on(key, path)
        self._tell_vanished(key, before)

    def _read_again(self, key: Key, path: str) -> None:
        held = self._held.setdefault(key, {})
        before = {
            base: held.pop(base)
            for base in self._files.pop(path, [])
            if base in held and held[base].path == path
        }
        self._ends.pop(path, None)
        self._read_on(key, path)
        self._tell_vanished(key, before)

    def _read_on(self, key: Key, path: str) -> None:
        node = self._drive.find(path)
        if not isinstance(node, FileNode):
            return
        held = self._held.setdefault(key, {})
        bases = self._files.setdefault(path, [])
        end = self._end_of(path)
        # Cleaning leaves gaps, which only these topics have here.
        may_have_gaps = key.startswith(INTERNAL) or key.rpartition("-")[0] in self._compacted
        for batch in scan(node.cached, end.position):
            if batch.base_offset != end.offset and not (
                may_have_gaps and batch.base_offset > end.offset
            ):
                break
            end = End(batch.end, batch.last_offset + 1)
            held[batch.base_offset] = Held(batch, path)
            bases.append(batch.base_offset)
            data = bytes(node.cached[batch.position : batch.end])
            self._on_batch.appeared(self.node_id, key, batch, data)
        self._ends[path] = end

    def _end_of(self, path: str) -> End:
        """Of a segment; before anything of it was read, its beginning, as its name says."""
        return self._ends.get(path) or End(0, _base_of(path))

    def _tell_vanished(self, key: Key, before: dict[int, Held]) -> None:
        for base, held in before.items():
            if not self.holds(key, base, held.batch.name):
                self._on_batch.vanished(self.node_id, key, held.batch)

    def _segments(self, key: Key) -> list[str]:
        folder = self._drive.find(f"{DATA}/{key}")
        names = sorted(folder.entries) if isinstance(folder, DirectoryNode) else []
        paths = [f"{DATA}/{key}/{name}" for name in names]
        return [path for path in paths if _SEGMENT.fullmatch(path)]


def _base_of(path: str) -> int:
    """The offset at which a segment begins."""
    return int(path.rpartition("/")[2].partition(".")[0])
