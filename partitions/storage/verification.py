"""Proof that a transaction was asked for before its first batch here is appended (KIP-890).

A producer's batch may arrive long after its transaction has ended. Appended then, it would open
a transaction that nobody ends, and readers of committed data would stand still for ever. So before
the first batch of a transaction in a partition the coordinator is asked, and the answer is believed
only if nothing has happened meanwhile: whoever asks gets a *guard* first, and the batch is appended
only while that very guard is the producer's current one. The first append takes it away, and so
does a marker: an answer that comes after the marker cannot open the next transaction (the ABA of
verified, ended, begun anew).

Nothing of this is in the log: after a restart, or under another leader, the next batch asks again.
"""

from __future__ import annotations

from ...wire import ErrorCode
from .errors import RecordsRejected

NO_SEQUENCE = -1


class VerificationGuard:
    """Equal to nothing but itself."""

    __slots__ = ("begun_ms", "lowest_sequence", "producer_epoch", "supports_epoch_bump")

    def __init__(
        self,
        *,
        producer_epoch: int,
        lowest_sequence: int,
        supports_epoch_bump: bool,
        begun_ms: int = 0,
    ) -> None:
        self.begun_ms = begun_ms
        self.producer_epoch = producer_epoch
        self.lowest_sequence = lowest_sequence
        """Of the batches that asked: none of a higher sequence may open the transaction
        (KAFKA-14920: the first one's question failed, the second one's did not)."""
        self.supports_epoch_bump = supports_epoch_bump
        """The client speaks the second protocol: each transaction has an epoch of its own."""


NOT_ASKED = VerificationGuard(
    producer_epoch=-1, lowest_sequence=NO_SEQUENCE, supports_epoch_bump=False
)
"""The transaction was open when the batch arrived, so nobody was asked: good only while it is."""


class Verifications:
    """The guards of one log: one for each producer that has asked and not appended; those of whom
    nothing more is heard go by `expire`."""

    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: dict[int, VerificationGuard] = {}

    def begin(
        self,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        *,
        supports_epoch_bump: bool,
        now_ms: int,
    ) -> VerificationGuard:
        """The producer's current guard, or a new one where its epoch or protocol has changed."""
        guard = self._guards.get(producer_id)
        if (
            guard is None
            or guard.producer_epoch < producer_epoch
            or guard.supports_epoch_bump != supports_epoch_bump
        ):
            guard = self._guards[producer_id] = VerificationGuard(
                producer_epoch=producer_epoch,
                lowest_sequence=sequence,
                supports_epoch_bump=supports_epoch_bump,
                begun_ms=now_ms,
            )
        elif sequence < guard.lowest_sequence:
            guard.lowest_sequence = sequence
        return guard

    def check(
        self, producer_id: int, base_sequence: int, guard: VerificationGuard, *, is_new: bool
    ) -> None:
        """Before the first batch of a transaction; `is_new`: nothing is known of the producer.

        Raises RecordsRejected: INVALID_TXN_STATE, OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        if self._guards.get(producer_id) is not guard:
            raise RecordsRejected(
                ErrorCode.INVALID_TXN_STATE,
                f"nobody has said that producer {producer_id} has a transaction here",
            )
        if guard.supports_epoch_bump and is_new and base_sequence != 0:
            raise RecordsRejected(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} begins with sequence {base_sequence}",
            )
        if base_sequence > guard.lowest_sequence:
            raise RecordsRejected(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id}: sequence {base_sequence} before {guard.lowest_sequence}, "
                "which was seen and is not in the log",
            )

    def on_data(self, producer_id: int) -> None:
        """A batch of the producer is in the log."""
        self._guards.pop(producer_id, None)

    def on_marker(self, producer_id: int, producer_epoch: int) -> None:
        """A marker is in the log. In the second protocol it bears the epoch of the next
        transaction, and a guard of that epoch belongs to it: it has already begun."""
        guard = self._guards.get(producer_id)
        if guard is None:
            return
        if not (guard.supports_epoch_bump and guard.producer_epoch == producer_epoch):
            del self._guards[producer_id]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        for producer_id, guard in list(self._guards.items()):
            if now_ms - guard.begun_ms >= expiration_ms:
                del self._guards[producer_id]

    def clear(self) -> None:
        self._guards.clear()
