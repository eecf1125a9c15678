"""What observers and voters say to each other, in the form of `messages.py`.

    observer                                 voter
      FeedRequest(next index)            ->
                                         <-  FeedEntries: committed ones, or none after a while
      FeedRequest(next index)            ->
                                         <-  SnapshotChunk at offset 0: the log begins later
      ChunkRequest(snapshot, offset)     ->
                                         <-  SnapshotChunk

One question is under way at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..seam import Buffer
from .journal_state import LogEntry
from .messages import (
    BadMessage,
    SnapshotChunk,
    decode_entries,
    decode_message,
    encode_entries,
    encode_message,
    pack,
    unpack,
)

FEED_SERVICE = "raft-feed"


@dataclass(slots=True)
class FeedRequest:
    """Everything below `next_index` has been applied here; what comes then?"""

    next_index: int


@dataclass(slots=True)
class ChunkRequest:
    """More of a snapshot that was begun on this connection."""

    snapshot_index: int
    snapshot_term: int
    offset: int


@dataclass(slots=True)
class FeedEntries:
    """Committed entries after `prev_index`, and what the voter knows of the quorum."""

    term: int
    leader_id: int | None
    """A leader that was heard within an election timeout."""
    commit_index: int
    prev_index: int
    prev_term: int
    entries: list[LogEntry]


Question = FeedRequest | ChunkRequest
Answer = FeedEntries | SnapshotChunk

_REQUEST, _CHUNK_REQUEST, _ENTRIES, _CHUNK = 1, 2, 3, 4
_NOBODY = -1


def encode_question(question: Question) -> bytes:
    if isinstance(question, FeedRequest):
        return pack((_REQUEST, question.next_index))
    chunk = (question.snapshot_index, question.snapshot_term, question.offset)
    return pack((_CHUNK_REQUEST, *chunk))


def decode_question(payload: Buffer) -> Question:
    """Raises BadMessage."""
    kind, values = unpack(payload)
    if any(type(value) is not int or value < 0 for value in values):
        raise BadMessage("a question with a wrong field")
    if kind == _REQUEST and len(values) == 1:
        return FeedRequest(*values)
    if kind == _CHUNK_REQUEST and len(values) == 3:
        return ChunkRequest(*values)
    raise BadMessage(f"no question of kind {kind} with {len(values)} fields")


def encode_answer(answer: Answer) -> bytes:
    if isinstance(answer, SnapshotChunk):
        return pack((_CHUNK, encode_message(answer)))
    return pack(
        (
            _ENTRIES,
            answer.term,
            _NOBODY if answer.leader_id is None else answer.leader_id,
            answer.commit_index,
            answer.prev_index,
            answer.prev_term,
            encode_entries(answer.entries),
        )
    )


def decode_answer(payload: Buffer) -> Answer:
    """Raises BadMessage."""
    kind, values = unpack(payload)
    if kind == _CHUNK and len(values) == 1 and type(values[0]) is bytes:
        chunk = decode_message(values[0])
        if isinstance(chunk, SnapshotChunk):
            return chunk
    if kind != _ENTRIES or len(values) != 6:
        raise BadMessage(f"no answer of kind {kind} with {len(values)} fields")
    *numbers, packed = values
    if any(type(number) is not int or number < _NOBODY for number in numbers):
        raise BadMessage("an answer with a wrong field")
    term, leader_id, commit_index, prev_index, prev_term = numbers
    if min(term, commit_index, prev_index, prev_term) < 0:
        raise BadMessage("an answer with a negative field")
    entries = decode_entries(packed, prev_index=prev_index, prev_term=prev_term, term=term)
    leader = None if leader_id == _NOBODY else leader_id
    return FeedEntries(term, leader, commit_index, prev_index, prev_term, entries)
