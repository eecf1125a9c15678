"""Producer ids from the cluster (POST /api/v1/producers)."""

from __future__ import annotations

from .batches import Identity
from .deadline import Deadline
from .transport import Repeat, Transport


class Identities:
    """One id serves all partitions of a producer, until what became of a batch is not known: the
    sequence of that partition can then not go on, and it begins anew under another id."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._shared: Identity | None = None

    async def first(self, deadline: Deadline) -> Identity:
        if self._shared is None:
            self._shared = await self.fresh(deadline)
        return self._shared

    async def fresh(self, deadline: Deadline) -> Identity:
        # An id that is given out and lost on the way is one of 2^63.
        answer = await self._transport.call(
            "POST", "/api/v1/producers", json={}, deadline=deadline, repeat=Repeat.SAFELY
        )
        document = answer.document
        return Identity(int(document["producer_id"]), int(document["producer_epoch"]))
