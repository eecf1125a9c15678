"""What a loss explains: a ruling on each anomaly that may come of one (RULES V1, V2).

A record that is missing is ruled on by the ledger. Anomalies of order may follow from the same
loss without any record being missing to a reader: once the last holder's disk was wiped, the log
begins again below offsets that were promised, so sends and positions go back, and polls pass over
what is no more. Such an anomaly is excused when **the promise on every record that it is about was
void before it was shown**: a record stands from the first event by which a client knew of it, and
a failure of the promise that came after the anomaly explains nothing.

A group's offsets and generations are records, too, of a partition of their own. Where a run says
which one (observation `group`), its ledger rules on what the group forgot: the newest commit that
was answered before, the assignment that was answered first. Without that a group's anomaly has no
excuse.

Cycles and epochs are no records' doing, and no loss excuses them: a record is not read before it is
sent, whatever is lost (edges are drawn from record to record), and leader epochs live in the
quorum's log, where a replica that lost its disk has no vote (RULES B3). Nor is the order within one
transaction excused: nobody was promised its records before all of them were sent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from ...history import NEVER
from ..verdict import Anomaly
from .content import excused
from .ledger import Guarantee, Ledger, Ruling
from .observations import observed
from .records import NOBODY, KeyLog, Records
from .settings import KafkaSettings

LOSSES = frozenset(
    {"lost-write", "unseen", "lost-at-rest", "inconsistent-offsets", "skipped-by-group"}
)
"""What a fault outside the guarantee may cause: a record gone, or another one in its place."""
GOES_BACK = frozenset(
    {"append-order-inversion", "nonmonotonic-send", "nonmonotonic-poll", "int-nonmonotonic-poll"}
)
"""What was sent or polled lies at or below a record that stood before: the log may have ended."""
PASSES_OVER = frozenset({"poll-skip", "int-poll-skip"})
"""Records between two that were polled were not: they may have been no more."""
FORGOTTEN = frozenset({"lost-commit", "stale-commit", "two-owners", "generation-went-back"})
"""What a group knew, it knew from the records of its own partition."""
WORST = tuple(Guarantee).index
"""The order from good to bad."""


class Rulings:
    """The ledger's word on the anomalies of one history."""

    def __init__(self, records: Records, settings: KafkaSettings, ledger: Ledger) -> None:
        self._records = records
        self._settings = settings
        self._ledger = ledger
        self._known: dict[tuple[str, int], Ruling] = {}
        self._home: dict[str, str] = {
            seen["group"]: seen["key"] for _, seen in observed(records.history, "group")
        }
        """By group: the partition that keeps its offsets and generations."""

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
            elif anomaly.kind in FORGOTTEN:
                ruling = self._on_group(anomaly)
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
            # Shown when a client first knew of a second record there.
            return ruling.before(self._ended(anomaly.operations[:2][-1]))
        return ruling

    def _on_group(self, anomaly: Anomaly) -> Ruling | None:
        home = self._home.get(anomaly.details["group"])
        if home is None:
            return None
        place = self._records.history.completed[anomaly.operations[0]]
        if anomaly.kind == "lost-commit":
            place = self._newest_commit(anomaly)
        if place == NEVER:
            return None
        return self._rule_on(home, place).before(self._shown(anomaly))

    def _newest_commit(self, anomaly: Anomaly) -> int:
        """When the last commit was answered that the anomaly's last reader had to see; NEVER when
        there is none, or when the reader was told what nobody committed: no loss does that.
        """
        history, register = self._records.history, anomaly.details["register"]
        reader = max(anomaly.operations, key=history.completed.__getitem__)
        commits = [(index, offset) for index, to, offset in self._records.commits if to == register]
        told = {found for index, of, found in self._records.committed if index == reader}
        if not told <= {None, *(offset for _, offset in commits)}:
            return NEVER
        ends = [history.completed[index] for index, _ in commits]
        return max((end for end in ends if end < history.invoked[reader]), default=NEVER)

    def _explained(self, anomaly: Anomaly, stood: Sequence[int]) -> Ruling | None:
        """`stood`: by when each record that must be gone was there."""
        if NEVER in stood:
            return None
        shown = self._shown(anomaly)
        rulings = [self._rule(anomaly, place).before(shown) for place in stood]
        worst = max(rulings, key=lambda ruling: WORST(ruling.guarantee))
        return None if worst.guarantee is Guarantee.VIOLATION else worst

    def _rule(self, anomaly: Anomaly, place: int) -> Ruling:
        return self._rule_on(anomaly.details["key"], place)

    def _rule_on(self, key: str, place: int) -> Ruling:
        case = (key, place)
        if case not in self._known:
            self._known[case] = self._ledger.rule(*case)
        return self._known[case]

    def _shown(self, anomaly: Anomaly) -> int:
        return self._ended(anomaly.operations[-1])

    def _ended(self, operation: int) -> int:
        """When an operation ended, however it did."""
        history = self._records.history
        return history.given_up.get(operation, history.completed[operation])

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
