"""How `consume` prints a record and `produce` reads one.

`%k` key, `%v` value, `%h` headers, `%t` topic, `%p` partition, `%o` offset, `%d` time in Unix
milliseconds, `%%`; `\\n` and `\\t` mean what they do in C. `json` is a line of JSON that `produce`
takes back as it was: key, value, headers, partition and time. The language is kcat's and rpk's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .failure import ExitStatus, Failure

JSON_FORMAT = "json"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}


class RecordFormat:
    """Raises Failure for a format that says nothing."""

    def __init__(self, text: str) -> None:
        self._parts = None if text == JSON_FORMAT else list(_parts(text))

    @property
    def is_json(self) -> bool:
        return self._parts is None

    def line(self, record: Mapping[str, Any]) -> str:
        """What stands on standard output, with its line break if it wants one."""
        if self._parts is None:
            return json.dumps(record, ensure_ascii=False) + "\n"
        return "".join(
            part if not is_field else _field(record, part) for is_field, part in self._parts
        )


def _parts(text: str) -> list[tuple[bool, str]]:
    """(whether it names a field, text or the field's letter)"""
    parts: list[tuple[bool, str]] = []
    position = 0
    while position < len(text):
        letter, after = text[position], text[position + 1 : position + 2]
        if letter == "\\" and after in _ESCAPES:
            parts.append((False, _ESCAPES[after]))
            position += 2
        elif letter == "%" and after == "%":
            parts.append((False, "%"))
            position += 2
        elif letter == "%":
            if after not in _FIELDS:
                known = ", ".join(f"%{name}" for name in sorted(_FIELDS))
                raise Failure(f"{letter + after!r} is no field: {known}", ExitStatus.USAGE)
            parts.append((True, after))
            position += 2
        else:
            parts.append((False, letter))
            position += 1
    return parts


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


_FIELDS = {
    "k": lambda record: _text(record.get("key")),
    "v": lambda record: _text(record.get("value")),
    "h": lambda record: ",".join(
        f"{header['key']}={_text(header.get('value'))}" for header in record.get("headers") or ()
    ),
    "t": lambda record: str(record["topic"]),
    "p": lambda record: str(record["partition"]),
    "o": lambda record: str(record["offset"]),
    "d": lambda record: str(record["timestamp"]),
}


def _field(record: Mapping[str, Any], letter: str) -> str:
    return _FIELDS[letter](record)


def from_json_line(line: str, number: int) -> dict[str, Any]:
    """What `-f json` printed, ready for POST .../records, whose batches have one encoding: `text`
    says which. Raises Failure."""
    try:
        document = json.loads(line)
    except ValueError as error:
        raise Failure(f"line {number} is no JSON: {error}") from error
    if not isinstance(document, dict) or "value" not in document:
        raise Failure(f'line {number} is no JSON object with a "value"')
    return document
