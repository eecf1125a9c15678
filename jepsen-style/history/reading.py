"""Reading histories: every format of the field, told apart by name or by their first line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from sys import intern
from typing import Any

import orjson

from .edn import Keyword, read_forms, read_forms_with_lines
from .history import NEVER, OUTCOMES, USUAL_FIELDS, History, HistoryError, Outcome

JEPSEN_LOG_LINE = re.compile(r"INFO\s+jepsen\.util - (\S+)\s+:(\w+)\s+:([\w-]+)\s+(.*)$")
VIOLIN_LINE = re.compile(r"\s*\[(\d+)\]\s+(call|return)\b\s*(.*?)\s*$")
JUST_POLL = [["poll"]]
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
    history.pack()
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


def read_json_lines(data: bytes) -> History:
    """One event a line. Runs of a million operations come this way, so lines are decoded by the
    chunk, and the usual events (a client's, with the usual fields) are paired right here;
    `History.add_event` has the rules, and takes every event that is not usual.
    """
    history = History()
    start, number = 0, 1
    while start < len(data):
        end = data.find(b"\n", start + CHUNK) + 1 or len(data)
        lines = data[start:end]
        events = decoded_together(lines)
        if events is None:
            add_line_by_line(history, lines.splitlines(), number)
        else:
            done = 0
            while (done := done + add_usual(history, events[done:])) < len(events):
                add_decoded(history, events[done : done + 1], number + done)
                done += 1
        start, number = end, number + lines.count(b"\n")
    return history


CHUNK = 1 << 15
"""Bytes decoded at once: large enough to be quick, small enough to stay in the cache."""


def decoded_together(lines: bytes) -> list[Any] | None:
    """The values of some lines, one each; None where a line is not just one value."""
    stripped = lines.rstrip()
    try:
        events = orjson.loads(b"[%b]" % stripped.replace(b"\n", b","))
    except orjson.JSONDecodeError:
        return None
    return events if len(events) == stripped.count(b"\n") + 1 else None


USUAL = itemgetter("process", "type", "f", "value", "time")


def add_usual(history: History, events: list[Any]) -> int:
    """Pair events as long as they are usual ones; how many that were."""
    waiting = history.open_operations
    processes, functions, arguments = history.process, history.function, history.argument
    results, outcomes = history.result, history.outcome
    invoked, completed = history.invoked, history.completed
    invoke_time, complete_time = history.invoke_time, history.complete_time
    unknown, ok = Outcome.INFO.value, Outcome.OK.value
    first = place = history.events
    try:
        for event in events:
            process, kind, function, value, time = USUAL(event)
            if len(event) != USUAL_FIELDS or type(process) is not int:
                break
            if type(time) is not int or time > NEVER:
                break
            if kind == "invoke" and process not in waiting:
                if value == JUST_POLL:
                    value = JUST_POLL  # half of all arguments, and one object for them
                waiting[process] = len(functions)
                processes.append(process)
                functions.append(intern(function))
                arguments.append(value)
                results.append(None)
                outcomes.append(unknown)
                invoked.append(place)
                completed.append(NEVER)
                invoke_time.append(time)
                complete_time.append(NEVER)
            elif kind == "ok" and process in waiting and function == functions[waiting[process]]:
                index = waiting.pop(process)
                results[index] = value
                outcomes[index] = ok
                completed[index] = place
                complete_time[index] = time
            else:
                break
            place += 1
    except (KeyError, TypeError):
        pass  # fields are missing, or it is no map
    history.events = place
    return place - first


def add_decoded(history: History, events: Sequence[Any], number: int) -> None:
    """Events of any kind; `number` is the line of the first."""
    for line, event in enumerate(events, number):
        if not isinstance(event, dict):
            raise HistoryError("an event must be an object", line=line)
        try:
            history.add_event(event)
        except (HistoryError, TypeError, OverflowError) as error:
            raise HistoryError(str(error), line=line) from error


def add_line_by_line(history: History, lines: Sequence[bytes], number: int) -> None:
    for line, text in enumerate(lines, number):
        if text.strip():
            try:
                event = orjson.loads(text)
            except orjson.JSONDecodeError as error:
                raise HistoryError(str(error), line=line) from error
            add_decoded(history, [event], line)


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
