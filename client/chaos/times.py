"""Durations as people write them: 250ms, 10s, 2m, 1h."""

from __future__ import annotations

import re

from ..failure import ExitStatus, Failure

TIME_HELP = "250ms, 10s, 2m"
_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_of(text: str) -> float | None:
    """None for what is no duration."""
    match = _DURATION.fullmatch(text.strip())
    return None if match is None else int(match[1]) * _SECONDS[match[2]]


def seconds_or_refuse(text: str, name: str) -> float:
    """A bare number is seconds, too. Raises Failure."""
    seconds = seconds_of(text if not text.isdecimal() else f"{text}s")
    if seconds is None:
        raise Failure(f"{name} {text!r} is no time like {TIME_HELP}", ExitStatus.USAGE)
    return seconds


def in_words(seconds: float) -> str:
    """The other way round, for people: 250ms, 1.5s, 90s."""
    return f"{seconds * 1000:.0f}ms" if 0 < seconds < 1 else f"{seconds:g}s"
