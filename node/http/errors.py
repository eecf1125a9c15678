"""Errors as HTTP clients see them: Confluent's two keys, and what nobody else says: whether to
try again.

    {"error_code": 40403, "message": "...", "kafka_error": "UNKNOWN_TOPIC_OR_PARTITION",
     "retriable": false, "hint": "..."}

`error_code` is the HTTP status, or the status with two more digits where Confluent's REST proxy
has such a code. `retriable` means: the same request may succeed later. `outcome` is "unknown" when
the request may have been carried out all the same; it is left out when it was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...seam import frozen
from ...wire import ErrorCode

K = ErrorCode


class ApiError(Exception):
    """The answer to a request that was not carried out, or not known to be."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        error_code: int | None = None,
        kafka_error: ErrorCode | None = None,
        retriable: bool = False,
        hint: str | None = None,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.error_code = status if error_code is None else error_code
        self.kafka_error = kafka_error
        self.retriable = retriable
        self.hint = hint
        self.outcome_unknown = outcome_unknown

    def with_unknown_outcome(self) -> ApiError:
        """The same, of a request that an earlier attempt may have carried out."""
        return ApiError(
            self.status,
            self.message,
            error_code=self.error_code,
            kafka_error=self.kafka_error,
            retriable=self.retriable,
            hint=_WRITTEN_PERHAPS,
            outcome_unknown=True,
        )

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "error_code": self.error_code,
            "message": self.message,
            "kafka_error": None if self.kafka_error is None else self.kafka_error.name,
            "retriable": self.retriable,
            "hint": self.hint,
        }
        if self.outcome_unknown:
            document["outcome"] = "unknown"
        return document

    def as_parts(self) -> list[Any]:
        """Plain values, of which another node makes the same error."""
        return [
            self.status,
            self.message,
            self.error_code,
            None if self.kafka_error is None else int(self.kafka_error),
            self.retriable,
            self.hint,
            self.outcome_unknown,
        ]

    @classmethod
    def of_parts(cls, parts: Sequence[Any]) -> ApiError:
        status, message, error_code, kafka_error, retriable, hint, outcome_unknown = parts
        return cls(
            status,
            message,
            error_code=error_code,
            kafka_error=None if kafka_error is None else ErrorCode(kafka_error),
            retriable=retriable,
            hint=hint,
            outcome_unknown=outcome_unknown,
        )


@frozen
class _Mapping:
    status: int
    error_code: int
    hint: str | None = None


_PERHAPS_WRITTEN = frozenset(
    # RULES D5: these also come after the leader has appended the batch, and its successor may
    # or may not have it.
    {K.REQUEST_TIMED_OUT, K.NOT_LEADER_OR_FOLLOWER, K.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
)
_WRITTEN_PERHAPS = "it may have been written; trying again may write it twice"

_MAPPINGS: dict[ErrorCode, _Mapping] = {
    K.UNKNOWN_TOPIC_OR_PARTITION: _Mapping(
        404, 40403, "GET /api/v1/topics lists the topics; POST there creates one"
    ),
    K.UNKNOWN_TOPIC_ID: _Mapping(404, 40403, "the topic was deleted, perhaps created again"),
    K.TOPIC_ALREADY_EXISTS: _Mapping(409, 409),
    K.VOTER_NOT_FOUND: _Mapping(404, 404, "GET /api/v1/quorum lists the voters"),
    K.DUPLICATE_VOTER: _Mapping(
        409, 409, "stop it first, or wait until its session has ended; then try again"
    ),
    K.INVALID_UPDATE_VERSION: _Mapping(409, 409, "somebody else changed it at the same moment"),
    K.INVALID_TOPIC_EXCEPTION: _Mapping(
        422, 422, "at most 249 letters, digits, '.', '_' and '-', and neither '.' nor '..'"
    ),
    K.INVALID_PARTITIONS: _Mapping(422, 422),
    K.INVALID_REPLICATION_FACTOR: _Mapping(422, 422, "not more replicas than living nodes"),
    K.INVALID_REPLICA_ASSIGNMENT: _Mapping(422, 422),
    K.INVALID_CONFIG: _Mapping(422, 422),
    K.INVALID_REQUEST: _Mapping(422, 422),
    K.INVALID_RECORD: _Mapping(422, 422),
    K.INVALID_TIMESTAMP: _Mapping(422, 422),
    K.POLICY_VIOLATION: _Mapping(422, 422),
    K.TOPIC_DELETION_DISABLED: _Mapping(403, 403),
    K.OFFSET_OUT_OF_RANGE: _Mapping(416, 416, "GET the topic for its log_start_offset"),
    K.MESSAGE_TOO_LARGE: _Mapping(413, 413, "send fewer or smaller records at once"),
    K.RECORD_LIST_TOO_LARGE: _Mapping(413, 413, "send fewer records at once"),
    K.TOPIC_AUTHORIZATION_FAILED: _Mapping(403, 40301),
    K.CLUSTER_AUTHORIZATION_FAILED: _Mapping(403, 40301),
    K.LEADER_NOT_AVAILABLE: _Mapping(503, 50302, "no replica that may lead is alive just now"),
    K.NOT_LEADER_OR_FOLLOWER: _Mapping(503, 50302, "the leader is changing"),
    K.NOT_CONTROLLER: _Mapping(503, 50302, "the controller is changing"),
    K.BROKER_NOT_AVAILABLE: _Mapping(503, 50302),
    K.NOT_ENOUGH_REPLICAS: _Mapping(
        503, 50302, "fewer replicas are in sync than min.insync.replicas asks for"
    ),
    K.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _Mapping(503, 50302),
    K.REQUEST_TIMED_OUT: _Mapping(504, 504),
    K.GROUP_ID_NOT_FOUND: _Mapping(404, 40405, "GET /api/v1/groups lists the groups"),
    K.NON_EMPTY_GROUP: _Mapping(409, 409, "stop its consumers first"),
    K.NOT_COORDINATOR: _Mapping(503, 50302, "the coordinator is changing"),
    K.COORDINATOR_NOT_AVAILABLE: _Mapping(503, 50302, "the coordinator is changing"),
    K.COORDINATOR_LOAD_IN_PROGRESS: _Mapping(503, 50302, "the coordinator is reading its log"),
    K.OUT_OF_ORDER_SEQUENCE_NUMBER: _Mapping(
        409, 409, "a batch before this one is missing: send the producer's batches in order"
    ),
    K.DUPLICATE_SEQUENCE_NUMBER: _Mapping(
        409, 409, "repeat a batch as it was, and no further back than five batches"
    ),
    K.INVALID_PRODUCER_EPOCH: _Mapping(
        409, 409, "a newer epoch of this producer writes: POST /api/v1/producers gives a new id"
    ),
    K.ELECTION_NOT_NEEDED: _Mapping(409, 409),
    K.PREFERRED_LEADER_NOT_AVAILABLE: _Mapping(
        503, 50302, "the first replica is not alive or not in sync"
    ),
    K.THROTTLING_QUOTA_EXCEEDED: _Mapping(429, 42901),
}

_DAMAGED = _Mapping(
    500, 50002, "records were damaged on the only disk that had them: read on at a later offset"
)


def from_kafka(code: int, message: str | None = None, *, writes: bool = False) -> ApiError:
    """The HTTP face of a Kafka error code other than NONE. `writes`: it answers a produce."""
    try:
        kafka_error = ErrorCode(code)
    except ValueError:
        kafka_error = ErrorCode.UNKNOWN_SERVER_ERROR
    mapping = _MAPPINGS.get(kafka_error)
    retriable = kafka_error.retriable
    if kafka_error is K.CORRUPT_MESSAGE and not writes:
        # What was sent may come whole the next time; what lies on the disk stays as it is.
        mapping, retriable = _DAMAGED, False
    if mapping is None:
        # Confluent's two: a Kafka error, and one after which the same request may succeed.
        mapping = _Mapping(500, 50003 if kafka_error.retriable else 50002)
    outcome_unknown = writes and kafka_error in _PERHAPS_WRITTEN
    return ApiError(
        mapping.status,
        message or kafka_error.message,
        error_code=mapping.error_code,
        kafka_error=kafka_error,
        retriable=retriable,
        hint=_WRITTEN_PERHAPS if outcome_unknown else mapping.hint,
        outcome_unknown=outcome_unknown,
    )


def no_topic(name: str) -> ApiError:
    return from_kafka(K.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name[:249]!r}")


def no_partition(topic: str, partition: int, partitions: int) -> ApiError:
    return ApiError(
        404,
        f"{topic} has no partition {partition}",
        error_code=40402,
        kafka_error=K.UNKNOWN_TOPIC_OR_PARTITION,
        hint=f"its partitions are 0 to {partitions - 1}",
    )


def node_unreachable(node_id: int) -> ApiError:
    return ApiError(
        503,
        f"node {node_id} cannot be reached",
        error_code=50302,
        kafka_error=K.BROKER_NOT_AVAILABLE,
        retriable=True,
        hint="it is down or cut off; another node takes over within seconds",
    )


def to_keep(error: ApiError) -> ApiError:
    """The same error without the way it came. Its traceback, and that of the error it was raised
    for, hold the frame that keeps it: work for the garbage collector, once for each."""
    error.__traceback__ = error.__context__ = None
    return error


def answer_lost(node_id: int, *, writes: bool) -> ApiError:
    return ApiError(
        504,
        f"node {node_id} did not answer in time",
        kafka_error=K.REQUEST_TIMED_OUT,
        retriable=True,
        hint=_WRITTEN_PERHAPS if writes else None,
        outcome_unknown=writes,
    )


def node_stopping(hint: str) -> ApiError:
    return ApiError(503, "this node is stopping", error_code=50302, retriable=True, hint=hint)


def no_controller() -> ApiError:
    return ApiError(
        503,
        "no node is the active controller just now",
        error_code=50302,
        kafka_error=K.NOT_CONTROLLER,
        retriable=True,
        hint="a new one is elected within seconds while a majority of the nodes lives",
    )


def controller_answer_lost() -> ApiError:
    return ApiError(
        504,
        "the controller did not answer in time",
        retriable=True,
        hint="it may have been done all the same: look before trying again",
        outcome_unknown=True,
    )
