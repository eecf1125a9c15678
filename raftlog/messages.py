"""What voters say to each other, and its form on the wire: msgpack arrays of a fixed shape.

Nothing but the shapes below is taken from a peer: the kind and the type of each field are checked,
entries carry only application commands and no-ops (the engine's other command kinds would be
evaluated further), and their indexes are implied, so that they cannot leave gaps. No pickle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import Any
from uuid import UUID

import msgpack

from ..seam import Buffer
from .journal_state import LogEntry

COMMAND = 0
"""First byte of an entry that the engine hands to the state machine."""
NO_OP = 1
"""First byte of an entry that a new leader adds by itself."""


@dataclass(slots=True)
class Append:
    """A leader's entries after `prev_index`, or its heartbeat without any."""

    term: int
    commit_index: int
    prev_index: int
    prev_term: int
    entries: list[LogEntry]


@dataclass(slots=True)
class Ack:
    """A follower's answer: everything below `next_index` is there (success), or go back to it.

    With neither `success` nor `reset` it says only that the follower is alive.
    """

    term: int
    next_index: int
    reset: bool
    success: bool


@dataclass(slots=True)
class VoteRequest:
    term: int
    last_log_index: int
    last_log_term: int


@dataclass(slots=True)
class CalledVoteRequest(VoteRequest):
    """Of a voter that its leader has called to take over: granted although that one is fresh."""


@dataclass(slots=True)
class TimeoutNow:
    """The leader of this term hands over: its receiver's election is due (thesis 3.10)."""

    term: int


@dataclass(slots=True)
class Vote:
    term: int


@dataclass(slots=True)
class SnapshotOffer:
    """The engine wants a follower to get the snapshot; never on the wire as such."""

    term: int
    commit_index: int
    available: bool
    """False while there is none, or one is already on its way to this follower."""


@dataclass(slots=True)
class SnapshotChunk:
    """A piece of the snapshot that ends at `snapshot_index`."""

    term: int
    commit_index: int
    snapshot_index: int
    snapshot_term: int
    size: int
    offset: int
    data: bytes

    @property
    def last(self) -> bool:
        return self.offset + len(self.data) == self.size


@dataclass(slots=True)
class Forward:
    """The engine wants to forward a proposal to the leader; never on the wire (guard G7)."""

    request_id: int | None


@dataclass(slots=True)
class Stale:
    """Answer to a leader of a lower term (RULES E3)."""

    term: int


@dataclass(slots=True)
class PreVoteRequest:
    """Would you vote for me? (RULES E3)"""

    round: int
    term: int
    last_log_index: int
    last_log_term: int


@dataclass(slots=True)
class PreVote:
    round: int
    agreed: bool
    term: int


@dataclass(slots=True)
class Pinned:
    """You have another data directory than the one pinned for your node id (RULES B3)."""

    directory_id: UUID


@dataclass(slots=True)
class NewDirectory:
    """This directory is new; is yours empty, too? (RULES B3)"""


@dataclass(slots=True)
class Holdings:
    empty: bool
    """In term 0, and without an entry but the one that every log begins with."""


@dataclass(slots=True)
class Ping:
    number: int


@dataclass(slots=True)
class Pong:
    number: int


Message = (
    Append
    | Ack
    | VoteRequest
    | TimeoutNow
    | Vote
    | SnapshotOffer
    | SnapshotChunk
    | Forward
    | Stale
    | PreVoteRequest
    | PreVote
    | Pinned
    | NewDirectory
    | Holdings
    | Ping
    | Pong
)


class BadMessage(Exception):
    """Not a message of ours."""


_KIND_APPEND = 1
_FLAT = (
    # kind, class, types of its fields in order
    (2, Ack, (int, int, bool, bool)),
    (3, VoteRequest, (int, int, int)),
    (4, Vote, (int,)),
    (5, SnapshotChunk, (int, int, int, int, int, int, bytes)),
    (6, Stale, (int,)),
    (7, PreVoteRequest, (int, int, int, int)),
    (8, PreVote, (int, bool, int)),
    (10, Ping, (int,)),
    (11, Pong, (int,)),
    (12, NewDirectory, ()),
    (13, Holdings, (bool,)),
    (14, TimeoutNow, (int,)),
    (15, CalledVoteRequest, (int, int, int)),
)
_KIND_PINNED = 9
_KIND_OF: dict[type, tuple[int, tuple[str, ...]]] = {
    cls: (kind, tuple(field.name for field in fields_of(cls))) for kind, cls, _ in _FLAT
}
_SHAPE_OF = {kind: (cls, types) for kind, cls, types in _FLAT}


def pack(fields: tuple[object, ...]) -> bytes:
    """A kind, and its fields."""
    packed: bytes = msgpack.packb(fields, use_bin_type=True)
    return packed


def unpack(payload: Buffer) -> tuple[int, tuple[Any, ...]]:
    """(kind, fields). Raises BadMessage."""
    try:
        fields = msgpack.unpackb(payload, use_list=False, raw=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise BadMessage(f"not msgpack: {error}") from error
    if type(fields) is not tuple or not fields or type(fields[0]) is not int:
        raise BadMessage("not an array that starts with its kind")
    return fields[0], fields[1:]


def encode_message(message: Message) -> bytes:
    """Raises BadMessage for what only lives between the engine and its guards."""
    if isinstance(message, Append):
        fields: tuple[object, ...] = (
            _KIND_APPEND,
            message.term,
            message.commit_index,
            message.prev_index,
            message.prev_term,
            encode_entries(message.entries),
        )
    elif isinstance(message, Pinned):
        fields = (_KIND_PINNED, message.directory_id.bytes)
    elif type(message) in _KIND_OF:
        kind, names = _KIND_OF[type(message)]
        fields = (kind, *(getattr(message, name) for name in names))
    else:
        raise BadMessage(f"{type(message).__name__} does not travel")
    return pack(fields)


def decode_message(payload: Buffer) -> Message:
    """Raises BadMessage for anything but the shapes of this module."""
    kind, values = unpack(payload)
    if kind == _KIND_APPEND:
        return _decode_append(values)
    if kind == _KIND_PINNED:
        if len(values) != 1 or type(values[0]) is not bytes or len(values[0]) != 16:
            raise BadMessage("malformed directory id")
        return Pinned(UUID(bytes=values[0]))
    if kind not in _SHAPE_OF:
        raise BadMessage(f"unknown kind {kind}")
    cls, types = _SHAPE_OF[kind]
    if len(values) != len(types):
        raise BadMessage(f"{cls.__name__} of {len(values)} fields")
    for value, wanted in zip(values, types, strict=True):
        if type(value) is not wanted or (isinstance(value, int) and value < 0):
            raise BadMessage(f"{cls.__name__} with a wrong field")
    message: Message = cls(*values)
    return message


def _decode_append(values: tuple[object, ...]) -> Append:
    if len(values) != 5:
        raise BadMessage(f"Append of {len(values)} fields")
    term, commit_index, prev_index, prev_term = (_natural(value) for value in values[:4])
    entries = decode_entries(values[4], prev_index=prev_index, prev_term=prev_term, term=term)
    return Append(term, commit_index, prev_index, prev_term, entries)


def encode_entries(entries: Sequence[LogEntry]) -> list[tuple[bytes, int]]:
    """A gapless run of entries for msgpack; their indexes are implied."""
    return [(command, term) for command, _, term in entries]


def decode_entries(packed: object, *, prev_index: int, prev_term: int, term: int) -> list[LogEntry]:
    """The run that follows the entry at `prev_index`, told in `term`. Raises BadMessage."""
    if type(packed) is not tuple:
        raise BadMessage("entries that are no array")
    entries: list[LogEntry] = []
    index = prev_index
    entry_term = prev_term
    for item in packed:
        if type(item) is not tuple or len(item) != 2:
            raise BadMessage("malformed entry")
        command, item_term = item
        if type(command) is not bytes or type(item_term) is not int:
            raise BadMessage("entry with a wrong field")
        if not command or command[0] not in (COMMAND, NO_OP):
            raise BadMessage("entry of a kind that nobody may send")
        if not entry_term <= item_term <= term:
            raise BadMessage(f"entry of term {item_term} between {entry_term} and {term}")
        index += 1
        entry_term = item_term
        entries.append((command, index, item_term))
    return entries


def _natural(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadMessage("Append with a wrong field")
    return value
