"""What the commands that use the Python client share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from .failure import TIMED_OUT_STATUSES, ExitStatus, Failure
from .node_api import NO_TOPIC, no_topic
from .sdk.client import Client
from .sdk.errors import (
    ClientError,
    DeadlineExceeded,
    OutcomeUnknown,
    Refused,
    TopicNotFound,
    Unreachable,
)

T = TypeVar("T")

PARTITIONS = 6
"""Of a topic that is made for a while."""


def run_to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns; what the client raises is a Failure with its exit status."""
    # What the client has to tell meanwhile, such as a gap, is said as everything else is.
    logging.basicConfig(format="logboat: %(message)s", level=logging.WARNING)
    try:
        return asyncio.run(work)
    except ClientError as error:
        if isinstance(error, TopicNotFound) and error.error_code == NO_TOPIC:
            raise no_topic(error.message, error.did_you_mean) from error
        raise Failure(str(error), status_of(error)) from error


def status_of(error: BaseException) -> ExitStatus:
    """How a command ends that ends with this error of the client."""
    match error:
        case Unreachable():
            return ExitStatus.UNREACHABLE
        case OutcomeUnknown() | DeadlineExceeded():
            return ExitStatus.TIMED_OUT
        case Refused() if error.status in TIMED_OUT_STATUSES:
            return ExitStatus.TIMED_OUT
    return ExitStatus.FAILED


@asynccontextmanager
async def topic_for(client: Client, topic: str | None, purpose: str) -> AsyncIterator[str]:
    """The topic that was named, or one that is made and removed afterwards."""
    if topic is not None:
        yield topic
        return
    made = f"logboat-{purpose}-{time.time_ns():x}"
    await client.admin.topics.create(made, partitions=PARTITIONS)
    try:
        yield made
    finally:
        await client.admin.topics.delete(made)
