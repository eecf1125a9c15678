"""How the client says no: the cause, the node that said so, and what may help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class ClientError(Exception):
    """Everything this client raises on its own account.

    `retriable`: the same call may succeed later. `node`: who was asked last, None before anybody.
    """

    retriable = False

    def __init__(self, message: str, *, node: str | None = None, hint: str | None = None) -> None:
        parts = [message]
        if node is not None:
            parts.append(f"(asked {node})")
        if hint:
            parts.append(f"- {hint}")
        super().__init__(" ".join(parts))
        self.message = message
        self.node = node
        self.hint = hint


class Unreachable(ClientError):
    """No node could be asked; nothing has happened. `reasons` has the last one for each."""

    retriable = True

    def __init__(self, reasons: Mapping[str, str]) -> None:
        told = "; ".join(f"{node}: {reason}" for node, reason in reasons.items())
        super().__init__(
            f"no node can be reached: {told}",
            hint="is the cluster up, and is this its HTTP address? `logboat cluster status` says",
        )
        self.reasons = dict(reasons)


class DeadlineExceeded(ClientError):
    """The call's time is up, and it is known that nothing has happened."""

    retriable = True


class OutcomeUnknown(ClientError):
    """It may have happened and may not: the answer was lost, and asking again might do it twice."""


class Refused(ClientError):
    """A node's answer: it was not done. `kafka_error` is the protocol's name for it, if any."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        error_code: int,
        kafka_error: str | None = None,
        retriable: bool = False,
        node: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, node=node, hint=hint)
        self.status = status
        self.error_code = error_code
        self.kafka_error = kafka_error
        self.retriable = retriable


class TopicNotFound(Refused):
    """`did_you_mean`: a topic whose name is close to it."""

    did_you_mean: str | None = None


class NotEnoughReplicas(Refused):
    """Fewer replicas are in sync than `min.insync.replicas` asks for; nothing was written."""


class RecordTooLarge(Refused):
    """The record alone is larger than the topic or the node takes."""


class NotDelivered(ClientError):
    """A producer was closed, and some of what it had taken is not known to be written."""

    def __init__(self, count: int, causes: Sequence[BaseException]) -> None:
        first = f", the first: {causes[0]}" if causes else ""
        super().__init__(f"{count} records were not delivered{first}")
        self.count = count
        self.causes = tuple(causes)


class DecodeFailed(ClientError):
    """A record's bytes are not what the value's or key's codec takes; `record` has them."""

    def __init__(self, message: str, record: Any) -> None:
        super().__init__(message, hint="Json(on_error='yield') hands such records out as they are")
        self.record = record


class GroupLost(ClientError):
    """The consumer is no longer of its group: it was away for longer than its session lasts."""


class PartitionRevoked(ClientError):
    """A commit names a partition that this consumer does not own any more: nothing is committed."""


class Closed(ClientError):
    """Used after `close`, or before `async with`."""


class ForkedProcess(ClientError):
    """A client does not survive a fork: its connections belong to the parent."""
