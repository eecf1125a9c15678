"""The change of an ISR that a leader asks for, and what each answer means (RULES D2)."""

from __future__ import annotations

from enum import Enum

from ..seam import frozen
from ..wire import ErrorCode


@frozen
class IsrProposal:
    """An AlterPartition for one partition: compare-and-set on the partition epoch."""

    leader_epoch: int
    partition_epoch: int
    """The state it was computed from. Once the image shows a larger one the proposal is settled:
    it was carried out, or it never can be."""
    isr: tuple[tuple[int, int], ...]
    """(node id, broker epoch) of every proposed member, the leader included (KIP-903)."""

    @property
    def members(self) -> tuple[int, ...]:
        return tuple(node_id for node_id, _ in self.isr)


class ProposalVerdict(Enum):
    """What the leader does about its proposal after an answer."""

    AWAIT_IMAGE = "await image"
    """Decided, or overtaken by a change this node has not applied yet: the image will settle it."""
    RETRY = "retry"
    """It may have happened: it stays in flight and is sent again, word for word."""
    REVERT = "revert"
    """It did not happen and the leader may act as if it had never been sent."""


_VERDICTS = {
    ErrorCode.NONE: ProposalVerdict.AWAIT_IMAGE,
    ErrorCode.INVALID_UPDATE_VERSION: ProposalVerdict.AWAIT_IMAGE,
    ErrorCode.FENCED_LEADER_EPOCH: ProposalVerdict.AWAIT_IMAGE,
    ErrorCode.NEW_LEADER_ELECTED: ProposalVerdict.AWAIT_IMAGE,
    ErrorCode.UNKNOWN_TOPIC_ID: ProposalVerdict.AWAIT_IMAGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ProposalVerdict.AWAIT_IMAGE,
    # The proposer does not lead, in the controller's eyes: a newer epoch is on its way here.
    ErrorCode.INVALID_REQUEST: ProposalVerdict.AWAIT_IMAGE,
    ErrorCode.INELIGIBLE_REPLICA: ProposalVerdict.REVERT,
    ErrorCode.OPERATION_NOT_ATTEMPTED: ProposalVerdict.REVERT,
}


def verdict_on(error: int) -> ProposalVerdict:
    """All that is not in the table (NOT_CONTROLLER, STALE_BROKER_EPOCH, time-outs) is retried."""
    return _VERDICTS.get(ErrorCode(error), ProposalVerdict.RETRY)
