"""How `consume` prints a record.

`%k` key, `%v` value, `%h` headers, `%t` topic, `%p` partition, `%o` offset, `%d` time in Unix
milliseconds, `%%`; `\\n` and `\\t` mean what they do in C. Keys and values are their bytes,
whatever those are. `json` is a line of JSON that `produce --json` takes back as it was: key, value,
headers, partition and time. The language is kcat's and rpk's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from .failure import ExitStatus, Failure
from .record_document import document_of
from .sdk.records import Record

JSON_FORMAT = "json"
_as_json = json.JSONEncoder(ensure_ascii=False).encode
"""Made once: `dumps` would make one for each record."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}

RawRecord = Record[bytes, bytes]
Part = bytes | Callable[[RawRecord], bytes]


class RecordFormat:
    """Raises Failure, status 2, for a format that says nothing."""

    def __init__(self, text: str, *, meta_only: bool = False) -> None:
        self._parts = None if text == JSON_FORMAT else [_part(token) for token in tokens(text)]
        self._meta_only = meta_only

    def line(self, record: RawRecord) -> bytes:
        """What stands on standard output, with its line break if it wants one."""
        if self._parts is None:
            document = document_of(record, meta_only=self._meta_only)
            return _as_json(document).encode() + b"\n"
        return b"".join(part if isinstance(part, bytes) else part(record) for part in self._parts)


def tokens(text: str) -> Iterator[bytes | str]:
    """What a format says, one after the other: text as its bytes, a field as its letter, which is
    empty when the format ends in `%`. Which letters are fields is for the caller to know."""
    position = 0
    while position < len(text):
        letter, after = text[position], text[position + 1 : position + 2]
        if letter == "\\" and after in _ESCAPES:
            yield _ESCAPES[after].encode()
        elif letter == "%" and after == "%":
            yield b"%"
        elif letter == "%":
            yield after
        else:
            yield letter.encode("utf-8", "surrogateescape")
            position -= 1
        position += 2


def _part(token: bytes | str) -> Part:
    if isinstance(token, bytes):
        return token
    if token not in _FIELDS:
        known = ", ".join(f"%{name}" for name in sorted(_FIELDS))
        raise Failure(f"{'%' + token!r} is no field: json, or {known}", ExitStatus.USAGE)
    return _FIELDS[token]


def _headers(record: RawRecord) -> bytes:
    return b",".join(b"%s=%s" % (name.encode(), data or b"") for name, data in record.headers)


_FIELDS: Mapping[str, Callable[[RawRecord], bytes]] = MappingProxyType(
    {
        "k": lambda record: record.key or b"",
        "v": lambda record: record.value or b"",
        "h": _headers,
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "d": lambda record: b"%d" % record.timestamp,
    }
)
