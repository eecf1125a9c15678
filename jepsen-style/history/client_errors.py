"""Which client error means *did not happen*, and which *may have happened*.

The one table. A wrong FAIL makes an aborted read out of an honest one; a wrong INFO hides a loss.
So FAIL only where the broker refused before it appended, or where no byte was sent; every error
not named here is INFO. Names are Kafka's (errors of the protocol) and those of client libraries
for what happens on this side of the socket.
"""

from __future__ import annotations

from collections.abc import Mapping

from .history import Outcome

REFUSED_BEFORE_APPENDING = (
    "CLUSTER_AUTHORIZATION_FAILED",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "CORRUPT_MESSAGE",
    "FENCED_LEADER_EPOCH",
    "FENCED_MEMBER_EPOCH",
    "ILLEGAL_GENERATION",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_RECORD",
    "INVALID_REQUIRED_ACKS",
    "INVALID_TIMESTAMP",
    "INVALID_TOPIC_EXCEPTION",
    "MESSAGE_TOO_LARGE",
    "NOT_ENOUGH_REPLICAS",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "POLICY_VIOLATION",
    "PRODUCER_FENCED",
    "REBALANCE_IN_PROGRESS",
    "RECORD_LIST_TOO_LARGE",
    "STALE_MEMBER_EPOCH",
    "TOPIC_AUTHORIZATION_FAILED",
    "UNKNOWN_LEADER_EPOCH",
    "UNKNOWN_MEMBER_ID",
    "UNKNOWN_PRODUCER_ID",
    "UNKNOWN_TOPIC_ID",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "UNSUPPORTED_COMPRESSION_TYPE",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "UNSUPPORTED_VERSION",
)

NOTHING_WAS_SENT = (
    "CONNECTION_REFUSED_BEFORE_SEND",
    "LOCAL_QUEUE_FULL",
    "LOCAL_INVALID_ARGUMENT",
    "LOCAL_UNKNOWN_PARTITION",
)

MAY_HAVE_HAPPENED = (
    "CONNECTION_LOST_AFTER_SEND",
    "KAFKA_STORAGE_ERROR",
    "LOCAL_MESSAGE_TIMED_OUT",
    "NETWORK_EXCEPTION",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    # Also the answer to who waits for the ISR while the leader changes (RULES D5).
    "NOT_LEADER_OR_FOLLOWER",
    "REQUEST_TIMED_OUT",
    "UNKNOWN_SERVER_ERROR",
)
"""Named to be seen and tested; the rule for a name that is nowhere is the same."""

OUTCOME_OF_ERROR: Mapping[str, Outcome] = {
    **dict.fromkeys(REFUSED_BEFORE_APPENDING, Outcome.FAIL),
    **dict.fromkeys(NOTHING_WAS_SENT, Outcome.FAIL),
    **dict.fromkeys(MAY_HAVE_HAPPENED, Outcome.INFO),
}


def outcome_of_error(name: str | None, *, earlier_attempt_unknown: bool = False) -> Outcome:
    """OK for no error. A refusal proves nothing when an earlier attempt of the same operation
    ended unknown: that one may still have been appended (KIP-360's reason for sequences).
    """
    if name is None:
        return Outcome.OK
    outcome = OUTCOME_OF_ERROR.get(name, Outcome.INFO)
    return Outcome.INFO if earlier_attempt_unknown else outcome
