"""G7: proposals are the leader's."""

from __future__ import annotations

from ..messages import Forward, Message
from .guard import Guard


class NoForwarding(Guard):
    """Corrects: a proposal that meets a lost leadership is forwarded to the new leader.

    Forwarded commands are numbered from 1 in each process and answered by node, so a late answer
    can meet the wrong proposal (finding L), and "not leader" would not mean "will never happen"
    (RULES A4). The engine is told at once that its request was refused; nothing leaves.
    """

    name = "G7"

    def on_send(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Forward):
            self.node.hand_on(self, peer, message)
            return None
        return message
