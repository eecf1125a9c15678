"""JSON lines: one event a line, which is how runs of a million operations are written."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import itemgetter
from struct import pack
from sys import intern
from typing import Any

import orjson

from .history import NEVER, USUAL_NAMES, History, HistoryError, Outcome

CHUNK = 1 << 15
"""Bytes decoded at once: large enough to be quick, small enough to stay in the cache."""

USUAL = itemgetter(*USUAL_NAMES)
USUAL_FIELDS = len(USUAL_NAMES)
JUST_POLL = [["poll"]]
NOT_COMPLETED = array("q", [NEVER])


def read_json_lines(data: bytes) -> History:
    """Lines are decoded by the chunk, and the usual events (a client's, with the usual fields) are
    paired right here; `History.add_event` has the rules, and takes every event that is not usual.
    """
    history = History()
    start, number = 0, 1
    while start < len(data):
        end = data.find(b"\n", start + CHUNK) + 1 or len(data)
        lines = data[start:end].removesuffix(b"\n")
        count = lines.count(b"\n") + 1
        events = decoded_together(lines, count)
        if events is None:
            add_line_by_line(history, lines.split(b"\n"), number)
        else:
            done = 0
            while (done := done + add_usual(history, events[done:])) < count:
                add_decoded(history, events[done : done + 1], number + done)
                done += 1
        start, number = end, number + count
    return history


def decoded_together(lines: bytes, count: int) -> list[Any] | None:
    """The values of some lines, one each; None where a line is not just one value."""
    try:
        events = orjson.loads(b"[%b]" % lines.replace(b"\n", b","))
    except orjson.JSONDecodeError:
        return None
    return events if len(events) == count else None


def add_usual(history: History, events: Sequence[Any]) -> int:
    """Pair events as long as they are usual ones; how many that were."""
    waiting = history.open_operations
    processes, functions, arguments = history.process, history.function, history.argument
    results, outcomes = history.result, history.outcome
    completed, complete_time = history.completed, history.complete_time
    invoked: list[int] = []
    invoke_time: list[int] = []
    ok = Outcome.OK.value
    # As if each event were an invocation; what was too much is taken away below.
    results.extend([None] * len(events))
    outcomes.extend([Outcome.INFO.value] * len(events))
    completed.extend(NOT_COMPLETED * len(events))
    complete_time.extend(NOT_COMPLETED * len(events))
    first = place = history.events
    try:
        for event in events:
            process, kind, function, value, time, _ = USUAL(event)
            if len(event) != USUAL_FIELDS or type(process) is not int:
                break
            if type(time) is not int or time > NEVER:
                break
            if kind == "invoke" and process not in waiting:
                functions.append(intern(function))
                waiting[process] = len(processes)
                processes.append(process)
                # Half of all arguments, and one object for them.
                arguments.append(JUST_POLL if value == JUST_POLL else value)
                invoked.append(place)
                invoke_time.append(time)
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
    history.invoked.extend(packed(invoked))
    history.invoke_time.extend(packed(invoke_time))
    for column in (results, outcomes, completed, complete_time):
        del column[len(processes) :]
    return place - first


def packed(numbers: list[int]) -> array[int]:
    """(`array("q", numbers)` takes ten times as long.)"""
    return array("q", pack(f"{len(numbers)}q", *numbers))


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
