"""What a voter gives to the observers: its snapshot, then what is committed, as they ask for it.

Only entries that are applied here are given, so an observer never holds one that may still be
replaced, and needs no rule for cutting its log. Any voter serves; an observer prefers the leader,
which then knows how far each one has come. A session costs one question and, while a snapshot is
under way, the snapshot's bytes, which sessions share.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from ..seam import TaskScope
from .channel import Channel, ChannelClosed
from .feed_messages import (
    Answer,
    FeedEntries,
    FeedRequest,
    decode_question,
    encode_answer,
)
from .interface import ObserverStatus
from .journal import Journal
from .journal_state import LogEntry
from .messages import BadMessage, SnapshotChunk
from .progress import Progress
from .settings import RaftSettings
from .snapshots import SnapshotId, SnapshotStore

logger = logging.getLogger(__name__)

FORGOTTEN_AFTER_S = 300.0
"""An observer that has not asked for this long makes room for new ones (as in Kafka)."""

MAX_OBSERVERS = 1000
"""Sessions at the same time; one more is refused."""


class Fed(Protocol):
    """The voter, as its feed sees it."""

    @property
    def term(self) -> int: ...

    @property
    def applied_index(self) -> int: ...

    def heard_leader(self) -> int | None:
        """The leader, unless it has been silent for an election timeout."""
        ...


@dataclass(slots=True, eq=False)
class _Session:
    """One observer's connection."""

    channel: Channel
    waiting: FeedRequest | None = None
    """Its question, while there is nothing to answer it with."""
    timer: asyncio.TimerHandle | None = None
    told: tuple[int, int | None] | None = None
    """Term and leader of the last answer: a change of these is news by itself."""
    snapshot: SnapshotId | None = None
    data: memoryview = field(default_factory=lambda: memoryview(b""))

    @property
    def node_id(self) -> int:
        return self.channel.peer.node_id


@dataclass(slots=True)
class _Seen:
    """What is remembered of an observer, also between its connections."""

    directory_id: UUID
    progress: Progress
    last_contact: float


class Feed:
    """All observers of one voter. Runs in the loop, in callbacks of its own."""

    def __init__(
        self,
        *,
        voter: Fed,
        journal: Journal,
        store: SnapshotStore,
        settings: RaftSettings,
        scope: TaskScope,
    ) -> None:
        self._voter = voter
        self._journal = journal
        self._store = store
        self._settings = settings
        self._scope = scope
        self._sessions: dict[int, _Session] = {}
        self._seen: dict[int, _Seen] = {}
        self._wake_due = False
        self._closed = False

    def adopt(self, channel: Channel) -> None:
        """Serve this observer over this connection, and no longer over an earlier one."""
        node_id = channel.peer.node_id
        earlier = self._sessions.pop(node_id, None)
        if earlier is not None:
            self._end(earlier)
        elif len(self._sessions) >= MAX_OBSERVERS:
            channel.abort(f"there are {MAX_OBSERVERS} observers already")
            return
        session = _Session(channel)
        self._sessions[node_id] = session
        channel.set_receiver(
            lambda payload: self._on_frame(session, payload), lambda: self._on_close(session)
        )

    def wake(self) -> None:
        """Something was applied, or term or leader have changed."""
        if self._sessions and not self._wake_due:
            self._wake_due = True
            asyncio.get_running_loop().call_soon(self._answer_waiting)

    def status(self) -> Mapping[int, ObserverStatus]:
        """By node id: every observer that has asked this voter and is not forgotten."""
        return {
            node_id: ObserverStatus(
                directory_id=seen.directory_id,
                match_index=seen.progress.match_index,
                last_contact=seen.last_contact,
                caught_up_at=seen.progress.caught_up_at,
            )
            for node_id, seen in sorted(self._seen.items())
        }

    def close(self) -> None:
        self._closed = True
        for session in self._sessions.values():
            self._end(session)
        self._sessions.clear()

    # Questions

    def _on_frame(self, session: _Session, payload: memoryview) -> None:
        try:
            question = decode_question(payload)
        except BadMessage as error:
            session.channel.abort(str(error))
            return
        if session.waiting is not None:
            session.channel.abort("it asks before it was answered")
        elif isinstance(question, FeedRequest):
            self._note(session, question)
            session.waiting = question
            self._answer(session, may_wait=True)
        elif session.snapshot == SnapshotId(question.snapshot_index, question.snapshot_term):
            self._send_chunk(session, question.offset)
        else:
            session.channel.abort("it asks for a snapshot that was not begun")

    def _note(self, session: _Session, question: FeedRequest) -> None:
        now = asyncio.get_running_loop().time()
        peer = session.channel.peer
        if peer.node_id not in self._seen:
            oldest = now - FORGOTTEN_AFTER_S
            self._seen = {n: seen for n, seen in self._seen.items() if seen.last_contact > oldest}
        seen = self._seen.get(peer.node_id)
        if seen is None or seen.directory_id != peer.directory_id:
            seen = self._seen[peer.node_id] = _Seen(peer.directory_id, Progress(), now)
        seen.last_contact = now
        match_index = question.next_index - 1
        if match_index < seen.progress.match_index:
            seen.progress = Progress()  # It has started again, from nothing.
        seen.progress.confirm(match_index, last_index=self._voter.applied_index, now=now)

    # Answers

    def _answer_waiting(self) -> None:
        self._wake_due = False
        if self._closed:
            return
        for session in list(self._sessions.values()):
            if session.waiting is not None:
                self._answer(session, may_wait=True)

    def _answer(self, session: _Session, *, may_wait: bool) -> None:
        assert session.waiting is not None
        next_index = session.waiting.next_index
        if next_index <= self._journal.first_index:
            # The first entry of the log may be a stand-in for the one before the snapshot's last.
            self._begin_snapshot(session)
            return
        entries = self._entries(next_index)
        news = (self._voter.term, self._voter.heard_leader())
        if not entries and may_wait and news == session.told:
            if session.timer is None:
                session.timer = asyncio.get_running_loop().call_later(
                    self._settings.feed_wait_s, self._on_timer, session
                )
            return
        session.told = news
        prev_term = self._journal.term_at(next_index - 1)
        # An observer that is ahead of this voter gets no entries, so nothing to compare with.
        self._send(
            session,
            FeedEntries(
                *news,
                commit_index=self._voter.applied_index,
                prev_index=next_index - 1,
                prev_term=0 if prev_term is None else prev_term,
                entries=entries,
            ),
        )

    def _entries(self, next_index: int) -> list[LogEntry]:
        """The applied ones from there on, as many as fit into one answer."""
        held, first_index = self._journal.entries, self._journal.first_index
        entries: list[LogEntry] = []
        size = 0
        for position in range(
            next_index - first_index, self._voter.applied_index - first_index + 1
        ):
            if size > self._settings.append_bytes or len(entries) >= self._settings.feed_entries:
                break
            entries.append(held[position])
            size += len(held[position][0])
        return entries

    def _on_timer(self, session: _Session) -> None:
        session.timer = None
        if session.waiting is not None and not self._closed:
            self._answer(session, may_wait=False)

    def _send(self, session: _Session, answer: Answer) -> None:
        session.waiting = None
        if session.timer is not None:
            session.timer.cancel()
            session.timer = None
        try:
            session.channel.send([encode_answer(answer)])
        except ChannelClosed as error:
            logger.debug("an answer to observer %d was dropped: %s", session.node_id, error)

    # Snapshots

    def _begin_snapshot(self, session: _Session) -> None:
        latest = self._store.latest
        if latest is None:
            return  # Unheard of: a log is cut only behind a snapshot.
        if latest == session.snapshot:
            if session.data:  # Begun before, and given up by the observer.
                self._send_chunk(session, 0)
            return
        session.snapshot = latest
        for other in self._sessions.values():
            if other is not session and other.snapshot == latest and other.data:
                session.data = other.data
                self._send_chunk(session, 0)
                return
        self._scope.spawn(self._read(session, latest), name="raft snapshot for an observer")

    async def _read(self, session: _Session, id: SnapshotId) -> None:
        try:
            data = memoryview(await self._store.read_bytes(id))
        except OSError as error:
            # Removed by a newer one in the meantime; it will ask again.
            logger.warning("snapshot %s cannot be sent: %s", id, error)
            session.channel.close()
            return
        if session.waiting is not None and session.snapshot == id:
            session.data = data
            self._send_chunk(session, 0)

    def _send_chunk(self, session: _Session, offset: int) -> None:
        assert session.snapshot is not None
        piece = bytes(session.data[offset : offset + self._settings.snapshot_chunk_bytes])
        chunk = SnapshotChunk(
            self._voter.term,
            self._voter.applied_index,
            session.snapshot.index,
            session.snapshot.term,
            len(session.data),
            offset,
            piece,
        )
        if offset + len(piece) >= len(session.data):
            session.snapshot, session.data = None, memoryview(b"")
        self._send(session, chunk)

    # The end of a session

    def _on_close(self, session: _Session) -> None:
        if self._sessions.get(session.node_id) is session:
            del self._sessions[session.node_id]
        self._end(session)

    def _end(self, session: _Session) -> None:
        session.waiting = None
        session.snapshot, session.data = None, memoryview(b"")
        if session.timer is not None:
            session.timer.cancel()
            session.timer = None
        session.channel.close()
