"""The records of the quorum's journal and the batches they are written in. No I/O here.

Every operation on the log is one record. Records that were made between two syncs form a batch,
which is written, checked and (after a crash) believed or cut as a whole: what the engine does while
it handles one message is never half there.

    batch:  salt 8 | payload length u32 | CRC-32C u32 | sequence u64 | records
    record: kind u8 | fixed fields [| command]

The CRC covers length, sequence and records. The salt is drawn once per journal and nobody who sends
commands knows it, so the search for batches behind a torn one cannot be fooled by a command.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ..seam import frozen
from ..seam.checksum import crc32c

SALT_SIZE = 8
_HEAD = struct.Struct(f">{SALT_SIZE}sIIQ")
_CHECKED = struct.Struct(">IQ")
BATCH_HEADER_SIZE = _HEAD.size

NOBODY = -1
"""`voted_for` of a node that has not voted in its term."""

ANY_INDEX = 0
"""`next_index` of an emptied log: the next entry may have any index."""

_ENTRY = struct.Struct(">BQQI")
_TRUNCATE = struct.Struct(">BQ")
_COMPACT = struct.Struct(">BQ")
_TERM = struct.Struct(">BQq")
_COMMIT = struct.Struct(">BQ")
_CLEAR = struct.Struct(">B")
_CHECKPOINT = struct.Struct(">BQqQQQ")

KIND_ENTRY = 1
KIND_TRUNCATE = 2
KIND_COMPACT = 3
KIND_TERM = 4
KIND_COMMIT = 5
KIND_CLEAR = 6
KIND_CHECKPOINT = 7


@frozen
class Entry:
    """One command of the log, appended at the end."""

    index: int
    term: int
    command: bytes


@frozen
class Truncate:
    """Entries from this index on are gone: they conflicted with a leader's."""

    from_index: int


@frozen
class Compact:
    """Entries below this index are covered by a durable snapshot."""

    first_index: int


@frozen
class Term:
    """The current term, and the node that got this node's vote in it."""

    term: int
    voted_for: int


@frozen
class Commit:
    """A hint for the start: entries up to here were known to be committed."""

    index: int


@frozen
class Clear:
    """The log is emptied; entries that stand for a snapshot follow in the same batch."""


@frozen
class Checkpoint:
    """First record of each file: the state before it, so that older files can be removed."""

    term: int
    voted_for: int
    commit_index: int
    first_index: int
    next_index: int


Record = Entry | Truncate | Compact | Term | Commit | Clear | Checkpoint


class MalformedRecord(Exception):
    """A batch whose CRC is right holds something that this version cannot read."""


def encode_record(record: Record) -> bytes:
    match record:
        case Entry(index, term, command):
            return _ENTRY.pack(KIND_ENTRY, index, term, len(command)) + command
        case Truncate(from_index):
            return _TRUNCATE.pack(KIND_TRUNCATE, from_index)
        case Compact(first_index):
            return _COMPACT.pack(KIND_COMPACT, first_index)
        case Term(term, voted_for):
            return _TERM.pack(KIND_TERM, term, voted_for)
        case Commit(index):
            return _COMMIT.pack(KIND_COMMIT, index)
        case Clear():
            return _CLEAR.pack(KIND_CLEAR)
        case Checkpoint(term, voted_for, commit_index, first_index, next_index):
            return _CHECKPOINT.pack(
                KIND_CHECKPOINT, term, voted_for, commit_index, first_index, next_index
            )


def decode_records(payload: bytes) -> Iterator[Record]:
    """The records of one batch. Raises MalformedRecord."""
    position = 0
    try:
        while position < len(payload):
            kind = payload[position]
            if kind == KIND_ENTRY:
                _, index, term, length = _ENTRY.unpack_from(payload, position)
                position += _ENTRY.size
                command = payload[position : position + length]
                if len(command) != length:
                    raise MalformedRecord("command beyond the end of its batch")
                position += length
                yield Entry(index, term, command)
            elif kind == KIND_TRUNCATE:
                yield Truncate(_TRUNCATE.unpack_from(payload, position)[1])
                position += _TRUNCATE.size
            elif kind == KIND_COMPACT:
                yield Compact(_COMPACT.unpack_from(payload, position)[1])
                position += _COMPACT.size
            elif kind == KIND_TERM:
                yield Term(*_TERM.unpack_from(payload, position)[1:])
                position += _TERM.size
            elif kind == KIND_COMMIT:
                yield Commit(_COMMIT.unpack_from(payload, position)[1])
                position += _COMMIT.size
            elif kind == KIND_CLEAR:
                yield Clear()
                position += _CLEAR.size
            elif kind == KIND_CHECKPOINT:
                yield Checkpoint(*_CHECKPOINT.unpack_from(payload, position)[1:])
                position += _CHECKPOINT.size
            else:
                raise MalformedRecord(f"record of unknown kind {kind}")
    except struct.error as error:
        raise MalformedRecord(str(error)) from error


def encode_batch(salt: bytes, sequence: int, records: list[bytes]) -> bytes:
    payload = b"".join(records)
    checksum = crc32c(payload, crc32c(_CHECKED.pack(len(payload), sequence)))
    return _HEAD.pack(salt, len(payload), checksum, sequence) + payload


def parse_batch(data: bytes, position: int, salt: bytes) -> tuple[int, bytes] | None:
    """(sequence, payload) of the batch at `position`, or None when there is no whole one."""
    if position + _HEAD.size > len(data):
        return None
    found, length, checksum, sequence = _HEAD.unpack_from(data, position)
    start = position + _HEAD.size
    if found != salt or start + length > len(data):
        return None
    payload = data[start : start + length]
    if crc32c(payload, crc32c(_CHECKED.pack(length, sequence))) != checksum:
        return None
    return sequence, payload
