"""What a log remembers of idempotent and transactional producers (KIP-98, KIP-360).

One sans-I/O state for leader, follower and recovery: the leader calls `check` first, then all call
`apply` with the same batch, after its bytes are in the log. So the state is a function of the
log's bytes below `map_end_offset` (and of the clock, for expiry).

Per producer id: the epoch and the last WINDOW batches of it. A batch that repeats one of those is a
duplicate and gets its original offset; else its first sequence must follow the last one, which
wraps from 2^31 - 1 to 0. Kafka 4 answers neither UNKNOWN_PRODUCER_ID nor DUPLICATE_SEQUENCE_NUMBER
any more: an unknown producer may begin at any sequence, since its state may have expired or been
deleted with the log's head.

Entries are immutable values, so that taking back an append is putting the old value back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from struct import Struct
from typing import NamedTuple

from ...seam import Buffer, frozen
from ...seam.checksum import crc32c
from ...wire import ErrorCode
from .errors import RecordsRejected
from .verification import NOT_ASKED, VerificationGuard, Verifications

WINDOW = 5
"""Batches remembered per producer: clients keep at most five requests in flight."""

SEQUENCE_LIMIT = 1 << 31
NO_PRODUCER_EPOCH = -1
LAST_PRODUCER_EPOCH = 32767
FIRST_VERSION_WITH_EPOCH_PER_TRANSACTION = 2
"""Of `transaction.version`."""
NO_SEQUENCE = -1
NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1

SNAPSHOT_VERSION = 1
_SNAPSHOT_HEADER = Struct(">hIi")
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")
_CRC_FROM = 6


class SnapshotDamaged(Exception):
    """A `.snapshot` file of another version, length or checksum: use the one before it."""


class Origin(Enum):
    """Who appends, which decides the checks (facts: S2)."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    """Offset commits and markers: epoch checked, no sequence."""
    REPLICATION = "replication"
    """The leader's log is the truth: nothing is refused."""


class ProducerBatch(NamedTuple):
    """The fields of a data batch's header that concern its producer."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    base_offset: int
    last_offset: int
    """Last offset less base offset spans the sequences, also in compacted batches."""
    timestamp_ms: int
    """Largest timestamp of the batch."""
    transactional: bool

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset - self.base_offset) % SEQUENCE_LIMIT


class Marker(NamedTuple):
    """A COMMIT or ABORT control record: the end of a producer's transaction in this partition."""

    producer_id: int
    producer_epoch: int
    offset: int
    timestamp_ms: int
    coordinator_epoch: int
    aborted: bool


class RememberedBatch(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def base_sequence(self) -> int:
        if self.last_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.last_sequence - self.offset_delta) % SEQUENCE_LIMIT

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry(NamedTuple):
    producer_epoch: int = NO_PRODUCER_EPOCH
    batches: tuple[RememberedBatch, ...] = ()
    """Oldest first, at most WINDOW, all of `producer_epoch`."""
    last_timestamp_ms: int = -1
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    transaction_first_offset: int = NO_OFFSET
    """First offset of the open transaction, NO_OFFSET when none is open."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def has_transaction_in(self, producer_epoch: int) -> bool:
        return self.transaction_first_offset != NO_OFFSET and self.producer_epoch == producer_epoch

    @property
    def last_data_offset(self) -> int:
        """NO_OFFSET when only a marker is known of it."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET


_UNKNOWN = ProducerEntry()


def _old_epoch(producer_id: int, producer_epoch: int, entry: ProducerEntry) -> RecordsRejected:
    return RecordsRejected(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"epoch {producer_epoch} of producer {producer_id} is smaller than the last seen epoch "
        f"{entry.producer_epoch}",
    )


class CompletedTransaction(NamedTuple):
    """What a marker ended; an aborted one goes into the segment's transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the marker."""
    aborted: bool
    last_stable_offset: int
    """Where the oldest other transaction still open began, else behind the marker. The watermark
    has no part in it: entries of the transaction index must be the same on every replica."""


class Undo(NamedTuple):
    """What `apply` replaced; handed back to `roll_back` in reverse order."""

    producer_id: int
    entry: ProducerEntry | None


@frozen
class ProducerSnapshot:
    """The state at one offset."""

    entries: Mapping[int, ProducerEntry]

    def encode(self) -> bytes:
        """A `.snapshot` file; of the window only the newest batch is kept (Kafka's format).

        version int16 1 | checksum uint32 of all that follows | count int32, then of each
        producer: id int64, epoch int16, last sequence int32, last offset int64, offset delta
        int32, timestamp int64, coordinator epoch int32, first offset of the open transaction
        int64
        """
        parts = []
        for producer_id, entry in sorted(self.entries.items()):
            last = entry.batches[-1] if entry.batches else None
            parts.append(
                _SNAPSHOT_ENTRY.pack(
                    producer_id,
                    entry.producer_epoch,
                    last.last_sequence if last else NO_SEQUENCE,
                    last.last_offset if last else NO_OFFSET,
                    last.offset_delta if last else 0,
                    entry.last_timestamp_ms,
                    entry.coordinator_epoch,
                    entry.transaction_first_offset,
                )
            )
        checked = len(parts).to_bytes(4, "big") + b"".join(parts)
        return SNAPSHOT_VERSION.to_bytes(2, "big") + crc32c(checked).to_bytes(4, "big") + checked


class ProducerStates:
    """State of all producers of one log. Memory: expired ids go by `expire`."""

    __slots__ = ("_entries", "_ongoing", "_unreplicated", "map_end_offset", "verifications")

    def __init__(self, map_end_offset: int = 0) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}
        """First offset of each open transaction -> producer id; offsets rise."""
        self._unreplicated: dict[int, CompletedTransaction] = {}
        """First offset -> ended transaction whose marker may lie above the high watermark."""
        self.map_end_offset = map_end_offset
        """The state is that of all batches below this offset."""
        self.verifications = Verifications()
        """The only part that is no function of the log; it may be lost at any time."""

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    def entries(self) -> dict[int, ProducerEntry]:
        """A copy, by producer id."""
        return dict(sorted(self._entries.items()))

    # The leader's checks.

    def begin_verification(
        self,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        *,
        supports_epoch_bump: bool,
        now_ms: int,
    ) -> VerificationGuard:
        """Before the coordinator is asked about a transactional batch: what to append it with;
        NOT_ASKED where its transaction is open already.

        Raises RecordsRejected: INVALID_PRODUCER_EPOCH.
        """
        entry = self._entries.get(producer_id, _UNKNOWN)
        if producer_epoch < entry.producer_epoch:
            raise _old_epoch(producer_id, producer_epoch, entry)
        if entry.has_transaction_in(producer_epoch):
            return NOT_ASKED
        return self.verifications.begin(
            producer_id,
            producer_epoch,
            sequence,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
        )

    def check(
        self, batch: ProducerBatch, origin: Origin, guard: VerificationGuard | None = None
    ) -> RememberedBatch | None:
        """The first copy when `batch` is a duplicate, None when it may be appended.

        `guard`: from `begin_verification`; None where nobody asks about transactions.

        Raises RecordsRejected: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or
        INVALID_TXN_STATE, in the order of Kafka's own checks.
        """
        entry = self._entries.get(batch.producer_id)
        if entry is None:
            if guard is not None:
                self._check_verified(batch, _UNKNOWN, guard)
            return None
        # The next sequence is by far the most frequent case, and never that of an older batch.
        is_next = batch.base_sequence == entry.last_sequence + 1
        same_epoch = batch.producer_epoch == entry.producer_epoch
        if origin is Origin.CLIENT and same_epoch and not is_next:
            last_sequence = batch.last_sequence
            for known in entry.batches:
                if (
                    known.last_sequence == last_sequence
                    and known.base_sequence == batch.base_sequence
                ):
                    return known
        if batch.producer_epoch < entry.producer_epoch:
            raise _old_epoch(batch.producer_id, batch.producer_epoch, entry)
        if guard is not None:
            self._check_verified(batch, entry, guard)
        if origin is Origin.CLIENT:
            self._check_sequence(batch, entry)
        if entry.transaction_first_offset != NO_OFFSET and not batch.transactional:
            raise RecordsRejected(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {batch.producer_id} has a transaction open here since offset "
                f"{entry.transaction_first_offset}",
            )
        return None

    def continues(self, batch: ProducerBatch) -> bool:
        """Is it in order behind what is known of its producer? False where nothing is known."""
        if batch.producer_id not in self._entries:
            return False
        try:
            self.check(batch, Origin.CLIENT)
        except RecordsRejected as rejected:
            # Whatever else is wrong with it is told by the append.
            return rejected.error is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return True

    def _check_verified(
        self, batch: ProducerBatch, entry: ProducerEntry, guard: VerificationGuard
    ) -> None:
        if batch.transactional and not entry.has_transaction_in(batch.producer_epoch):
            self.verifications.check(
                batch.producer_id, batch.base_sequence, guard, is_new=not entry.batches
            )

    def _check_sequence(self, batch: ProducerBatch, entry: ProducerEntry) -> None:
        if batch.producer_epoch != entry.producer_epoch:
            # A producer that was known without an epoch may continue anywhere.
            expected = 0 if entry.producer_epoch != NO_PRODUCER_EPOCH else batch.base_sequence
        else:
            expected = (entry.last_sequence + 1) % SEQUENCE_LIMIT
        if batch.base_sequence != expected:
            raise RecordsRejected(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id}, epoch {batch.producer_epoch}: sequence "
                f"{batch.base_sequence} arrived, {expected} was expected",
            )

    def check_marker(self, marker: Marker, transaction_version: int = 0) -> None:
        """Raises RecordsRejected: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.

        From `transaction_version` 2 on every transaction ends with an epoch of its own (KIP-890),
        so a marker of the known epoch is late: it belongs to the transaction before the open one
        (KAFKA-19446). With none open it is a repeat (KAFKA-19999); the last epoch has no successor
        (KAFKA-20090).
        """
        entry = self._entries.get(marker.producer_id, _UNKNOWN)
        late = (
            transaction_version >= FIRST_VERSION_WITH_EPOCH_PER_TRANSACTION
            and marker.producer_epoch == entry.producer_epoch
            and marker.producer_epoch != LAST_PRODUCER_EPOCH
            and entry.transaction_first_offset != NO_OFFSET
        )
        if late or marker.producer_epoch < entry.producer_epoch:
            raise RecordsRejected(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a marker of epoch {marker.producer_epoch} does not end what producer "
                f"{marker.producer_id} has open in epoch {entry.producer_epoch}",
            )
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise RecordsRejected(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} is smaller than the last seen "
                f"{entry.coordinator_epoch} of producer {marker.producer_id}",
            )

    # The state itself, alike on leader, follower and in recovery.

    def apply(self, batch: ProducerBatch) -> Undo:
        """`batch` is in the log."""
        producer_id, epoch, sequence, base_offset, last_offset, timestamp_ms, transactional = batch
        old = self._entries.get(producer_id)
        entry = old or _UNKNOWN
        offset_delta = last_offset - base_offset
        if sequence != NO_SEQUENCE:
            sequence = (sequence + offset_delta) % SEQUENCE_LIMIT
        remembered = RememberedBatch(sequence, last_offset, offset_delta, timestamp_ms)
        same_epoch = entry.producer_epoch == epoch
        batches = (*entry.batches[1 - WINDOW :], remembered) if same_epoch else (remembered,)
        first_offset = entry.transaction_first_offset
        if transactional and first_offset == NO_OFFSET:
            first_offset = base_offset
            self._ongoing[first_offset] = producer_id
        self._entries[producer_id] = ProducerEntry(
            epoch, batches, timestamp_ms, entry.coordinator_epoch, first_offset
        )
        self.map_end_offset = last_offset + 1
        if transactional:
            self.verifications.on_data(producer_id)
        return Undo(producer_id, old)

    def apply_marker(self, marker: Marker) -> tuple[Undo, CompletedTransaction | None]:
        """`marker` is in the log: it ends the open transaction, if any.

        Under the same epoch the window stays (a transaction of the first protocol ended), a new
        epoch clears it (KIP-890: the next data batch begins at sequence 0).
        """
        old = self._entries.get(marker.producer_id)
        entry = old or _UNKNOWN
        completed = None
        if entry.transaction_first_offset != NO_OFFSET:
            self._ongoing.pop(entry.transaction_first_offset, None)
            completed = CompletedTransaction(
                marker.producer_id,
                entry.transaction_first_offset,
                marker.offset,
                marker.aborted,
                next(iter(self._ongoing), marker.offset + 1),
            )
            self._unreplicated[completed.first_offset] = completed
        self._entries[marker.producer_id] = ProducerEntry(
            marker.producer_epoch,
            entry.batches if entry.producer_epoch == marker.producer_epoch else (),
            marker.timestamp_ms,
            marker.coordinator_epoch,
            NO_OFFSET,
        )
        self.map_end_offset = marker.offset + 1
        self.verifications.on_marker(marker.producer_id, marker.producer_epoch)
        return Undo(marker.producer_id, old), completed

    def roll_back(self, undos: Iterable[Undo], end_offset: int) -> None:
        """Take back the newest `apply` calls (given oldest first): the log ends at `end_offset`."""
        for undo in reversed(list(undos)):
            if undo.entry is None:
                self._entries.pop(undo.producer_id, None)
            else:
                self._entries[undo.producer_id] = undo.entry
        self.map_end_offset = end_offset
        self._unreplicated = {
            first: completed
            for first, completed in self._unreplicated.items()
            if completed.last_offset < end_offset
        }
        self._derive_ongoing()

    def _derive_ongoing(self) -> None:
        self._ongoing = dict(
            sorted(
                (entry.transaction_first_offset, producer_id)
                for producer_id, entry in self._entries.items()
                if entry.transaction_first_offset != NO_OFFSET
            )
        )

    def clear(self, map_end_offset: int) -> None:
        self._entries.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self.verifications.clear()
        self.map_end_offset = map_end_offset

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers silent for `producer.id.expiration.ms`, unless a transaction is open."""
        for producer_id in [
            producer_id
            for producer_id, entry in self._entries.items()
            if entry.transaction_first_offset == NO_OFFSET
            and now_ms - entry.last_timestamp_ms >= expiration_ms
        ]:
            del self._entries[producer_id]
        self.verifications.expire(now_ms, expiration_ms)

    # Transactions and the high watermark.

    def last_stable_offset(self, high_watermark: int) -> int:
        """Smallest of the high watermark and the first offset of every transaction that is open or
        whose marker is not yet below the high watermark."""
        stable = high_watermark
        for first_offset in self._ongoing:
            stable = min(stable, first_offset)
            break
        for first_offset, completed in self._unreplicated.items():
            if completed.last_offset >= high_watermark:
                stable = min(stable, first_offset)
        return stable

    def on_high_watermark(self, high_watermark: int) -> None:
        """Markers below it no longer hold the last stable offset back."""
        if self._unreplicated:
            self._unreplicated = {
                first: completed
                for first, completed in self._unreplicated.items()
                if completed.last_offset >= high_watermark
            }

    # Snapshot files.

    def capture(self) -> ProducerSnapshot:
        """The state now, to be written later. Entries never change, so a copy of the table is all
        it takes: a roll stands in the way of an append (KAFKA-15046)."""
        return ProducerSnapshot(dict(self._entries))

    def snapshot(self) -> bytes:
        """A `.snapshot` file."""
        return self.capture().encode()

    @classmethod
    def load(cls, data: Buffer, map_end_offset: int) -> ProducerStates:
        """The state that `snapshot` wrote at `map_end_offset`. Raises SnapshotDamaged."""
        if len(data) < _SNAPSHOT_HEADER.size:
            raise SnapshotDamaged(f"{len(data)} bytes")
        version, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
        if version != SNAPSHOT_VERSION:
            raise SnapshotDamaged(f"version {version}")
        if crc32c(memoryview(data)[_CRC_FROM:]) != crc:
            raise SnapshotDamaged("checksum")
        if len(data) != _SNAPSHOT_HEADER.size + count * _SNAPSHOT_ENTRY.size:
            raise SnapshotDamaged(f"{len(data)} bytes for {count} entries")
        states = cls(map_end_offset)
        body = memoryview(data)[_SNAPSHOT_HEADER.size :]
        for fields in _SNAPSHOT_ENTRY.iter_unpack(body):
            producer_id, epoch, sequence, offset, delta, timestamp, coordinator, first = fields
            batches = (RememberedBatch(sequence, offset, delta, timestamp),) if offset >= 0 else ()
            states._entries[producer_id] = ProducerEntry(
                epoch, batches, timestamp, coordinator, first
            )
        states._derive_ongoing()
        return states

    def refill_windows(self, older: Iterable[ProducerBatch]) -> None:
        """Give back what a snapshot does not hold: the batches before each producer's last one.

        `older` are batches of the log below the snapshot, in order. Without this, a retry of the
        last but one batch would be refused after a restart, and the producer would write it twice.
        """
        found: dict[int, list[RememberedBatch]] = {}
        for batch in older:
            entry = self._entries.get(batch.producer_id)
            if (
                entry is not None
                and entry.batches
                and batch.producer_epoch == entry.producer_epoch
                and batch.last_offset < entry.batches[0].last_offset
            ):
                window = found.setdefault(batch.producer_id, [])
                window.append(
                    RememberedBatch(
                        batch.last_sequence,
                        batch.last_offset,
                        batch.last_offset - batch.base_offset,
                        batch.timestamp_ms,
                    )
                )
                del window[: -(WINDOW - 1)]
        for producer_id, window in found.items():
            entry = self._entries[producer_id]
            self._entries[producer_id] = entry._replace(batches=(*window, *entry.batches)[-WINDOW:])
