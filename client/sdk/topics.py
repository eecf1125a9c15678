"""How many partitions topics have, remembered for a while."""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from urllib.parse import quote

from .deadline import Deadline
from .errors import ClientError, TopicNotFound
from .transport import Repeat, Transport

REMEMBERED_SECONDS = 60.0
"""Partitions may be added; keys then go elsewhere, and the sooner everybody agrees the better."""


def topic_path(topic: str) -> str:
    return f"/api/v1/topics/{quote(topic, safe='')}"


class Topics:
    """Of one client."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._known: dict[str, tuple[float, int]] = {}
        """(loop time after which it is asked again, partitions)"""

    def known(self, topic: str, now: float) -> int | None:
        """Partitions, where they need not be asked for. `now`: loop time."""
        known = self._known.get(topic)
        return None if known is None or now >= known[0] else known[1]

    async def partitions(self, topic: str, deadline: Deadline) -> int:
        """Raises TopicNotFound, with the name that was perhaps meant."""
        known = self.known(topic, asyncio.get_running_loop().time())
        if known is not None:
            return known
        try:
            answer = await self._transport.call(
                "GET", topic_path(topic), deadline=deadline, repeat=Repeat.SAFELY
            )
        except TopicNotFound as error:
            self._known.pop(topic, None)
            raise await self._with_suggestion(error, topic, deadline) from None
        count = int(answer.document["partition_count"])
        self._known[topic] = (asyncio.get_running_loop().time() + REMEMBERED_SECONDS, count)
        return count

    def forget(self, topic: str) -> None:
        """What was known of it is out of date."""
        self._known.pop(topic, None)

    async def _with_suggestion(
        self, error: TopicNotFound, topic: str, deadline: Deadline
    ) -> TopicNotFound:
        try:
            answer = await self._transport.call(
                "GET", "/api/v1/topics", deadline=deadline, repeat=Repeat.SAFELY
            )
        except ClientError:
            return error
        names = [one["name"] for one in answer.document["topics"] if not one["internal"]]
        close = get_close_matches(topic, names, n=1)
        if not close:
            return error
        suggestion = TopicNotFound(
            error.message,
            status=error.status,
            error_code=error.error_code,
            kafka_error=error.kafka_error,
            node=error.node,
            hint=f"did you mean {close[0]!r}?",
        )
        suggestion.did_you_mean = close[0]
        return suggestion
