"""G9: durable first, then spoken."""

from __future__ import annotations

from collections import deque

from ..messages import Ack, Append, Message, SnapshotChunk, SnapshotOffer
from .guard import Guard, GuardContext

MAX_HELD = 1000
"""Acknowledgements of one peer that wait for the own disk."""


class DurableFirst(Guard):
    """Corrects: the engine never waits for its disk (finding J; RULES E2).

    What leaves: an acknowledgement, a vote or a request for votes waits until everything written
    so far is synced; a leader's append only for its term, since its entries are counted by those
    who have synced them. Messages to a peer leave in order.

    What is counted: the engine's leader counts itself for every entry in its log. So it gets an
    acknowledgement for index i only when its own journal is synced to i; heartbeats go on. If that
    takes longer than the fallback time-out, the acknowledgements' absence makes it step down. In a
    cluster of one voter there is nobody to hold back: there the engine may look at its log only
    when all of it is synced.
    """

    name = "G9"

    def __init__(self, node: GuardContext) -> None:
        super().__init__(node)
        self._held: dict[int, deque[Ack]] = {peer: deque() for peer in node.peers}

    def depends_on(self, message: Message) -> int:
        if isinstance(message, Append | SnapshotOffer | SnapshotChunk):
            return self.node.journal.term_position
        return self.node.journal.written

    def may_tick(self) -> bool:
        return bool(self._held) or self.node.journal.clean

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if not isinstance(message, Ack):
            return message
        held = self._held[peer]
        if not held and self._countable(message):
            return message
        if held and (held[-1].term != message.term or len(held) >= MAX_HELD):
            # Losing an acknowledgement is always safe: the next heartbeat brings another.
            held.clear()
        if held and message.success and held[-1].success:
            # They only grow within a term: the newer one says it all.
            held[-1].next_index = max(held[-1].next_index, message.next_index)
        else:
            held.append(message)
        return None

    def on_synced(self) -> None:
        for peer, held in self._held.items():
            while held and self._countable(held[0]):
                self.node.hand_on(self, peer, held.popleft())

    def _countable(self, message: Ack) -> bool:
        return not message.success or message.next_index - 1 <= self.node.journal.synced_index
