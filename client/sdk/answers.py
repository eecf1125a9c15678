"""A node's error document as an exception, and whether the call may be made again."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from .errors import (
    ClientError,
    NotEnoughReplicas,
    OutcomeUnknown,
    RecordTooLarge,
    Refused,
    TopicNotFound,
)

_RETRIED = frozenset({408, 429, 502, 503, 504})
_CONFLUENT_RETRIABLE = 50003
_MAY_HAVE_HAPPENED = frozenset({500, 502, 504})
"""Without a document of ours: something broke on the way, nobody knows where."""

_BY_KAFKA_ERROR: Mapping[str, type[Refused]] = {
    "UNKNOWN_TOPIC_OR_PARTITION": TopicNotFound,
    "UNKNOWN_TOPIC_ID": TopicNotFound,
    "NOT_ENOUGH_REPLICAS": NotEnoughReplicas,
    "MESSAGE_TOO_LARGE": RecordTooLarge,
}


def as_error(status: int, document: Any, node: str, *, writes: bool = True) -> ClientError:
    """What an answer other than a good one says, also one that is no document of ours.

    `writes`: the request was to change something. Then a failure that does not say that nothing was
    changed leaves that open.
    """
    perhaps = False
    if not isinstance(document, Mapping):
        document, perhaps = {}, status in _MAY_HAVE_HAPPENED
    message = str(document.get("message") or f"HTTP {status}")
    hint = document.get("hint")
    if writes and (perhaps or document.get("outcome") == "unknown"):
        return OutcomeUnknown(message, node=node, hint=hint)
    error_code = int(document.get("error_code") or status)
    kafka_error = document.get("kafka_error")
    retriable = bool(
        document.get(
            "retriable", perhaps or status in _RETRIED or error_code == _CONFLUENT_RETRIABLE
        )
    )
    by_status = RecordTooLarge if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE else Refused
    kind = _BY_KAFKA_ERROR.get(str(kafka_error), by_status)
    return kind(
        message,
        status=status,
        error_code=error_code,
        kafka_error=kafka_error,
        retriable=retriable,
        node=node,
        hint=hint,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; a date, which the header may hold too, is not worth a clock here."""
    try:
        return max(0.0, float(headers["Retry-After"]))
    except (KeyError, ValueError):
        return None
