"""Incremental fetch sessions (KIP-227): the leader remembers what a fetcher asks for.

A fetcher that follows a thousand partitions then names only those that changed, and is answered
only for those that have news. Pure: the caller brings the time and the chance.

==========  =====  ===============================================================================
session id  epoch  meaning
==========  =====  ===============================================================================
any         -1     no session; the one named, if any, is closed
any         0      a full request that would like a new session; the one named, if any, is closed
not 0       n > 0  the n-th incremental request of this session: changes on what is remembered
==========  =====  ===============================================================================

The number of sessions is bounded. A full cache makes room by closing a session unused for
`eviction_ms`, or, for a follower, the consumer session unused for longest; otherwise the fetcher
gets session id 0 and sends full requests, which is slower and just as right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from uuid import UUID

from ..wire import ErrorCode
from ..wire.messages.fetch import FetchRequest

FetchPartition = FetchRequest.FetchTopic.FetchPartition

NO_SESSION = 0
FINAL_EPOCH = -1
INITIAL_EPOCH = 0
MAX_EPOCH = 2**31 - 1

UNKNOWN_WATERMARK = 2**63 - 1
"""The fetcher does not say which high watermark it knows (below version 18)."""

NEVER_ANSWERED = -2

FIRST_VERSION_WITH_SESSIONS = 7
FIRST_VERSION_WITH_TOPIC_IDS = 13

PartitionKey = tuple[UUID | str, int]


class FetchedPartition:
    """What a fetcher asks for one partition, and what it was last told."""

    __slots__ = (
        "answered_high_watermark",
        "answered_log_start_offset",
        "current_leader_epoch",
        "fetch_offset",
        "known_high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: UUID, asked: FetchPartition) -> None:
        self.topic = topic
        """Empty when the request named the topic by id."""
        self.topic_id = topic_id
        self.partition = asked.partition
        self.answered_high_watermark = NEVER_ANSWERED
        self.answered_log_start_offset = NEVER_ANSWERED
        self.update(asked)

    def update(self, asked: FetchPartition) -> None:
        self.fetch_offset = asked.fetch_offset
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.current_leader_epoch = asked.current_leader_epoch
        self.max_bytes = asked.partition_max_bytes
        self.known_high_watermark = asked.high_watermark
        self.log_start_offset = asked.log_start_offset

    def on_answered(self, high_watermark: int, log_start_offset: int) -> None:
        self.answered_high_watermark = high_watermark
        self.answered_log_start_offset = log_start_offset
        if self.known_high_watermark != UNKNOWN_WATERMARK:
            # The next request of the session proves that this answer has arrived.
            self.known_high_watermark = high_watermark


class FetchSession:
    def __init__(self, session_id: int, owner: object, replica_id: int, by_id: bool) -> None:
        self.session_id = session_id
        self.owner = owner
        """The connection it was opened on; no other may use it."""
        self.replica_id = replica_id
        self.by_id = by_id
        self.next_epoch = 1
        self.last_used_ms = 0
        self.partitions: dict[PartitionKey, FetchedPartition] = {}
        """In the order in which they are served; who got data moves to the end."""

    def rotate(self, served: Iterable[PartitionKey]) -> None:
        for key in served:
            partition = self.partitions.pop(key, None)
            if partition is not None:
                self.partitions[key] = partition


class FetchContext:
    """One fetch request, seen against its session."""

    def __init__(
        self,
        partitions: list[FetchedPartition],
        session: FetchSession | None = None,
        *,
        incremental: bool = False,
    ) -> None:
        self.partitions = partitions
        self.session = session
        self.incremental = incremental
        """Only partitions with news are answered."""

    @property
    def session_id(self) -> int:
        return NO_SESSION if self.session is None else self.session.session_id


def key_of(partition: FetchedPartition, by_id: bool) -> PartitionKey:
    return (partition.topic_id if by_id else partition.topic, partition.partition)


def _asked(request: FetchRequest, by_id: bool) -> Iterator[tuple[PartitionKey, FetchedPartition]]:
    for topic in request.topics:
        for asked in topic.partitions:
            partition = FetchedPartition(topic.topic, topic.topic_id, asked)
            yield key_of(partition, by_id), partition


class FetchSessions:
    """All sessions of a node."""

    def __init__(self, *, slots: int, eviction_ms: int, rng: Random) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}
        """Least recently used first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(
        self, request: FetchRequest, version: int, *, owner: object, replica_id: int, now_ms: int
    ) -> FetchContext | ErrorCode:
        """Take a request in; an error concerns the whole request and changes nothing else."""
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        if version < FIRST_VERSION_WITH_SESSIONS or request.session_epoch == FINAL_EPOCH:
            self._close_named(request, owner)
            return FetchContext(list(dict(_asked(request, by_id)).values()))
        if request.session_epoch == INITIAL_EPOCH:
            self._close_named(request, owner)
            partitions = dict(_asked(request, by_id))
            session = self._open(owner, replica_id, by_id, now_ms) if partitions else None
            if session is not None:
                session.partitions = partitions
            return FetchContext(list(partitions.values()), session)
        return self._continue(request, owner, replica_id, by_id, now_ms)

    def _continue(
        self, request: FetchRequest, owner: object, replica_id: int, by_id: bool, now_ms: int
    ) -> FetchContext | ErrorCode:
        session = self._sessions.get(request.session_id)
        if session is None or session.owner is not owner or session.replica_id != replica_id:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if request.session_epoch != session.next_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if by_id != session.by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.next_epoch = 1 if session.next_epoch == MAX_EPOCH else session.next_epoch + 1
        self._use(session, now_ms)
        for topic in request.topics:
            for asked in topic.partitions:
                key = (topic.topic_id if by_id else topic.topic, asked.partition)
                known = session.partitions.get(key)
                if known is None:
                    session.partitions[key] = FetchedPartition(topic.topic, topic.topic_id, asked)
                else:
                    known.update(asked)
        for forgotten in request.forgotten_topics_data:
            name: UUID | str = forgotten.topic_id if by_id else forgotten.topic
            for number in forgotten.partitions:
                session.partitions.pop((name, number), None)
        return FetchContext(list(session.partitions.values()), session, incremental=True)

    def forget_owner(self, owner: object) -> None:
        """Its connection is closed."""
        for session in list(self._sessions.values()):
            if session.owner is owner:
                del self._sessions[session.session_id]

    def _close_named(self, request: FetchRequest, owner: object) -> None:
        named = self._sessions.get(request.session_id)
        if named is not None and named.owner is owner:
            del self._sessions[named.session_id]

    def _open(
        self, owner: object, replica_id: int, by_id: bool, now_ms: int
    ) -> FetchSession | None:
        if len(self._sessions) >= self._slots and not self._make_room(replica_id, now_ms):
            return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._rng.randrange(1, MAX_EPOCH)
        session = FetchSession(session_id, owner, replica_id, by_id)
        self._use(session, now_ms)
        return session

    def _use(self, session: FetchSession, now_ms: int) -> None:
        session.last_used_ms = now_ms
        self._sessions.pop(session.session_id, None)
        self._sessions[session.session_id] = session

    def _make_room(self, replica_id: int, now_ms: int) -> bool:
        for session in self._sessions.values():
            stale = now_ms - session.last_used_ms >= self._eviction_ms
            if stale or (replica_id >= 0 and session.replica_id < 0):
                del self._sessions[session.session_id]
                return True
        return False
