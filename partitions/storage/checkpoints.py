"""Kafka's checkpoint files: a version line, a count, then one line of numbers per entry.

Replaced by write to `<name>.tmp`, sync, rename, sync of the directory. Strict on reading: another
version, a malformed line or a wrong count is damage; an empty file reads as no entries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping
from itertools import islice

from ...seam import Disk, read_file, with_pauses, write_file_atomically

VERSION = 0

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"

LINES_AT_ONCE = 500
"""Read or written out in one turn of the loop (RULES F1)."""

TopicPartition = tuple[str, int]


class CheckpointDamaged(Exception):
    """The file is no checkpoint of a version we know."""


def encode_lines(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "\n".join([str(VERSION), str(len(entries)), *entries, ""]).encode()


def decode_lines(data: bytes) -> list[str]:
    """The entry lines; raises CheckpointDamaged."""
    if not data:
        return []
    try:
        lines = data.decode().splitlines()
        version, count = int(lines[0]), int(lines[1])
    except (UnicodeDecodeError, ValueError, IndexError) as error:
        raise CheckpointDamaged(f"no version and count: {error}") from None
    if version != VERSION:
        raise CheckpointDamaged(f"version {version}, known is {VERSION}")
    if len(lines) != count + 2:
        raise CheckpointDamaged(f"{len(lines) - 2} entries, {count} announced")
    return lines[2:]


def decode_offsets(data: bytes) -> Generator[None, None, dict[TopicPartition, int]]:
    """In steps. Raises CheckpointDamaged."""
    offsets: dict[TopicPartition, int] = {}
    for number, line in enumerate(decode_lines(data), start=1):
        fields = line.split(" ")
        try:
            topic, partition, offset = fields[0], int(fields[1]), int(fields[2])
        except (ValueError, IndexError):
            raise CheckpointDamaged(f"malformed line {line!r}") from None
        if len(fields) != 3:
            raise CheckpointDamaged(f"malformed line {line!r}")
        offsets[topic, partition] = offset
        if number % LINES_AT_ONCE == 0:
            yield
    return offsets


async def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """A missing file reads as no entries; raises CheckpointDamaged."""
    if not disk.exists(path):
        return {}
    return await with_pauses(decode_offsets(read_file(disk, path)))


async def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """As they are now. Durable when it returns."""
    entries = iter(dict(offsets).items())
    lines: list[str] = []
    while more := [
        f"{topic} {partition} {offset}"
        for (topic, partition), offset in islice(entries, LINES_AT_ONCE)
    ]:
        if lines:
            await asyncio.sleep(0)
        lines += more
    await write_file_atomically(disk, path, encode_lines(lines))
