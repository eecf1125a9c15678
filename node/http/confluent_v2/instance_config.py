"""What a client asks of a new consumer instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....seam import frozen
from ..errors import ApiError
from .formats import FORMATS, NO_SCHEMAS, SCHEMA_FORMATS, Format

EARLIEST, LATEST, NONE = "earliest", "latest", "none"

IDLE_MS = 300_000
"""An instance that nobody calls for so long is ended: Confluent's default."""

LEAST_IDLE_MS, MOST_IDLE_MS = 1_000, 3_600_000
LONGEST_POLL_MS = 60_000
MAX_NAME = 249

_KEYS = frozenset(
    {
        "name",
        "id",
        "format",
        "auto.offset.reset",
        "auto.commit.enable",
        "enable.auto.commit",
        "isolation.level",
        "fetch.min.bytes",
        "consumer.request.timeout.ms",
        "consumer.instance.timeout.ms",
    }
)


@frozen
class InstanceConfig:
    name: str | None
    """None: one is made up."""
    format: Format = Format.BINARY
    reset: str = LATEST
    auto_commit: bool = True
    """What an answer gave out is committed when the next one is asked for, at the earliest."""
    read_committed: bool = False
    fetch_min_bytes: int = 1
    poll_ms: int = 1_000
    """How long a poll waits that does not say."""
    idle_ms: int = IDLE_MS


def parse_instance(document: Any) -> InstanceConfig:
    """Raises ApiError 422, 42204."""
    if not isinstance(document, dict):
        raise _invalid("the body is no JSON object")
    unknown = sorted(document.keys() - _KEYS)
    if unknown:
        raise _invalid(f"unknown key {unknown[0][:80]!r}; known are {', '.join(sorted(_KEYS))}")
    auto_commit = document.get("enable.auto.commit", document.get("auto.commit.enable"))
    isolation = _one_of(
        document, "isolation.level", "read_uncommitted", ("read_uncommitted", "read_committed")
    )
    return InstanceConfig(
        name=_name(document),
        format=_format(document),
        reset=_one_of(document, "auto.offset.reset", LATEST, (EARLIEST, LATEST, NONE)),
        auto_commit=True if auto_commit is None else _flag(auto_commit, "enable.auto.commit"),
        read_committed=isolation == "read_committed",
        fetch_min_bytes=_number(document, "fetch.min.bytes", 1, 0, 8 << 20),
        poll_ms=_number(document, "consumer.request.timeout.ms", 1_000, 0, LONGEST_POLL_MS),
        idle_ms=_number(
            document, "consumer.instance.timeout.ms", IDLE_MS, LEAST_IDLE_MS, MOST_IDLE_MS
        ),
    )


def _name(document: Mapping[str, Any]) -> str | None:
    name = document.get("name", document.get("id"))
    if name is None:
        return None
    if not isinstance(name, str) or not name or len(name) > MAX_NAME:
        raise _invalid(f"name is no text of 1 to {MAX_NAME} characters")
    if name in (".", ".."):
        # No client could send the path of such an instance: they mean folders in it.
        raise _invalid(f"name may not be {name!r}")
    return name


def _format(document: Mapping[str, Any]) -> Format:
    given = document.get("format", Format.BINARY)
    if isinstance(given, str) and given.lower() in FORMATS:
        return Format(given.lower())
    hint = f"; {NO_SCHEMAS}" if given in SCHEMA_FORMATS else ""
    raise _invalid(f"format is {given!r}; it takes {', '.join(Format)}{hint}")


def _one_of(document: Mapping[str, Any], name: str, default: str, allowed: tuple[str, ...]) -> str:
    given = document.get(name)
    if given is None:
        return default
    if not isinstance(given, str) or given.lower() not in allowed:
        raise _invalid(f"{name} is {given!r}; it takes {', '.join(allowed)}")
    return given.lower()


def _flag(given: Any, name: str) -> bool:
    if isinstance(given, bool):
        return given
    if isinstance(given, str) and given.lower() in ("true", "false"):
        return given.lower() == "true"
    raise _invalid(f"{name} is {given!r}; it takes true or false")


def _number(document: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    """Clients send numbers also as text."""
    given = document.get(name)
    if given is None:
        return default
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 12:
        given = int(given)
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
        raise _invalid(f"{name} is {str(given)[:40]!r}; it takes a number from {least} to {most}")
    return given


def _invalid(sentence: str) -> ApiError:
    return ApiError(422, sentence, error_code=42204)
