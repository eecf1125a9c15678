"""Snapshots as the engine sees them: the replacement of its `Serializer`.

The engine asks for a snapshot when its log is long, looks every tick whether it is done, and then
compacts the log. Here the state is captured in that tick, encoded beside the loop and made durable
before success is reported. What goes to a follower is not cut by the engine: it is told that one
piece was the whole, and the transport sends the file in chunks, all of one snapshot. On the other
side the engine loads nothing before the whole snapshot has been checked and is durable.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from pysyncobj.config import SERIALIZER_STATE

from ..seam import Fatal, OnFatal, TaskScope, frozen, offload
from .applier import Applier
from .engine import Voter
from .interface import StateMachine
from .journal import Journal
from .journal_state import LogEntry
from .messages import NO_OP, SnapshotChunk
from .snapshots import Snapshot, SnapshotId, SnapshotStore, check_received, encode_snapshot

logger = logging.getLogger(__name__)

RETRY_S = 10.0
"""Pause after a snapshot that could not be written, say for a full disk."""


@frozen
class DecodedSnapshot:
    """A snapshot that the machine has decoded but not yet taken over."""

    snapshot: Snapshot
    install: Callable[[int], None]


class EngineSnapshots:
    """Writes, loads and hands out snapshots for one node."""

    def __init__(
        self,
        *,
        store: SnapshotStore,
        journal: Journal,
        machine: StateMachine,
        applier: Applier,
        scope: TaskScope,
        on_done: Callable[[], None],
        is_sending: Callable[[int], bool],
        on_fatal: OnFatal,
    ) -> None:
        self._store = store
        self._journal = journal
        self._machine = machine
        self._applier = applier
        self._scope = scope
        self._on_done = on_done
        self._is_sending = is_sending
        self._on_fatal = on_fatal
        self._state: int = SERIALIZER_STATE.NOT_SERIALIZING
        self._compact_to = 0
        self._retry_at: float | None = None
        self.received: DecodedSnapshot | None = None
        """A checked and durable snapshot from the leader, while the engine may load it."""

    def exists(self) -> bool:
        """Whether there is a snapshot to load at start."""
        return self._store.latest is not None

    # The interface of pysyncobj.serializer.Serializer.

    def checkSerializing(self) -> tuple[int, int]:
        state = self._state
        if state in (SERIALIZER_STATE.SUCCESS, SERIALIZER_STATE.FAILED):
            self._state = SERIALIZER_STATE.NOT_SERIALIZING
        return state, self._compact_to

    def serialize(self, data: tuple[object, LogEntry, LogEntry, object], compact_to: int) -> None:
        """`data` holds the last applied entry and its predecessor."""
        if self._applier.next_index is not None:
            return  # The machine is not there yet; the engine asks again in its next turn.
        if self._retry_at is not None and asyncio.get_running_loop().time() < self._retry_at:
            return
        (command, index, term), (_, _, previous_term) = data[1], data[2]
        self._state = SERIALIZER_STATE.SERIALIZING
        self._compact_to = compact_to
        encode_state = self._machine.capture()
        self._scope.spawn(
            self._write(SnapshotId(index, term), previous_term, command, encode_state),
            name="raft snapshot",
        )

    def deserialize(self) -> tuple[None, LogEntry, LogEntry, list[object]]:
        """Load the received snapshot, or at start the newest: state, last entry, predecessor."""
        try:
            # At start it is decoded here: nobody is served yet.
            decoded = self.received or self._decode(self._newest())
            self._applier.drop()
            decoded.install(decoded.snapshot.id.index)
            return (None, *self._head_of_log(decoded.snapshot), [])
        except BaseException as error:
            # The engine logs it and goes on as if it had loaded the state.
            self._on_fatal(error)
            raise

    def getTransmissionData(self, node: Voter) -> tuple[bytes, bool, bool] | None:
        if self._store.latest is None or self._is_sending(node.id):
            return None
        return b"", True, True

    def setTransmissionData(self, data: tuple[bytes, bool, bool] | None) -> bool:
        """Whether the engine should load a snapshot now."""
        return data is not None and data[2] and self.received is not None

    def cancelTransmisstion(self, node: Voter) -> None: ...

    # Writing.

    async def _write(
        self,
        id: SnapshotId,
        previous_term: int,
        command: bytes,
        encode_state: Callable[[], bytes],
    ) -> None:
        parts = await offload(
            lambda: encode_snapshot(Snapshot(id, previous_term, command, encode_state()))
        )
        try:
            await self._store.install(id, parts)
        except OSError as error:
            logger.warning("snapshot %s could not be written: %s", id, error)
            self._retry_at = asyncio.get_running_loop().time() + RETRY_S
            self._state = SERIALIZER_STATE.FAILED
        else:
            self._retry_at = None
            self._state = SERIALIZER_STATE.SUCCESS
        self._on_done()

    # Loading.

    async def decode(self, snapshot: Snapshot) -> DecodedSnapshot:
        """Have the machine decode it beside the loop: of a large state that takes long (F1)."""
        return await offload(lambda: self._decode(snapshot))

    def _decode(self, snapshot: Snapshot) -> DecodedSnapshot:
        return DecodedSnapshot(snapshot, self._machine.decode(snapshot.state))

    def _newest(self) -> Snapshot:
        if self._store.latest is None:
            raise Fatal("there is no snapshot to load")
        return self._store.load(self._store.latest)

    def _head_of_log(self, snapshot: Snapshot) -> tuple[LogEntry, LogEntry]:
        """The entry at the snapshot's index and the one before, as the engine keeps them.

        At start they are the first two of the journal, see `align`: on any difference the engine
        would empty its log, with acknowledged entries in it.
        """
        last = (snapshot.command, snapshot.id.index, snapshot.id.term)
        if self.received is not None:
            return last, predecessor(snapshot)
        entries = self._journal.entries
        if len(entries) < 2 or entries[1] != last:
            raise Fatal(f"the journal does not hold the last entry of snapshot {snapshot.id}")
        return last, entries[0]


def predecessor(snapshot: Snapshot) -> LogEntry:
    """Stands for the entry before the snapshot's last; only its index and term matter."""
    return bytes([NO_OP]), snapshot.id.index - 1, snapshot.previous_term


def align(journal: Journal, store: SnapshotStore, *, fresh: bool) -> None:
    """Make the recovered journal begin where the newest snapshot ends.

    A crash may fall between a snapshot and the compaction that follows it. The engine would find
    the two apart and empty the log, with acknowledged entries in it. Raises Fatal when the journal
    and the snapshots cannot belong together. `fresh`: the journal had to be made anew.
    """
    if store.latest is None:
        if journal.first_index > 1:
            raise Fatal(
                f"the journal begins at index {journal.first_index}, but there is no snapshot"
            )
        return
    snapshot = store.load(store.latest)
    index, term = snapshot.id.index, snapshot.id.term
    if fresh:
        # Term and vote are gone with it: this node could vote twice.
        raise Fatal(f"there is a snapshot at index {index}, but no journal")
    if journal.first_index > index:
        raise Fatal(
            f"the journal begins at index {journal.first_index}, "
            f"but the newest snapshot ends at {index}"
        )
    if term > journal.term:
        # No vote in that term can have been given: it would have been written down.
        journal.set_term(term, None)
    if journal.term_at(index) == term and journal.first_index < index:
        if journal.first_index < index - 1:
            journal.compact_to(index - 1)
    else:
        # The log ends before the snapshot, or its tail there was never committed.
        journal.clear()
        journal.append(*_indexed(predecessor(snapshot)))
        journal.append(index, term, snapshot.command)
    journal.set_commit_index(max(index, journal.commit_index))


def _indexed(entry: LogEntry) -> tuple[int, int, bytes]:
    command, index, term = entry
    return index, term, command


class SnapshotReceiver:
    """Puts the chunks of one snapshot together, then makes it durable."""

    def __init__(self, store: SnapshotStore, *, max_bytes: int) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._source: tuple[int, int, int, int] | None = None
        self._data = bytearray()

    def take(self, peer: int, chunk: SnapshotChunk) -> bytearray | None:
        """The whole snapshot with its last chunk; None while one is missing.

        Raises Fatal for a snapshot larger than the limit: this node can never catch up.
        """
        source = (peer, chunk.snapshot_index, chunk.snapshot_term, chunk.size)
        if chunk.size > self._max_bytes:
            raise Fatal(f"snapshot of {chunk.size} bytes, the limit is {self._max_bytes}")
        if chunk.offset == 0:
            self._source, self._data = source, bytearray()
        if source != self._source or chunk.offset != len(self._data):
            # Of another transmission, or after a lost connection: it will begin again.
            self._source, self._data = None, bytearray()
            return None
        self._data += chunk.data
        if len(self._data) < chunk.size:
            return None
        whole, self._source, self._data = self._data, None, bytearray()
        return whole

    async def install(self, chunk: SnapshotChunk, data: bytearray) -> Snapshot:
        """Check and store. Raises Fatal for a broken one, and when it cannot be stored."""
        snapshot = await check_received(SnapshotId(chunk.snapshot_index, chunk.snapshot_term), data)
        try:
            await self._store.install(snapshot.id, [data])
        except OSError as error:
            raise Fatal(f"a received snapshot cannot be stored: {error}") from error
        return snapshot
