"""Is a ConsumerGroupHeartbeat well-formed? Kafka's rules, with its error codes."""

from __future__ import annotations

from collections.abc import Sequence

from ...wire import ErrorCode
from ...wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from .member import JOINING_EPOCH, STATIC_LEAVING_EPOCH
from .refusal import Refused


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, assignors: Sequence[str]) -> None:
    """
    Raises:
        Refused: INVALID_REQUEST or UNSUPPORTED_ASSIGNOR.
    """
    _not_blank(request.group_id, "the group id")
    _not_blank(request.instance_id, "the instance id")
    _not_blank(request.rack_id, "the rack id")
    if request.member_epoch < STATIC_LEAVING_EPOCH:
        raise _invalid(f"there is no member epoch {request.member_epoch}")
    if request.member_epoch == JOINING_EPOCH:
        _check_joining(request)
    else:
        _not_blank(request.member_id, "the member id")
    if request.member_epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        raise _invalid("only a member with an instance id may leave for a while")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"there is no assignor {request.server_assignor!r}, only {', '.join(assignors)}",
        )


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("who joins must say its rebalance timeout")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("who joins must own no partitions, and say so")
    if not request.subscribed_topic_names and not request.subscribed_topic_regex:
        raise _invalid("who joins must say what it wants to read")


def _not_blank(value: str | None, what: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{what} is empty")


def _invalid(sentence: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, sentence)
