"""G5: a refused append says where to go on."""

from __future__ import annotations

from ..messages import Ack, Append, Message
from .guard import Guard, GuardContext


class Backtracking(Guard):
    """Corrects: a follower with a divergent tail is never repaired (finding D).

    On a conflict the engine answers "go back one"; to the next message of the same backlog it
    answers "start at my end"; the last answer wins, for ever. With one message in flight it is one
    index per round. And a follower that has compacted what a late message refers to answers with
    the end of its divergent tail, beyond the leader's log, where the leader then stays.

    Here a refusal jumps over the whole conflicting term, that hint is kept until something matches,
    and no answer points below the commit index, since up to there every leader's log agrees. A
    leader does not follow an answer beyond the end of its own log.
    """

    name = "G5"

    def __init__(self, node: GuardContext) -> None:
        super().__init__(node)
        self._under_way: Append | None = None
        self._prev_index = 0
        self._hint: int | None = None
        self._hint_term = 0

    def on_receive(self, peer: int, message: Message) -> Message | None:
        if isinstance(message, Append):
            self._under_way = message
            self._prev_index = message.prev_index
        elif isinstance(message, Ack) and message.reset:
            message.next_index = min(message.next_index, self.node.journal.last_index + 1)
        return message

    def after_receive(self, peer: int) -> None:
        self._under_way = None

    def on_send(self, peer: int, message: Message) -> Message | None:
        if not isinstance(message, Ack) or self._under_way is None:
            return message
        if message.success:
            self._hint = None
        elif message.reset:
            message.next_index = self._where_to_go_on(message.next_index)
        return message

    def _where_to_go_on(self, answered: int) -> int:
        journal = self.node.journal
        floor = self.node.commit_index + 1
        conflicting_term = journal.term_at(self._prev_index)
        if conflicting_term is not None:
            first = self._prev_index
            while first > floor and journal.term_at(first - 1) == conflicting_term:
                first -= 1
            self._hint = first
            self._hint_term = self.node.term
        elif self._prev_index < journal.first_index:
            return floor
        if self._hint is not None and self._hint_term == self.node.term:
            answered = min(answered, self._hint)
        return max(answered, floor)
