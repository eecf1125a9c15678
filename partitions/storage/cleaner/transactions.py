"""What the cleaner must know of transactions while it walks a log from its start.

Aborted data may go at once, whatever its keys. A marker must outlive the data of its transaction,
else that data would look committed, or open for ever; an entry of the transaction index must live
as long as the data it tells of. One state for a whole round: a transaction may span any number of
segments and groups of segments (KAFKA-8351), also the part of a segment that is not cleaned
(KAFKA-13727).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from ....wire.records import BatchHeader
from ..transaction_index import AbortedTransaction


class CleanedTransactions:
    """Told of every batch in the order of the log; says which may be discarded."""

    def __init__(self) -> None:
        self._coming: list[tuple[int, int, AbortedTransaction]] = []
        """Heap by (first offset, marker's offset): aborted transactions not yet reached."""
        self._aborted: dict[int, AbortedTransaction] = {}
        """By producer id: reached, marker not yet seen."""
        self._aborted_with_data: dict[int, None] = {}
        """Those of `_aborted` of which a batch was met."""
        self._committed: dict[int, None] = {}
        """Producer ids of transactions that were not aborted, with a batch met and no marker."""

    def expect(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Entries of the segments that come next, whole segments (KAFKA-13727)."""
        for entry in aborted:
            heapq.heappush(self._coming, (entry.first_offset, entry.last_offset, entry))

    def on_batch(self, header: BatchHeader) -> bool:
        """A data batch; True when it is of an aborted transaction."""
        self._reach(header.last_offset)
        if not header.is_transactional:
            return False
        producer_id = header.producer_id
        if producer_id in self._aborted:
            self._aborted_with_data[producer_id] = None
            return True
        self._committed[producer_id] = None
        return False

    def on_marker(
        self, header: BatchHeader, aborted: bool | None
    ) -> tuple[bool, AbortedTransaction | None]:
        """A control batch; `aborted`: what its marker says, None when it has none.

        Whether it may be discarded, and the index entry to write when it may not be.
        """
        self._reach(header.last_offset)
        producer_id = header.producer_id
        if header.records_count == 0:
            return True, None  # Emptied by an earlier pass.
        if aborted is None:
            return False, None
        if aborted:
            entry = self._aborted.pop(producer_id, None)
            if self._aborted_with_data.pop(producer_id, ...) is ...:
                return True, None
            return False, entry
        return self._committed.pop(producer_id, ...) is ..., None

    def _reach(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            _, _, entry = heapq.heappop(self._coming)
            self._aborted.setdefault(entry.producer_id, entry)
