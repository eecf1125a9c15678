"""Reading a journal back after any crash.

A file is *used* when it holds a whole batch, else it is a spare. Only the last write can be torn,
so it is in the newest used file, or it is the first batch of the spare behind it. Of the used files
the newest gapless run counts: a gap before it is left by a removal of old files of which the crash
kept only a part, and the run must then stand alone. Nothing on the disk is changed before all of it
was found in order.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..seam import Disk, Fatal, File, frozen
from .journal_records import Checkpoint, Entry, MalformedRecord, decode_records
from .journal_state import JournalState
from .segment import Scan, Segment, scan, segment_name, segment_number

logger = logging.getLogger(__name__)


@frozen
class Recovered:
    state: JournalState
    segments: list[Segment]
    """The used files, oldest first; the last one is written on."""
    salt: bytes
    next_sequence: int


@dataclass(slots=True)
class _Found:
    """One file that is there."""

    number: int
    path: str
    file: File
    scan: Scan | None
    """None for a spare."""


def recover(disk: Disk, directory: str) -> Recovered | None:
    """The journal in `directory`, or None where none has begun. Raises Fatal on damage.

    What was read may not be durable yet: the caller syncs the last file and the directory.
    """
    files = _scan_all(disk, directory)
    try:
        used = _newest_run([found for found in files if found.scan is not None])
        recovered = _replay_all(disk, directory, used) if used else None
    except BaseException:
        for found in files:
            found.file.close()
        raise
    # The newest first, so that a crash cannot leave a gap that looks like an old removal. Spares
    # are made anew, since one may be half preallocated or hold a torn first batch.
    for found in reversed(files):
        if found not in used:
            found.file.close()
            disk.remove(found.path)
    return recovered


def _scan_all(disk: Disk, directory: str) -> list[_Found]:
    numbers = sorted(n for n in map(segment_number, disk.list(directory)) if n is not None)
    files: list[_Found] = []
    salt: bytes | None = None
    try:
        for number in numbers:
            path = f"{directory}/{segment_name(number)}"
            file = disk.open(path)
            files.append(_Found(number, path, file, None))
            result = scan(path, file.read_at(0, file.size()), number, salt)
            if result is not None and result.batches:
                files[-1].scan = result
                salt = result.salt
                if len(files) > 1 and files[-2].scan is None:
                    raise Fatal(
                        f"{files[-2].path}: offset 0: damaged; the journal goes on in {path}"
                    )
    except BaseException:
        for found in files:
            found.file.close()
        raise
    return files


def _newest_run(used: list[_Found]) -> list[_Found]:
    start = max(0, len(used) - 1)
    while start > 0 and used[start - 1].number == used[start].number - 1:
        start -= 1
    return used[start:]


def _replay_all(disk: Disk, directory: str, used: list[_Found]) -> Recovered:
    state = JournalState()
    segments: list[Segment] = []
    salt, torn, sequence = b"", 0, 0
    for found in used:
        assert found.scan is not None
        batches = found.scan.batches
        if segments and batches[0][0] != sequence:
            raise Fatal(
                f"{segments[-1].path}: offset {segments[-1].end}: damaged; batch {sequence} is "
                f"missing, {found.path} goes on with batch {batches[0][0]}"
            )
        segment = Segment(disk, found.path, found.number, found.scan.salt)
        segment.attach(found.file, found.scan.end)
        segments.append(segment)
        if len(segments) == 1:
            _begin(found.path, state, batches[0][1])
        for _, payload in batches:
            _replay(found.path, state, segment, payload)
        salt, torn, sequence = found.scan.salt, found.scan.torn, batches[-1][0] + 1
    _check(directory, state, segments)
    if torn:
        logger.warning("%s: offset %d: torn write cut", segments[-1].path, segments[-1].end)
        segments[-1].cut(torn)
    return Recovered(state, segments, salt, sequence)


def _check(directory: str, state: JournalState, segments: list[Segment]) -> None:
    begin = state.entries[0][1] if state.entries else state.next_index
    if begin > state.first_index:
        raise Fatal(
            f"{segments[0].path}: the journal begins at index {begin}, but must hold "
            f"{state.first_index}: an older file is missing"
        )
    if state.commit_index > state.last_index:
        logger.warning(
            "%s: commit index %d lowered to the end of the journal, %d",
            directory,
            state.commit_index,
            state.last_index,
        )
        state.commit_index = state.last_index


def _begin(path: str, state: JournalState, payload: bytes) -> None:
    """Take over the state that the oldest file says was before it."""
    try:
        checkpoint = next(decode_records(payload), None)
    except MalformedRecord as error:
        raise Fatal(f"{path}: {error}") from error
    if not isinstance(checkpoint, Checkpoint):
        raise Fatal(f"{path}: the file does not begin with a checkpoint")
    state.adopt(checkpoint)


def _replay(path: str, state: JournalState, segment: Segment, payload: bytes) -> None:
    try:
        for record in decode_records(payload):
            state.apply(record)
            if isinstance(record, Entry):
                segment.max_index = max(segment.max_index, record.index)
    except (Fatal, MalformedRecord) as error:
        raise Fatal(f"{path}: {error}") from error
