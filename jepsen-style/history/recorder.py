"""Writing a history: a line an event while the run goes on, or a whole one as EDN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import orjson

from .edn import Keyword, write_form
from .history import NEVER, History, Outcome

LINE = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


class Recorder:
    """Appends Jepsen operation maps to `output`, one JSON line each, in the order of its calls.

    The caller gives every time from **one** monotonic clock of the harness, in nanoseconds.
    Nothing is buffered here: a line is handed to `output` before the next step of a client.
    """

    def __init__(self, output: IO[bytes]) -> None:
        self._output = output
        self._next_index = 0

    def invoke(self, process: int, function: str, value: Any, time: int) -> None:
        self._write("invoke", process, function, value, time, {})

    def complete(
        self,
        process: int,
        function: str,
        outcome: Outcome,
        value: Any,
        time: int,
        *,
        error: str | None = None,
    ) -> None:
        extra = {} if error is None else {"error": error}
        self._write(outcome.name.lower(), process, function, value, time, extra)

    def observe(self, process: str, function: str, value: Any, time: int) -> None:
        """A fault, or a snapshot of the cluster's state, by a named process that is no client."""
        self._write("info", process, function, value, time, {})

    def _write(
        self,
        kind: str,
        process: int | str,
        function: str,
        value: Any,
        time: int,
        extra: Mapping[str, Any],
    ) -> None:
        event = {
            "index": self._next_index,
            "time": time,
            "process": process,
            "type": kind,
            "f": function,
            "value": value,
            **extra,
        }
        self._next_index += 1
        self._output.write(orjson.dumps(event, option=LINE))


def write_edn(history: History) -> str:
    """The history as Jepsen would write it, an operation map a line, in order of events."""
    lines: list[tuple[int, str]] = []
    for operation in history:
        common = {"process": operation.process, "f": Keyword(operation.function)}
        invocation = {
            "type": Keyword("invoke"),
            **common,
            "value": operation.argument,
            "time": operation.invoke_time,
        }
        lines.append((operation.invoked, map_line(invocation)))
        end = history.given_up.get(operation.index, operation.completed)
        if end != NEVER:
            completion = {
                "type": Keyword(operation.outcome.name.lower()),
                **common,
                "value": operation.result,
                "time": operation.complete_time,
                **history.extra_fields(operation.index),
            }
            lines.append((end, map_line(completion)))
    for place, event in history.observations:
        lines.append((place, map_line(event)))
    lines.sort(key=lambda line: line[0])
    return "".join(f"{line}\n" for _, line in lines)


def map_line(event: Mapping[str, Any]) -> str:
    inner = ", ".join(f":{name} {write_form(value)}" for name, value in event.items())
    return f"{{{inner}}}"
