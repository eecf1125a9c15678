"""Which batches and records outlive a round of compaction: Kafka's rules, in one place.

A record outlives it when no later record of its key lies in the dirty part, and when it has a value
or is a tombstone whose time is not up. A tombstone's time begins with the first round that meets
it: that round writes the *delete horizon*, now + `delete.retention.ms`, into the batch's header
(KIP-534); a round after that time leaves it out. So a reader that needs less than that for the
whole log sees every tombstone whose value it may have seen. A marker whose transaction has no data
left is treated like a tombstone.

Beyond `latest_offset` of the map nothing is known of keys: records there stay as they are.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from ....seam import frozen
from ....wire.records import BatchHeader
from ..raw_records import RawRecord
from .batch_rebuild import delete_horizon
from .key_map import KeyMap


class Verdict(Enum):
    """What becomes of a batch."""

    COPY = auto()
    """Stays as it is."""
    AGE = auto()
    """Stays, and its time begins to run: it gets a delete horizon."""
    FILTER = auto()
    """Records are judged one by one; without any left it goes."""
    FILTER_KEEP = auto()
    """As FILTER, but without any left its header stays."""
    EMPTY = auto()
    """All its records go, its header stays."""
    DROP = auto()


@frozen
class LastOfProducer:
    """What must stay in the log of a producer that is still known."""

    last_data_offset: int
    """-1: nothing but a marker is left of it, and that marker must stay, for its epoch."""
    producer_epoch: int


class LastOfProducers(Protocol):
    """Asked for single producers: a log may know a hundred thousand."""

    def get(self, producer_id: int, /) -> LastOfProducer | None: ...


@frozen
class Retention:
    """The rules of one round over one log."""

    keys: KeyMap
    now_ms: int
    delete_retention_ms: int
    producers: LastOfProducers
    end_offset: int
    """First offset that this round may not touch; the batch that ends there stays, be it empty."""

    def verdict(self, header: BatchHeader, *, discard: bool) -> Verdict:
        """`discard`: aborted data, or a marker whose transaction has no data left."""
        must_stay = self._is_last_of_producer(header) or header.next_offset == self.end_offset
        if header.is_control:
            return self._of_marker(header, discard, must_stay)
        if discard:
            return Verdict.EMPTY if must_stay else Verdict.DROP
        if header.base_offset > self.keys.latest_offset:
            return Verdict.COPY
        return Verdict.FILTER_KEEP if must_stay else Verdict.FILTER

    def _of_marker(self, header: BatchHeader, discard: bool, must_stay: bool) -> Verdict:
        """Its one record is never judged by its key (KAFKA-14055)."""
        horizon = delete_horizon(header)
        if header.records_count == 0:
            return Verdict.COPY if must_stay else Verdict.DROP
        if not discard:
            return Verdict.COPY
        if horizon is None:
            return Verdict.AGE
        if self.now_ms < horizon:
            return Verdict.COPY
        return Verdict.EMPTY if must_stay else Verdict.DROP

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.producers.get(header.producer_id)
        if last is None or not header.has_producer_id:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def keeps(self, header: BatchHeader, record: RawRecord) -> bool:
        """A record of a batch judged FILTER or FILTER_KEEP."""
        offset = header.base_offset + record.offset_delta
        if record.key is None or offset < self.keys.newest(record.key):
            # Without a key: written before the topic was compacted; nothing can replace it.
            return False
        return record.has_value or self._tombstone_stays(header)

    def _tombstone_stays(self, header: BatchHeader) -> bool:
        horizon = delete_horizon(header)
        return horizon is None or self.now_ms < horizon

    def horizon_for(self, header: BatchHeader, *, mortal: bool) -> int | None:
        """The delete horizon that what is left of the batch gets; `mortal`: a tombstone is left, or
        a marker without data."""
        horizon = delete_horizon(header)
        if horizon is None and mortal:
            return self.now_ms + self.delete_retention_ms
        return horizon
