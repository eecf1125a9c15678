"""What the commands that use the Python client share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from .failure import ExitStatus, Failure
from .sdk.client import Client
from .sdk.errors import ClientError, Unreachable

T = TypeVar("T")

PARTITIONS = 6
"""Of a topic that is made for a while."""


def run_to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns; what the client raises is a Failure with its exit status."""
    try:
        return asyncio.run(work)
    except Unreachable as error:
        raise Failure(str(error), ExitStatus.UNREACHABLE) from error
    except ClientError as error:
        raise Failure(str(error)) from error


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
