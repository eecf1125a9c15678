"""G1: answers belong to a term."""

from __future__ import annotations

import logging

from ..messages import Ack, Message, Vote
from .guard import Guard, GuardContext

logger = logging.getLogger(__name__)


class TermOfAnswers(Guard):
    """Corrects: the engine's acknowledgements carry no term, and it counts votes, not voters.

    An acknowledgement that was meant for an earlier leadership would be believed, and one injected
    or delayed ack lets an isolated leader commit alone (finding C). So each is tagged with the term
    in which the follower gave it and dropped in any other; a second vote of the same node in the
    same term is dropped too. An ack beyond the leader's own log would later count for entries that
    were never sent: dropped.
    """

    name = "G1"

    def __init__(self, node: GuardContext) -> None:
        super().__init__(node)
        self._voted_in: dict[int, int] = {}

    def on_send(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Ack):
            message.term = self.node.term
        return message

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Ack):
            if message.term != self.node.term:
                return None
            last_index = self.node.journal.last_index
            if message.success and message.next_index > last_index + 1:
                logger.error(
                    "node %d acknowledges up to %d, the log ends at %d: dropped",
                    peer,
                    message.next_index - 1,
                    last_index,
                )
                return None
        elif isinstance(message, Vote):
            if self._voted_in.get(peer) == message.term:
                return None
            self._voted_in[peer] = message.term
        return message
