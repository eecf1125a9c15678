"""How far a log believes the `max_timestamp` that producers write into batch headers (case P09).

Some clients leave it at 0, at -1, or at the first record's time; lookups by time and retention then
go wrong for good. Kafka therefore walks over every record. That costs more than all the rest of an
append, so here the walk is made

* for every batch of few records, where it costs nothing to speak of;
* for one in `ONE_IN` of the others: a client that is wrong is wrong always;
* for all of them for a while, once a header was wrong.

A wrong maximum is put right. What remains are at most the first few large batches of a client that
never sends small ones; they may be passed over by a lookup by time, or kept longer by retention.
See docs/decisions/0007-trust-in-max-timestamp.md.
"""

from __future__ import annotations

FEW_RECORDS = 32
ONE_IN = 16
WARY_BATCHES = 10_000
"""How many batches are looked into after a wrong header."""


class HeaderTrust:
    """Of one log."""

    __slots__ = ("_seen", "_wary")

    def __init__(self) -> None:
        self._seen = 0
        self._wary = 0

    def must_look(self, records_count: int) -> bool:
        if records_count <= FEW_RECORDS:
            return True
        if self._wary:
            self._wary -= 1
            return True
        self._seen += 1
        return self._seen % ONE_IN == 1

    def would_look(self, records_count: int) -> bool:
        """What `must_look` would say now."""
        return records_count <= FEW_RECORDS or self._wary > 0 or (self._seen + 1) % ONE_IN == 1

    def on_wrong_header(self) -> None:
        self._wary = WARY_BATCHES
