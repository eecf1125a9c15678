"""Snapshots of the state machine: their format, and the few that are kept on disk.

    magic 8 | index u64 | term u64 | previous term u64 | command length u32 | state length u64
    | CRC-32C u32 | command | state

The CRC covers everything but itself. `command` is the log entry at `index`: the engine keeps that
entry at the head of its log and may send it on, so it must be the real one. A snapshot is written
under a temporary name, synced, renamed, and the directory synced: a file with a snapshot's name is
whole, or the disk has damaged it, and then the process ends rather than serve half a state.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Sequence

from ..seam import Buffer, Disk, Fatal, frozen, offload, read_file
from ..seam.checksum import crc32c

logger = logging.getLogger(__name__)

_MAGIC = b"LBSNAP\x00\x01"
_FIELDS = struct.Struct(">8sQQQIQ")
_CRC = struct.Struct(">I")
HEADER_SIZE = _FIELDS.size + _CRC.size
_TEMPORARY = ".tmp"
_WRITE_BYTES = 1 << 20


class BrokenSnapshot(Exception):
    """The bytes are not a whole snapshot."""


@frozen
class SnapshotId:
    """What a snapshot holds: everything up to `index`, whose entry has `term`."""

    index: int
    term: int

    @property
    def file_name(self) -> str:
        return f"snapshot-{self.index:016d}-{self.term:016d}.bin"

    @classmethod
    def from_file_name(cls, name: str) -> SnapshotId | None:
        parts = name.removesuffix(".bin").split("-")
        if len(parts) == 3 and parts[1].isdecimal() and parts[2].isdecimal():
            found = cls(int(parts[1]), int(parts[2]))
            if found.file_name == name:
                return found
        return None


@frozen
class Snapshot:
    """A decoded snapshot."""

    id: SnapshotId
    previous_term: int
    command: bytes
    state: bytes


def encode_snapshot(snapshot: Snapshot) -> list[Buffer]:
    fields = _FIELDS.pack(
        _MAGIC,
        snapshot.id.index,
        snapshot.id.term,
        snapshot.previous_term,
        len(snapshot.command),
        len(snapshot.state),
    )
    checksum = crc32c(snapshot.state, crc32c(snapshot.command, crc32c(fields)))
    return [fields + _CRC.pack(checksum) + snapshot.command, snapshot.state]


def decode_snapshot(data: Buffer) -> Snapshot:
    """Raises BrokenSnapshot."""
    id, previous_term, command_length = _check(data)
    view = memoryview(data)
    command = bytes(view[HEADER_SIZE : HEADER_SIZE + command_length])
    state = bytes(view[HEADER_SIZE + command_length :])
    return Snapshot(id, previous_term, command, state)


def _check(data: Buffer) -> tuple[SnapshotId, int, int]:
    """(id, previous term, command length) of a whole snapshot. Raises BrokenSnapshot."""
    if len(data) < HEADER_SIZE:
        raise BrokenSnapshot(f"{len(data)} bytes are too few")
    magic, index, term, previous_term, command_length, state_length = _FIELDS.unpack_from(data)
    if magic != _MAGIC:
        raise BrokenSnapshot("offset 0: not a snapshot")
    if len(data) != HEADER_SIZE + command_length + state_length:
        raise BrokenSnapshot(
            f"{len(data)} bytes where {HEADER_SIZE + command_length + state_length} are due"
        )
    (checksum,) = _CRC.unpack_from(data, _FIELDS.size)
    view = memoryview(data)
    if crc32c(view[HEADER_SIZE:], crc32c(view[: _FIELDS.size])) != checksum:
        raise BrokenSnapshot(f"wrong CRC over {len(data)} bytes")
    return SnapshotId(index, term), previous_term, command_length


async def check_received(announced: SnapshotId, data: Buffer) -> Snapshot:
    """What a peer has sent in pieces, decoded beside the loop.

    Raises Fatal when it is broken or another one than was announced: rather none than half.
    """
    try:
        snapshot = await offload(lambda: decode_snapshot(data))
    except BrokenSnapshot as error:
        raise Fatal(f"broken snapshot received: {error}") from error
    if snapshot.id != announced:
        raise Fatal(f"broken snapshot received: announced as {announced}, holds {snapshot.id}")
    return snapshot


class SnapshotStore:
    """The snapshots in one directory, newest last."""

    def __init__(self, disk: Disk, directory: str, *, kept: int) -> None:
        self._disk = disk
        self._directory = directory
        self._kept = max(1, kept)
        self._ids: list[SnapshotId] = []
        self._installing = asyncio.Lock()

    def open(self) -> None:
        """Find the snapshots; what an interrupted write left behind is removed."""
        self._disk.make_dirs(self._directory)
        self._ids = []
        for name in self._disk.list(self._directory):
            found = SnapshotId.from_file_name(name)
            if found is not None:
                self._ids.append(found)
            elif name.startswith("snapshot-") and name.endswith(_TEMPORARY):
                self._disk.remove(f"{self._directory}/{name}")
        self._ids.sort(key=lambda id: (id.index, id.term))

    @property
    def latest(self) -> SnapshotId | None:
        return self._ids[-1] if self._ids else None

    def load(self, id: SnapshotId) -> Snapshot:
        """Read and check a snapshot. Raises Fatal with the file's name when it is broken."""
        return decode_snapshot(self._read(id))

    async def read_bytes(self, id: SnapshotId) -> bytes:
        """The file as it is, checked, to be sent to a follower or an observer.

        Raises Fatal for a broken one: it would end every process that receives it, and this one
        could not start again.
        """
        return await offload(lambda: self._read(id))

    def _read(self, id: SnapshotId) -> bytes:
        path = self._path(id)
        data = bytes(read_file(self._disk, path))
        try:
            found, _, _ = _check(data)
        except BrokenSnapshot as error:
            raise Fatal(f"{path}: broken snapshot: {error}") from error
        if found != id:
            raise Fatal(f"{path}: broken snapshot: it holds {found}")
        return data

    async def install(self, id: SnapshotId, parts: Sequence[Buffer]) -> None:
        """Make the encoded snapshot durable under its name, then remove the oldest ones.

        Raises OSError when the disk is full; nothing has changed then.
        """
        async with self._installing:
            if id in self._ids:
                return
            path = self._path(id)
            temporary = path + _TEMPORARY
            file = self._disk.open(temporary, create=True)
            try:
                file.truncate(0)
                for part in parts:
                    view = memoryview(part)
                    for start in range(0, len(view), _WRITE_BYTES):
                        file.append([view[start : start + _WRITE_BYTES]])
                        # A large state is written in slices, so that the loop stays responsive.
                        await asyncio.sleep(0)
                await file.sync()
            finally:
                file.close()
            self._disk.rename(temporary, path)
            await self._disk.sync_dir(self._directory)
            self._ids.append(id)
            self._ids.sort(key=lambda id: (id.index, id.term))
            while len(self._ids) > self._kept:
                self._remove(self._ids.pop(0))

    def _remove(self, id: SnapshotId) -> None:
        try:
            self._disk.remove(self._path(id))
        except OSError as error:
            logger.warning("an old snapshot could not be removed: %s", error)

    def _path(self, id: SnapshotId) -> str:
        return f"{self._directory}/{id.file_name}"
