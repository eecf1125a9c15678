"""What an idempotent producer has on its way to one partition, and what an answer means for it.

Up to `size` batches are under way, their sequences following each other (KIP-98):

    WAITING -> FLYING -> acknowledged
                      -> WAITING again, when the answer is an error or does not come

A broker takes only the batch whose sequence is next. So one that fails has those behind it answered
OUT_OF_ORDER_SEQUENCE_NUMBER, which says nothing of them but that they were not appended: all are
sent again, under the sequences they have, in their order. Only where *everything before* a batch
was acknowledged when it was sent does that answer mean that the broker does not know what it has
acknowledged (Java's `isNextSequence`, librdkafka's `r == 0`).

Two ways to send again are known. Java's client sends the first one alone, at once, while answers to
those behind it may be outstanding, and the next one when it is through. librdkafka waits until
nothing is under way, then sends all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

SENT_AGAIN = frozenset(
    {
        "CORRUPT_MESSAGE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
        "REQUEST_TIMED_OUT",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "KAFKA_STORAGE_ERROR",
        "UNKNOWN_SERVER_ERROR",
    }
)
"""What an idempotent producer answers with the same batch, whose sequence keeps it single."""

OUT_OF_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"

NOT_APPENDED = frozenset({"NOT_ENOUGH_REPLICAS", OUT_OF_ORDER, "INVALID_PRODUCER_EPOCH"})
"""Errors of which it is certain. NOT_LEADER_OR_FOLLOWER is none: it is also what a batch is told
that waits while the lead is taken away."""

DISAGREEMENTS = 3
"""So often in a row a broker may say that it does not know what was acknowledged: one that was
deposed and has not heard of it knows no better."""


class Resend(Enum):
    FIRST = "first"
    """The first alone, at once (Java)."""
    ALL = "all"
    """All, when nothing is under way (librdkafka)."""


class Verdict(Enum):
    """What an answer means."""

    ACKNOWLEDGED = "acknowledged"
    AGAIN = "again"
    DISAGREED = "disagreed"
    """Sent again, too, though everything before it was acknowledged."""
    BROKEN = "broken"
    """These sequences lead nowhere."""


@dataclass(eq=False, slots=True)
class Sending:
    """A batch from its making to its end."""

    names: list[str]
    process: int
    """Of the history."""
    deadline: float
    """Of the loop's clock: then its outcome may stay unknown."""
    timestamp_ms: int
    base_sequence: int
    data: bytes = b""
    """As it is sent, the same each time; empty before the first."""
    flying: bool = False
    sent_before: bool = False
    in_doubt: bool = False
    """Some attempt may have been carried out."""
    was_first: bool = False
    """Everything before it was acknowledged when it was last sent."""


@dataclass(eq=False, slots=True)
class Window:
    """Of one partition."""

    size: int
    resend: Resend
    sendings: list[Sending] = field(default_factory=list)
    """By rising sequence; what is acknowledged or given up has left."""
    next_sequence: int = 0
    _draining: bool = False
    _disagreements: int = 0

    @property
    def room(self) -> int:
        return self.size - len(self.sendings)

    @property
    def flying(self) -> bool:
        return any(sending.flying for sending in self.sendings)

    def add(self, names: list[str], *, process: int, deadline: float, timestamp_ms: int) -> Sending:
        assert self.room > 0
        sending = Sending(names, process, deadline, timestamp_ms, self.next_sequence)
        self.next_sequence += len(names)
        self.sendings.append(sending)
        return sending

    def next_to_send(self) -> Sending | None:
        if self._draining:
            if self.flying:
                return None
            self._draining = False
        again = [sending for sending in self.sendings if sending.sent_before and not sending.flying]
        if again and self.resend is Resend.FIRST:
            return again[0] if again[0] is self.sendings[0] else None
        return next((sending for sending in self.sendings if not sending.flying), None)

    def on_sent(self, sending: Sending) -> None:
        sending.flying = True
        sending.sent_before = True
        sending.was_first = self.sendings[0] is sending

    def on_answer(self, sending: Sending, error: str, *, in_doubt: bool) -> Verdict:
        """`error`: Kafka's name, or a sentence in small letters where there was no answer.
        `in_doubt`: what was asked may have been done."""
        sending.flying = False
        if error == "NONE":
            self._disagreements = 0
            self.sendings.remove(sending)
            return Verdict.ACKNOWLEDGED
        sending.in_doubt |= in_doubt and error not in NOT_APPENDED
        if self.resend is Resend.ALL:
            self._draining = True
        if error == OUT_OF_ORDER:
            if not sending.was_first:
                return Verdict.AGAIN
            self._disagreements += 1
            return Verdict.DISAGREED if self._disagreements < DISAGREEMENTS else Verdict.BROKEN
        return Verdict.AGAIN if error in SENT_AGAIN or not error.isupper() else Verdict.BROKEN

    def begin_anew(self) -> list[Sending]:
        """Under another epoch or producer id, where sequences begin at 0. Nothing may be flying.

        Returns what is given up: a broker cannot know again, under another epoch, what it may have
        appended under this one. What certainly was not appended is sent as if it were new.
        """
        assert not self.flying
        given_up = [sending for sending in self.sendings if sending.in_doubt]
        self.sendings = [sending for sending in self.sendings if not sending.in_doubt]
        self.next_sequence = 0
        for sending in self.sendings:
            sending.base_sequence = self.next_sequence
            sending.data = b""
            sending.sent_before = False
            self.next_sequence += len(sending.names)
        self._draining = False
        self._disagreements = 0
        return given_up
