"""Subscriptions by regular expression, in the syntax and time bound of RE2 (KIP-848).

Kafka compiles them with RE2, whose matching time is linear in the name: a member cannot stall the
coordinator with its pattern, as it could with Python's `re`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from ...metadata.image import TopicImage
from ...wire import ErrorCode
from .refusal import Refused

NAMES_PER_TURN = 500
"""Matching a name takes about 4 microseconds (RULES F1)."""

MAX_PATTERNS = 1_000
"""Remembered at a time; above it all are matched again when they are next asked for."""


class TopicPatterns:
    """The topics that match each pattern, matched once and then for new topics only."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, bool]] = {}
        """Pattern -> topic name -> does it match."""

    async def matching(
        self, regexes: Iterable[str], topics: Mapping[str, TopicImage]
    ) -> dict[str, tuple[str, ...]]:
        """The names that match each pattern as a whole, sorted.

        Raises:
            Refused: INVALID_REGULAR_EXPRESSION.
        """
        return {regex: await self._matching(regex, topics) for regex in regexes}

    async def _matching(self, regex: str, topics: Mapping[str, TopicImage]) -> tuple[str, ...]:
        known = self._known.get(regex)
        if known is None:
            _compiled(regex)
            if len(self._known) >= MAX_PATTERNS:
                self._known.clear()
            known = self._known[regex] = {}
        for name in [name for name in known if name not in topics]:
            del known[name]
        new = [name for name in topics if name not in known]
        for start in range(0, len(new), NAMES_PER_TURN):
            if start:
                await asyncio.sleep(0)
            pattern = _compiled(regex)
            for name in new[start : start + NAMES_PER_TURN]:
                known[name] = pattern.fullmatch(name) is not None
        return tuple(sorted(name for name in topics if known.get(name)))


def why_invalid(regex: str) -> str | None:
    """The reason why it is no pattern; None when it is one."""
    try:
        _compiled(regex)
    except Refused as refused:
        return refused.sentence
    return None


def _compiled(regex: str) -> Any:
    import re2  # 6 ms, for what most clusters never need; it remembers what it compiled

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace")
        sentence = f"{regex!r} is no valid regular expression: {reason}"
        raise Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, sentence) from None
