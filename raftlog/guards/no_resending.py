"""Entries travel once per connection."""

from __future__ import annotations

from ..messages import Ack, Append, Message, SnapshotOffer
from .guard import Guard, GuardContext


class NoResending(Guard):
    """Corrects: every acknowledgement makes the leader send again what is already on its way.

    The engine sets a follower's next index *back* to each acknowledged position, so with several
    appends in flight two of three entries on the wire are repetitions. A connection delivers
    exactly once and in order; what it has been given already is therefore cut from the front of an
    append, which leaves an append that the leader could have sent as well. When the follower
    refuses one, or the connection changes, all of it is sent again. For speed only: safety does not
    rest on it.
    """

    name = "no resending"

    def __init__(self, node: GuardContext) -> None:
        super().__init__(node)
        self._sent: dict[int, tuple[int, int]] = {}
        """Per peer: term, and last index given to the connection in it."""

    def on_send(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Append):
            self._cut(peer, message)
        elif isinstance(message, SnapshotOffer):
            self._sent.pop(peer, None)
        return message

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Ack) and message.reset:
            self._sent.pop(peer, None)
        return message

    def on_link(self, peer: int) -> None:
        self._sent.pop(peer, None)

    def _cut(self, peer: int, message: Append) -> None:
        last = message.prev_index + len(message.entries)
        term, sent = self._sent.get(peer, (0, 0))
        if term == message.term:
            known = min(sent, last) - message.prev_index
            if known > 0:
                _, message.prev_index, message.prev_term = message.entries[known - 1]
                message.entries = message.entries[known:]
            last = max(last, sent)
        self._sent[peer] = (message.term, last)
