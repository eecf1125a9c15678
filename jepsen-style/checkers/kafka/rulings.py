"""What a loss explains: a ruling on each anomaly that may come of one (RULES V1, V2).

A record that is missing is ruled on by the ledger. Anomalies of order may follow from the same
loss without any record being missing to a reader: once the last holder's disk was wiped, the log
begins again below offsets that were promised, so sends and positions go back, and polls pass over
what is no more. Such an anomaly is excused when **the promise on every record that it is about was
void before it was shown**: a record stands from the first event by which a client knew of it, and
a failure of the promise that came after the anomaly explains nothing.

Cycles, owners and epochs are no records' doing; no loss excuses them. Nor is the order within one
transaction excused: nobody was promised its records before all of them were sent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from ...history import NEVER
from ..verdict import Anomaly
from .content import excused
from .ledger import Guarantee, Ledger, Ruling
from .records import NOBODY, KeyLog, Records
from .settings import KafkaSettings

LOSSES = frozenset({"lost-write", "unseen", "lost-at-rest", "inconsistent-offsets"})
"""What a fault outside the guarantee may cause: a record gone, or another one in its place."""
GOES_BACK = frozenset(
    {"append-order-inversion", "nonmonotonic-send", "nonmonotonic-poll", "int-nonmonotonic-poll"}
)
"""What was sent or polled lies at or below a record that stood before: the log may have ended."""
PASSES_OVER = frozenset({"poll-skip", "int-poll-skip"})
"""Records between two that were polled were not: they may have been no more."""
WORST = tuple(Guarantee).index
"""The order from good to bad."""


class Rulings:
    """The ledger's word on the anomalies of one history."""

    def __init__(self, records: Records, settings: KafkaSettings, ledger: Ledger) -> None:
        self._records = records
        self._settings = settings
        self._ledger = ledger
        self._known: dict[tuple[str, int], Ruling] = {}

    def on(self, failing: Sequence[Anomaly]) -> Iterator[tuple[Anomaly, Ruling]]:
        """One for each missing record, and one for each anomaly of order that a loss explains or
        may explain. An anomaly of order in a log that kept its promise is just that: no ruling.
        """
        for anomaly in failing:
            if anomaly.kind in LOSSES:
                ruling = self._on_loss(anomaly)
            elif anomaly.kind in GOES_BACK:
                ruling = self._explained(anomaly, [self._stood_before(anomaly)])
            elif anomaly.kind in PASSES_OVER:
                ruling = self._explained(anomaly, self._passed_over(anomaly))
            else:
                ruling = None
            if ruling is not None:
                yield anomaly, ruling

    def _on_loss(self, anomaly: Anomaly) -> Ruling | None:
        place = self._records.history.completed[anomaly.operations[0]]
        if place == NEVER:
            return None  # never acknowledged: promised to nobody
        ruling = self._rule(anomaly, place)
        if anomaly.kind == "inconsistent-offsets":
            return ruling.before(self._shown(anomaly))
        return ruling

    def _explained(self, anomaly: Anomaly, stood: Sequence[int]) -> Ruling | None:
        """`stood`: by when each record that must be gone was there."""
        if NEVER in stood:
            return None
        shown = self._shown(anomaly)
        rulings = [self._rule(anomaly, place).before(shown) for place in stood]
        worst = max(rulings, key=lambda ruling: WORST(ruling.guarantee))
        return None if worst.guarantee is Guarantee.VIOLATION else worst

    def _rule(self, anomaly: Anomaly, place: int) -> Ruling:
        case = (anomaly.details["key"], place)
        if case not in self._known:
            self._known[case] = self._ledger.rule(*case)
        return self._known[case]

    def _shown(self, anomaly: Anomaly) -> int:
        """When the last operation of an anomaly ended, however it did."""
        history, last = self._records.history, anomaly.operations[-1]
        return history.given_up.get(last, history.completed[last])

    def _stood_before(self, anomaly: Anomaly) -> int:
        """By when the record was there below which the anomaly lies."""
        history, log = self._records.history, self._records.keys[anomaly.details["key"]]
        # The earlier of two operations is the newest that knew of it.
        earlier = history.completed[anomaly.operations[0]]
        if len(anomaly.operations) > 1 and earlier != NEVER:
            return earlier
        return self._stood(log, bisect_left(log.offsets, anomaly.details["since"]))

    def _passed_over(self, anomaly: Anomaly) -> list[int]:
        """By when each record was there that the poll did not deliver."""
        log = self._records.keys[anomaly.details["key"]]
        since = bisect_left(log.offsets, anomaly.details["since"])
        until = bisect_left(log.offsets, anomaly.details["offset"])
        return [
            self._stood(log, place)
            for place in range(since + 1, until)
            if not excused(log, place, self._settings)
        ]

    def _stood(self, log: KeyLog, place: int) -> int:
        """When a client first knew of the record at this index: its sender, or its first reader."""
        completed = self._records.history.completed
        knew = (log.writers[place], log.readers[place])
        return min((completed[one] for one in knew if one != NOBODY), default=NEVER)


__all__ = ["LOSSES", "WORST", "Rulings"]
