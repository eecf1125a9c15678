"""G2: a snapshot in transit commits nothing."""

from __future__ import annotations

from ..messages import Message, SnapshotChunk
from .guard import Guard


class SnapshotCommit(Guard):
    """Corrects: any piece of a snapshot raises the receiver's commit index over its own tail.

    The engine compares the leader's commit index with its *own* last index, without any match of
    logs, so a returning leader would commit and acknowledge its divergent entries while the
    snapshot that replaces them is still arriving (finding A). The commit index in such messages is
    capped at what is committed here already.
    """

    name = "G2"

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, SnapshotChunk):
            message.commit_index = min(message.commit_index, self.node.commit_index)
        return message
