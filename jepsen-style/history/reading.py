"""Reading histories: every format of the field, told apart by name or by their first line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from .edn import Keyword, read_forms, read_forms_with_lines
from .history import OUTCOMES, History, HistoryError
from .json_lines import read_json_lines

JEPSEN_LOG_LINE = re.compile(r"INFO\s+jepsen\.util - (\S+)\s+:(\w+)\s+:([\w-]+)\s+(.*)$")
VIOLIN_LINE = re.compile(r"\s*\[(\d+)\]\s+(call|return)\b\s*(.*?)\s*$")
VIOLIN_OBJECT = re.compile(r"\s*#\s*@object\s+(?:atomic-)?(\S+)")
VIOLIN_CALL = re.compile(r"(\w+)\s*(?:\(\s*(.*?)\s*\))?$")


def read_history(path: Path, format: str | None = None) -> History:
    """The history in a file. `format` is one of FORMATS by its leading words; None: by content.

    Raises HistoryError for a file that is missing, not text, empty of events or malformed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise HistoryError(f"cannot read: {error.strerror or error}") from error
    return parse_history(data, format)


def parse_history(data: bytes, format: str | None = None) -> History:
    """The same for bytes."""
    reader = FORMATS[named_format(format)] if format is not None else FORMATS[sniff_format(data)]
    history = reader(data)
    if not history.events:
        raise HistoryError("no operation in the file", line=1)
    return history


def named_format(format: str) -> str:
    """The format that a description's leading words name; the longest name wins."""
    lowered = format.casefold()
    for name in sorted(FORMATS, key=len, reverse=True):
        if lowered.startswith(name.casefold()):
            return name
    raise HistoryError(f"unknown format {format!r}; known: {', '.join(FORMATS)}")


def sniff_format(data: bytes) -> str:
    """The format of a file by its first line that is neither empty nor a comment."""
    text = decode(data[:65536], errors="replace")
    for line in text.splitlines():
        line = line.strip()
        if line.startswith(("# ", ";")) or not line:
            continue
        if JEPSEN_LOG_LINE.match(line):
            return "jepsen text log"
        if VIOLIN_LINE.match(line):
            return "violin text log"
        if re.match(r'\{\s*"', line):
            return "JSON lines"
        if re.match(r'\[\s*(\{\s*"|$)', line) and '"' in text and ":type" not in text:
            return "JSON"
        if line[0] in "[{(#":
            return "EDN"
        break
    raise HistoryError("not a history in any known format", line=1)


def decode(data: bytes, errors: str = "strict") -> str:
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise HistoryError("not UTF-8 text", line=line) from error


def read_json(data: bytes) -> History:
    """One array of events."""
    try:
        events = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        # The decoder counts characters; what stands before the place gives the line.
        raise HistoryError(error.msg, line=error.lineno) from error
    if not isinstance(events, list):
        raise HistoryError("expected an array of events", line=1)
    return history_of_events((event, index + 1) for index, event in enumerate(events))


def read_edn(data: bytes) -> History:
    """A vector of operation maps, or one map after another; comments allowed."""
    text = decode(data)
    forms = read_forms_with_lines(text)
    if len(forms) == 1 and isinstance(forms[0][0], list):
        return history_of_events((event, None) for event in forms[0][0])
    return history_of_events(forms)


def history_of_events(events: Iterable[tuple[Any, int | None]]) -> History:
    history = History()
    for place, (event, line) in enumerate(events, 1):
        try:
            if not isinstance(event, Mapping):
                raise HistoryError(f"event {place} must be a map")
            history.add_event(event)
        except HistoryError as error:
            message = str(error) if line is not None else f"event {place}: {error}"
            raise HistoryError(message, line=line) from error
    return history


def read_jepsen_log(data: bytes) -> History:
    """Lines `INFO  jepsen.util - PROCESS :TYPE :FUNCTION VALUE`."""
    history = History()
    forms_of: dict[str, list[Any]] = {}  # the same few values fill a whole log
    for number, line in enumerate(decode(data).splitlines(), 1):
        if not line.strip():
            continue
        match = JEPSEN_LOG_LINE.match(line)
        if match is None:
            raise HistoryError(f"not a line of a Jepsen log: {line[:80]!r}", line=number)
        process, kind, function, value = match.groups()
        forms = forms_of.get(value)
        if forms is None:
            forms = forms_of[value] = read_forms(value)
        event: dict[str, Any] = {
            "process": int(process) if process.isdecimal() else process.lstrip(":"),
            "type": kind,
            "f": function,
            "value": forms[0] if forms else None,
        }
        # A completion that brings an error instead of a value says only that it is unknown.
        if kind in OUTCOMES and isinstance(event["value"], Keyword):
            event["error"], event["value"] = event["value"], None
        try:
            history.add_event(event)
        except HistoryError as error:
            raise HistoryError(str(error), line=number) from error
    return history


def read_violin(data: bytes) -> History:
    """Lines `[ID] call add(1)` and `[ID] return 2`, an id an operation; `#` begins a comment.

    `# @object atomic-queue` declares the object. A comment may follow without white space.
    """
    history = History()
    for number, line in enumerate(decode(data).splitlines(), 1):
        declared = VIOLIN_OBJECT.match(line)
        if declared is not None:
            history.declared_model = declared.group(1)
        line = line.partition("#")[0]
        if not line.strip():
            continue
        match = VIOLIN_LINE.match(line)
        if match is None:
            raise HistoryError(f"not a line of a violin log: {line[:80]!r}", line=number)
        process, verb, rest = match.groups()
        try:
            if verb == "return":
                event: dict[str, Any] = {"type": "ok", "value": rest or None}
            else:
                call = VIOLIN_CALL.match(rest)
                if call is None:
                    raise HistoryError(f"cannot read the call {rest!r}")
                event = {"type": "invoke", "f": call.group(1), "value": call.group(2) or None}
            history.add_event({"process": int(process), **event})
        except HistoryError as error:
            raise HistoryError(str(error), line=number) from error
    return history


FORMATS: Mapping[str, Callable[[bytes], History]] = {
    "EDN": read_edn,
    "one EDN map a line": read_edn,
    "JSON": read_json,
    "JSON lines": read_json_lines,
    "jepsen text log": read_jepsen_log,
    "violin text log": read_violin,
}
"""Name to reader; a description selects by its leading words."""
