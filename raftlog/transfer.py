"""Handing the leadership of the quorum to another voter (section 3.10 of the Raft thesis).

The leader holds new proposals back until the other one has all it has written, and then tells it
that its election is due now. That voter stands as it would have done by itself, had it heard
nothing for long enough: a new term, and votes only from those whose logs are not ahead of its own.
So nothing rests on the transfer going well. A message that is lost or late costs time: the leader
that is still one when the time is up goes on as before. An election that comes too late, when the
leader has gone on, is won only by a log that holds everything committed.
"""

from __future__ import annotations

import asyncio

from ..seam import frozen


@frozen
class Transferred:
    """This node leads no more, that one does."""

    leader_id: int


@frozen
class NotTransferred:
    """This node leads still, or another one was elected."""

    reason: str


TransferOutcome = Transferred | NotTransferred


class Transfer:
    """One that is under way. Times are the loop's."""

    __slots__ = ("due", "outcome", "told", "voter")

    def __init__(self, voter: int, *, due: float, outcome: asyncio.Future[TransferOutcome]) -> None:
        self.voter = voter
        """The one that is to lead."""
        self.due = due
        """When it is given up."""
        self.told = False
        """Whether it was told to stand for election."""
        self.outcome = outcome

    def end(self, outcome: TransferOutcome) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)
