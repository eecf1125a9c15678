"""Record batches in the files of a data directory, read without any of the broker's code.

What checks the broker must not share its mistakes: this knows Kafka's batch header and CRC and
nothing else.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import crc32c

_HEADER = struct.Struct(">qiibIhi")
"""Base offset, length of what follows, leader epoch, magic, CRC, attributes, last offset delta."""

_BEFORE_LENGTH_COUNTS = 12
_CRC_COVERS_FROM = 21
_SMALLEST = 61


class DamagedLog(Exception):
    """A file does not hold whole batches with right checksums; the message says where."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """One batch, and where it lies."""

    file: str
    position: int
    """First byte in the file."""
    base_offset: int
    next_offset: int
    leader_epoch: int
    content: bytes
    """Header included."""


def partition_folder(data_dir: str, topic: str, partition: int) -> str:
    return os.path.join(data_dir, f"{topic}-{partition}")


def segment_files(folder: str) -> list[str]:
    """The `.log` files in order of their base offsets."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".log"))
    return [os.path.join(folder, name) for name in names]


def stored_batches(folder: str) -> Iterator[StoredBatch]:
    """All batches of a partition folder in order. Raises DamagedLog."""
    for path in segment_files(folder):
        with open(path, "rb") as file:
            yield from _batches_of(path, file.read())


def _batches_of(path: str, data: bytes) -> Iterator[StoredBatch]:
    position = 0
    while position < len(data):
        if not any(data[position : position + _SMALLEST]):
            return  # preallocated, not written yet
        if position + _SMALLEST > len(data):
            raise DamagedLog(f"{path}: {len(data) - position} bytes at byte {position}")
        base_offset, length, epoch, magic, crc, _, last_delta = _HEADER.unpack_from(data, position)
        end = position + _BEFORE_LENGTH_COUNTS + length
        content = data[position:end]
        if magic != 2 or length < _SMALLEST - _BEFORE_LENGTH_COUNTS or end > len(data):
            raise DamagedLog(f"{path}: no whole batch at byte {position}")
        if crc32c.crc32c(content[_CRC_COVERS_FROM:]) != crc:
            raise DamagedLog(f"{path}: wrong checksum at byte {position}")
        next_offset = base_offset + last_delta + 1
        yield StoredBatch(path, position, base_offset, next_offset, epoch, content)
        position = end
