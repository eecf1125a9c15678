"""Where reading begins, or trimming ends, as `-o` and `--before` say it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto

from .failure import ExitStatus, Failure
from .sdk.ago import ago_ms

LARGEST_OFFSET = 2**63 - 1


class Place(Enum):
    START = auto()
    END = auto()
    OFFSET = auto()
    AFTER_START = auto()
    BEFORE_END = auto()
    TIME = auto()
    """In Unix milliseconds."""


@dataclass(frozen=True, slots=True)
class ReadFrom:
    place: Place
    number: int = 0

    @classmethod
    def parse(cls, text: str) -> ReadFrom:
        """Raises Failure, status 2."""
        if text in ("start", "earliest", "beginning"):
            return cls(Place.START)
        if text in ("end", "latest"):
            return cls(Place.END)
        if text.startswith("@"):
            return cls(Place.TIME, _number(str(_time_ms(text[1:])), text))
        match text[:1]:
            case "+":
                return cls(Place.AFTER_START, _number(text[1:], text))
            case "-":
                return cls(Place.BEFORE_END, _number(text[1:], text))
        return cls(Place.OFFSET, _number(text, text))


def _number(digits: str, text: str) -> int:
    if digits.isascii() and digits.isdecimal() and int(digits) <= LARGEST_OFFSET:
        return int(digits)
    raise Failure(f"{text!r} is neither start, end, a number, +N, -N nor @TIME", ExitStatus.USAGE)


def _time_ms(text: str) -> int:
    moment_ms = ago_ms(text)
    if moment_ms is not None:
        return moment_ms
    if text.isascii() and text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(
            f"{text!r} is neither Unix milliseconds, an ISO date, nor -5m", ExitStatus.USAGE
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
