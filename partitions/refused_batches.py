"""What comes behind a refused batch is refused with it, so that a producer's order stays whole.

An idempotent producer sends up to five batches before it has an answer to the first (KIP-98). A
broker that refuses the first, and by the time of the second no longer would, does harm with it:

* to a producer whom the log does not know it may begin at any sequence (its state may have
  expired), so the second batch is appended in place of the first. The first can never follow, and
  librdkafka even concludes from the second's success that the first was written: it is
  acknowledged, and lost;
* a known producer is answered OUT_OF_ORDER_SEQUENCE_NUMBER. librdkafka then begins a new epoch for
  *all* its partitions and numbers anew what still waits to be sent again: a batch of another
  partition that is in the log, and whose answer was lost, is written twice.

The moment is that of every election: a client hears of the new leader before that leader has taken
up the image itself; likewise when an ISR grows back to `min.insync.replicas`, a topic becomes known
here, or a disk has room again. Kafka's own coordinators of transactions meet the same in KIP-890
(no verified batch above the lowest sequence that is being verified).

So who comes behind is answered as the first was, until the first comes again, or until more have
been refused than can have been on their way. A batch that continues what the log holds is never
refused: the first then came in through another leader.
"""

from __future__ import annotations

from uuid import UUID

from ..seam import Buffer
from ..wire import ErrorCode
from ..wire.records import BatchHeader, RecordsError, parse_header
from .roles import Refused
from .storage import LeaderBatch, PartitionLog
from .storage.producer_states import SEQUENCE_LIMIT, WINDOW

BEHIND = 2 * (WINDOW - 1)
"""Batches that may still come behind a refused one: those in the buffers of a connection that was
given up, and the same ones on its successor."""

MAX_REMEMBERED = 1024
"""Refused batches of one node; the oldest are forgotten first. Each stands for one producer that
writes to one partition, and matters for the moment until its answer has reached the client."""

Place = tuple[str | UUID, int]
"""Name or id of the topic, as the request had it, and the partition."""

_Key = tuple[Place, int, int]
"""Place, producer id, producer epoch."""


class _First:
    """The refused batch that the others stand behind."""

    __slots__ = ("behind", "error", "sequence")

    def __init__(self, sequence: int, error: ErrorCode) -> None:
        self.sequence = sequence
        self.error = error
        self.behind = 0
        """Refused behind it so far."""


class RefusedBatches:
    """Those of one node. Falsy while there are none, which is nearly always."""

    def __init__(self) -> None:
        self._firsts: dict[_Key, _First] = {}

    def __len__(self) -> int:
        return len(self._firsts)

    def note(self, place: Place, records: Buffer, error: ErrorCode) -> None:
        """A client was told that this batch was not appended, or perhaps not. Only errors after
        which it sends the same batch again make others wait for it."""
        if not error.retriable:
            return
        try:
            header = parse_header(records)
        except RecordsError:
            return
        if header.producer_id < 0:
            return
        key = place, header.producer_id, header.producer_epoch
        first = self._firsts.get(key)
        if first is not None and _is_behind(header, first):
            first.behind += 1
            if first.behind == BEHIND:
                del self._firsts[key]
            return
        if len(self._firsts) >= MAX_REMEMBERED:
            del self._firsts[next(iter(self._firsts))]
        self._firsts.pop(key, None)  # The newest are at the end.
        self._firsts[key] = _First(header.base_sequence, error)

    def require_not_behind(
        self, place: Place, records: Buffer | LeaderBatch, log: PartitionLog
    ) -> None:
        """Before a client's batch is appended. Raises Refused, of which the caller makes a note as
        of every other."""
        try:
            header = records.header if isinstance(records, LeaderBatch) else parse_header(records)
        except RecordsError:
            return  # The append itself says what is wrong with it.
        key = place, header.producer_id, header.producer_epoch
        first = self._firsts.get(key)
        if first is None:
            return
        if header.base_sequence == first.sequence or log.continues(header):
            del self._firsts[key]
        elif _is_behind(header, first):
            raise Refused(first.error)


def _is_behind(header: BatchHeader, first: _First) -> bool:
    ahead = (header.base_sequence - first.sequence) % SEQUENCE_LIMIT
    return 0 < ahead < SEQUENCE_LIMIT // 2
