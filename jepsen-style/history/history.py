"""The operation record, and a history of them in columns.

Order is order of *events*: every invocation and every completion takes the next place in one
sequence, so "a completed before b was invoked" is one comparison of integers, and two clocks are
never compared. Times (nanoseconds of the harness clock) are kept for lag figures and pictures.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

NEVER = sys.maxsize
"""The place of a completion that the history does not hold: later than every event."""

USUAL_NAMES = ("process", "type", "f", "value", "time", "index")
IN_COLUMNS = frozenset({*USUAL_NAMES, "key"})
"""Fields of events that an operation's columns hold (`event_value` takes in the key)."""

Value = Any
"""Whatever a client sent or got; only a checker's model knows its shape."""

Process = int | str


class HistoryError(Exception):
    """A history that cannot be read; says where, so that a person can look."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


class Outcome(IntEnum):
    """What the client may conclude. INFO: it may have happened, or may yet, or never will."""

    OK = 0
    FAIL = 1
    INFO = 2


OUTCOMES: Mapping[str, Outcome] = {
    "ok": Outcome.OK,
    "fail": Outcome.FAIL,
    "info": Outcome.INFO,
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, from invocation to completion.

    `invoked` and `completed` are places in the sequence of events; `completed` is NEVER when the
    outcome is INFO, since such an operation may take effect at any later time.
    """

    index: int
    process: Process
    function: str
    argument: Value
    result: Value
    outcome: Outcome
    invoked: int
    completed: int
    invoke_time: int
    complete_time: int

    def __str__(self) -> str:
        end = "..." if self.completed == NEVER else str(self.completed)
        shown = self.result if self.outcome is Outcome.OK else self.argument
        return (
            f"#{self.index} process {self.process} {self.function} {shown!r} "
            f"{self.outcome.name.lower()} [{self.invoked}, {end}]"
        )


@dataclass(slots=True)
class History:
    """Operations of clients in columns, in order of invocation; other processes' events beside.

    The columns have one length. `observations` holds events of processes that are no clients
    (faults, snapshots of metadata), as they were written, each with the place where it stood.
    """

    process: list[Process] = field(default_factory=list)
    function: list[str] = field(default_factory=list)
    argument: list[Value] = field(default_factory=list)
    result: list[Value] = field(default_factory=list)
    outcome: bytearray = field(default_factory=bytearray)
    invoked: array[int] = field(default_factory=lambda: array("q"))
    completed: array[int] = field(default_factory=lambda: array("q"))
    invoke_time: array[int] = field(default_factory=lambda: array("q"))
    complete_time: array[int] = field(default_factory=lambda: array("q"))
    observations: list[tuple[int, Mapping[str, Value]]] = field(default_factory=list)
    events: int = 0
    """Events read so far; the place the next one takes."""

    extra: dict[int, Mapping[str, Value]] = field(default_factory=dict)
    """By operation: a completion's event when it carries more than the usual fields."""

    given_up: dict[int, int] = field(default_factory=dict)
    """By operation: where its client learned that it will not learn the outcome (INFO)."""

    declared_model: str | None = None
    """The object that the file itself names (violin's `# @object`); None when it names none."""

    open_operations: dict[Process, int] = field(default_factory=dict, repr=False)
    """The operation that each process waits for."""

    def __len__(self) -> int:
        return len(self.function)

    def __getitem__(self, index: int) -> Operation:
        return Operation(
            index=index,
            process=self.process[index],
            function=self.function[index],
            argument=self.argument[index],
            result=self.result[index],
            outcome=Outcome(self.outcome[index]),
            invoked=self.invoked[index],
            completed=self.completed[index],
            invoke_time=self.invoke_time[index],
            complete_time=self.complete_time[index],
        )

    def __iter__(self) -> Iterator[Operation]:
        return (self[index] for index in range(len(self)))

    def extra_fields(self, index: int) -> Mapping[str, Value]:
        """What an operation's completion says beyond the usual fields, such as an error."""
        event = self.extra.get(index, {})
        return {name: value for name, value in event.items() if name not in IN_COLUMNS}

    def invoke(self, process: Process, function: str, argument: Value, time: int) -> int:
        """A client asks. Raises HistoryError when it still waits for its previous answer."""
        if process in self.open_operations:
            raise HistoryError(f"process {process} invokes {function!r} before its last completed")
        check_time(time)
        index = len(self.function)
        self.open_operations[process] = index
        self.process.append(process)
        self.function.append(function)
        self.argument.append(argument)
        self.result.append(None)
        self.outcome.append(Outcome.INFO)
        self.invoked.append(self.events)
        self.completed.append(NEVER)
        self.invoke_time.append(time)
        self.complete_time.append(NEVER)
        self.events += 1
        return index

    def complete(self, process: Process, outcome: Outcome, result: Value, time: int) -> int:
        """The answer to the process's open operation. Raises HistoryError when there is none."""
        check_time(time)
        index = self.open_operations.pop(process, None)
        if index is None:
            raise HistoryError(f"process {process} completes an operation it never invoked")
        self.outcome[index] = outcome
        self.result[index] = result
        self.complete_time[index] = time
        if outcome != Outcome.INFO:
            self.completed[index] = self.events
        else:
            self.given_up[index] = self.events
        self.events += 1
        return index

    def observe(self, event: Mapping[str, Value]) -> None:
        """An event of the nemesis or an observer."""
        self.observations.append((self.events, event))
        self.events += 1

    def add_event(self, event: Mapping[str, Value]) -> None:
        """One Jepsen operation map: `type`, `process`, `f`, `value`, `time` and whatever else."""
        kind = event.get("type")
        process = event.get("process", 0)
        if not isinstance(process, int):
            self.observe(event)
        elif kind == "invoke":
            self.invoke(process, event.get("f") or "txn", event_value(event), event.get("time", 0))
        elif isinstance(kind, str) and kind in OUTCOMES:
            if kind == "info" and process not in self.open_operations:
                self.observe(event)
                return
            index = self.complete(process, OUTCOMES[kind], event_value(event), event.get("time", 0))
            if not event.keys() <= IN_COLUMNS:
                self.extra[index] = event
            # Jepsen's op maps name the function twice; a mismatch is a torn or mixed file.
            if event.get("f", self.function[index]) != self.function[index]:
                asked = self.function[index]
                raise HistoryError(f"process {process} asked {asked!r}, got {event.get('f')!r}")
        else:
            raise HistoryError(f"type must be invoke, ok, fail or info, not {kind!r}")


def check_time(time: object) -> None:
    """Raises HistoryError for what is no whole number of 64 bits."""
    if type(time) is not int or not -NEVER <= time <= NEVER:
        raise HistoryError(f"time must be nanoseconds, not {time!r}")


def event_value(event: Mapping[str, Value]) -> Value:
    """An event's value; maps that name their key apart (Porcupine's) give a `[key, value]`."""
    if "key" in event:
        return [event["key"], event.get("value")]
    return event.get("value")


def history_of(operations: Iterable[Operation]) -> History:
    """A history of hand-made operations; `invoked`/`completed` are kept, not renumbered."""
    history = History()
    for operation in sorted(operations, key=lambda operation: operation.invoked):
        history.process.append(operation.process)
        history.function.append(operation.function)
        history.argument.append(operation.argument)
        history.result.append(operation.result)
        history.outcome.append(operation.outcome)
        history.invoked.append(operation.invoked)
        history.completed.append(operation.completed)
        history.invoke_time.append(operation.invoke_time)
        history.complete_time.append(operation.complete_time)
        last = operation.invoked if operation.completed == NEVER else operation.completed
        history.events = max(history.events, last + 1)
    return history
