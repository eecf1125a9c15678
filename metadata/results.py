"""What applying a command answers: refusals are error codes of Kafka, never exceptions."""

from __future__ import annotations

from uuid import UUID

from ..seam import frozen
from ..wire import ErrorCode
from .image import PartitionImage


@frozen
class Item:
    """The verdict on one topic, partition or resource of a command."""

    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    partition: PartitionImage | None = None
    """State after the command, where the answer tells it (AlterPartition)."""
    topic: str = ""
    topic_id: UUID | None = None
    """Which topic was created or deleted: a repeated request is answered by these (RULES A5)."""


@frozen
class Result:
    """The verdict on a command. With an error nothing has changed and there are no items."""

    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    items: tuple[Item, ...] = ()
    """One for each topic, partition or resource, in the order of the command."""
    value: int = -1
    """Broker epoch (RegisterBroker), first producer id (AllocateProducerIds), controller epoch."""

    @property
    def refused(self) -> bool:
        return self.error != ErrorCode.NONE


def refuse(error: ErrorCode, message: str) -> Result:
    return Result(error, message)
