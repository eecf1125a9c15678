"""G4: only a conflict truncates."""

from __future__ import annotations

from ..messages import Ack, Append, Message
from .guard import Guard, GuardContext


class NoNeedlessTruncation(Guard):
    """Corrects: a matching append removes everything behind it, acknowledged or not.

    The engine cuts its log after `prev_index` and writes the message's entries again. Two resends
    in flight therefore leave a follower short of entries that it has acknowledged, and a crash of
    the leader at that moment loses them (finding B). Here the part of an append that the log
    already holds is skipped: `prev_index` is moved behind it. If everything is held and more, the
    engine is shown an append at the very end of its log, so that it cuts nothing, while the
    acknowledgement and the commit index are capped at what the leader's message verified.
    """

    name = "G4"

    def __init__(self, node: GuardContext) -> None:
        super().__init__(node)
        self._verified: int | None = None
        """Last index that the append under way has proven to equal the leader's log."""

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Append) and message.term >= self.node.term:
            self._skip_held(message)
        return message

    def on_send(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Ack) and message.success and self._verified is not None:
            message.next_index = min(message.next_index, self._verified + 1)
        return message

    def after_receive(self, peer: int) -> None:
        self._verified = None

    def _skip_held(self, message: Append) -> None:
        journal = self.node.journal
        if message.prev_index == journal.last_index:
            return
        if journal.term_at(message.prev_index) != message.prev_term:
            return  # The engine refuses it; see G5.
        held = 0
        for _, index, term in message.entries:
            if journal.term_at(index) != term:
                break
            held += 1
        verified = message.prev_index + len(message.entries)
        if held == len(message.entries) and verified < journal.last_index:
            self._verified = verified
            message.prev_index, message.prev_term = journal.last_index, journal.last_term
            message.entries = []
            # Behind `verified` nothing is known to be the leader's.
            message.commit_index = min(message.commit_index, max(verified, self.node.commit_index))
        elif held:
            _, message.prev_index, message.prev_term = message.entries[held - 1]
            message.entries = message.entries[held:]
