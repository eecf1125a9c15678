"""A stretch of the committed log, for people to read."""

from __future__ import annotations

from ..seam import frozen
from .journal import Journal
from .messages import COMMAND

PAGE_BYTES = 1 << 20
"""Commands of one page; a longer one stands alone."""


@frozen
class CommittedEntry:
    index: int
    term: int
    command: bytes | None
    """Empty for a barrier; None for the entry with which a leader begins its term."""


@frozen
class LogPage:
    """Entries in order of their indexes, without gaps."""

    first_index: int
    """The oldest one that is still kept; what was before is in the snapshot alone."""
    snapshot_index: int
    """Last index of the newest snapshot; 0 without one."""
    commit_index: int
    entries: tuple[CommittedEntry, ...]


def page_of(
    journal: Journal, *, commit_index: int, snapshot_index: int, start: int | None, limit: int
) -> LogPage:
    """From `start` on, by default so that the page ends with the newest one; no entries when
    `start` is not kept any more, or not committed yet."""
    # The first one may stand in for an entry of which only index and term are known.
    first_index = journal.first_index + 1
    last_index = min(commit_index, journal.last_index)
    if start is None:
        start = max(first_index, last_index + 1 - limit)
    entries: list[CommittedEntry] = []
    size = 0
    if start >= first_index:
        held = journal.entries
        for index in range(start, min(start + limit, last_index + 1)):
            data, _, term = held[index - journal.first_index]
            size += len(data)
            if entries and size > PAGE_BYTES:
                break
            command = data[1:] if data[0] == COMMAND else None
            entries.append(CommittedEntry(index, term, command))
    return LogPage(first_index, snapshot_index, commit_index, tuple(entries))
