"""G8: a snapshot only moves forward."""

from __future__ import annotations

from ..messages import Ack, Message, SnapshotChunk
from .guard import Guard


class OldSnapshots(Guard):
    """Corrects: the engine installs any snapshot, also one behind its own log (RULES E1).

    Without this a follower at commit index 122 fell back to 62. A snapshot whose last entry the own
    log holds is as bad: installing it empties the log, and with it the acknowledged entries behind
    that snapshot. Both are dropped; the leader is told where to go on.
    """

    name = "G8"

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if not isinstance(message, SnapshotChunk):
            return message
        go_on_at = self.needless(message)
        if go_on_at is None:
            return message
        if message.term == self.node.term:
            # Every piece keeps the leader's check-quorum alive; the last one redirects it.
            answer = Ack(message.term, go_on_at, reset=message.last, success=False)
            self.node.send(peer, answer)
        return None

    def needless(self, message: SnapshotChunk) -> int | None:
        """The index at which the log goes on without this snapshot; None when it is needed."""
        if self.node.journal.term_at(message.snapshot_index) == message.snapshot_term:
            return message.snapshot_index + 1
        if message.snapshot_index <= self.node.commit_index:
            return self.node.commit_index + 1
        return None
