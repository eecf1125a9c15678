"""One file of the journal: zero-filled beforehand, then written batch after batch (RULES E6).

    header: magic 8 | file number u64 | salt 8 | CRC-32C u32 | zeros up to 64
    batches, from position 64 on, each with the sequence number after that of its predecessor
    zeros

The header is written together with the first batch. A file without header is a spare.
"""

from __future__ import annotations

import struct

from ..seam import Disk, Fatal, File, frozen
from ..seam.checksum import crc32c
from .journal_records import BATCH_HEADER_SIZE, SALT_SIZE, encode_batch, parse_batch

HEADER_SIZE = 64
_HEADER = struct.Struct(f">8sQ{SALT_SIZE}s")
_CRC = struct.Struct(">I")
_MAGIC = b"LBJOURN\x01"
_NAME = "journal-{:016d}.log"


def segment_name(number: int) -> str:
    return _NAME.format(number)


def segment_number(name: str) -> int | None:
    """The number in a journal file's name; None for another file."""
    digits = name.removeprefix("journal-").removesuffix(".log")
    if digits.isdecimal() and segment_name(int(digits)) == name:
        return int(digits)
    return None


@frozen
class Scan:
    """What a file holds."""

    salt: bytes
    batches: list[tuple[int, bytes]]
    """Sequence and payload of each whole batch, in order."""
    end: int
    """Position behind the last whole batch."""
    torn: int
    """Bytes behind it that a torn write left."""


def scan(path: str, data: bytes, number: int, known_salt: bytes | None) -> Scan | None:
    """Read a file; None for a spare.

    Only the last write before a crash can be torn, since each is synced before the next begins.
    So something unreadable with a whole batch behind it is damage: raises Fatal with the offset.
    """
    salt = _read_header(path, data, number)
    if salt is None:
        if known_salt is not None:
            _refuse_batches_behind(path, data, 0, known_salt, first_sequence=None)
        return None
    if known_salt is not None and salt != known_salt:
        raise Fatal(f"{path}: offset 0: the file belongs to another journal")
    batches: list[tuple[int, bytes]] = []
    position = HEADER_SIZE
    while (batch := parse_batch(data, position, salt)) is not None:
        if batches and batch[0] != batches[-1][0] + 1:
            raise Fatal(
                f"{path}: offset {position}: batch {batch[0]} follows batch {batches[-1][0]}"
            )
        batches.append(batch)
        position += BATCH_HEADER_SIZE + len(batch[1])
    first_sequence = batches[-1][0] + 1 if batches else None
    _refuse_batches_behind(path, data, position, salt, first_sequence=first_sequence)
    return Scan(salt, batches, end=position, torn=len(data[position:].rstrip(b"\0")))


def _read_header(path: str, data: bytes, number: int) -> bytes | None:
    header = data[:HEADER_SIZE]
    if not header.strip(b"\0"):
        return None
    found = header[: _HEADER.size + _CRC.size]
    if len(found) == _HEADER.size + _CRC.size:
        magic, found_number, salt = _HEADER.unpack_from(found)
        (checksum,) = _CRC.unpack_from(found, _HEADER.size)
        if magic == _MAGIC and checksum == crc32c(found[: _HEADER.size]):
            if found_number != number:
                raise Fatal(f"{path}: offset 0: the file is journal file {found_number}, renamed")
            return bytes(salt)
    raise Fatal(f"{path}: offset 0: the header of the journal file is damaged")


def _refuse_batches_behind(
    path: str, data: bytes, position: int, salt: bytes, *, first_sequence: int | None
) -> None:
    """Raise Fatal if a whole batch stands behind unreadable bytes."""
    found = data.find(salt, position)
    while found >= 0:
        batch = parse_batch(data, found, salt) if found >= HEADER_SIZE else None
        # The very first batch of a file may have lost the header that was written with it.
        if batch is not None and (found > HEADER_SIZE or first_sequence is not None):
            raise Fatal(
                f"{path}: offset {position}: damaged; batch {batch[0]} at offset {found} is whole, "
                "so the damaged bytes had been synced before"
            )
        found = data.find(salt, found + 1)


class Segment:
    """A file that batches are written to."""

    def __init__(self, disk: Disk, path: str, number: int, salt: bytes) -> None:
        self.path = path
        self.number = number
        self.max_index = 0
        """Highest index of an entry that was ever written here."""
        self._disk = disk
        self._salt = salt
        self._file: File | None = None
        self._end = 0

    @property
    def end(self) -> int:
        return self._end

    @property
    def empty(self) -> bool:
        return self._end == 0

    def attach(self, file: File, end: int) -> None:
        """`file` holds whole batches up to `end`, then zeros."""
        self._file = file
        self._end = end

    def write(self, sequence: int, records: list[bytes]) -> None:
        """Put one batch behind the last one. It counts once `sync` has returned."""
        data = encode_batch(self._salt, sequence, records)
        if self.empty:
            fixed = _HEADER.pack(_MAGIC, self.number, self._salt)
            data = (fixed + _CRC.pack(crc32c(fixed))).ljust(HEADER_SIZE, b"\0") + data
        self._opened().write_at(self._end, data)
        self._end += len(data)

    def cut(self, size: int) -> None:
        """Zero `size` bytes behind the last batch, which a torn write left there."""
        self._opened().write_at(self._end, bytes(size))

    def rewrite(self) -> None:
        """Write what the file holds once more, as it is.

        After a failed sync the kernel takes the pages for clean: they read back, and the next sync
        passes them over (RULES C4).
        """
        file = self._opened()
        file.write_at(0, file.read_at(0, self._end))

    async def sync(self) -> None:
        await self._opened().sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        self.close()
        self._disk.remove(self.path)

    def _opened(self) -> File:
        if self._file is None:
            raise Fatal(f"{self.path} is used after it was closed")
        return self._file
