"""Sequential objects, as step functions over hashable states.

A model turns operations of a history into `Call`s (or drops those that say nothing), tells which
of them only look, and splits a history where the object is really many (P-compositionality: a map
is linearizable iff each key is; Herlihy & Wing's locality).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...history import History, HistoryError, Operation, Outcome
from ...history.edn import freeze, read_forms

State = Hashable
UNKNOWN_RESULT = "?"
"""The result of an operation whose answer never came: any result fits."""


@dataclass(frozen=True, slots=True)
class Call:
    """What an operation did, as far as the model cares. Equal calls are interchangeable."""

    function: str
    argument: Hashable = None
    result: Hashable = None


class Illegal:
    """The step that the object could not have taken."""


ILLEGAL = Illegal()


class Model(Protocol):
    """A sequential object."""

    @property
    def initial(self) -> State: ...

    def call(self, operation: Operation) -> Call | None:
        """The operation as a call; None when it cannot have had an effect nor seen one."""
        ...

    def step(self, state: State, call: Call) -> State | Illegal:
        """The state after, or ILLEGAL."""
        ...

    def looks_only(self, call: Call) -> bool:
        """True when no state is changed by this call wherever it is legal."""
        ...

    def cannot_fail(self, call: Call) -> bool:
        """True when the call is legal in every state: it proves nothing about the system."""
        ...

    def partition(self, call: Call) -> Hashable:
        """The independent part of the object that the call touches."""
        ...


class OneObject:
    """Most models: nothing to split, and a failed operation did not happen."""

    def partition(self, call: Call) -> Hashable:
        return None

    def cannot_fail(self, call: Call) -> bool:
        return call.function in ("write", "put", "append", "add") and call.result is None

    def call(self, operation: Operation) -> Call | None:
        if operation.outcome is Outcome.FAIL:
            return None
        argument = freeze(operation.argument)
        if operation.outcome is Outcome.INFO:
            return Call(operation.function, argument, UNKNOWN_RESULT)
        return Call(operation.function, argument, freeze(operation.result))


def unknown_call(call: Call) -> HistoryError:
    return HistoryError(f"the model has no operation {call.function!r}")


@dataclass(frozen=True)
class Register(OneObject):
    """read, write and cas on one value.

    `failed_cas_looks`: a cas that failed saw another value (etcd's logs); otherwise a failed cas
    says nothing, for its reason may have been a timeout.
    """

    initial: State = None
    failed_cas_looks: bool = False

    def call(self, operation: Operation) -> Call | None:
        function, argument = operation.function, operation.argument
        if function == "read":
            if operation.outcome is not Outcome.OK:
                return None
            # A register that starts with a value never holds nil: the answer was not recorded.
            if operation.result is None and self.initial is not None:
                return None
            return Call("read", None, freeze(operation.result))
        if function == "write":
            if operation.outcome is Outcome.FAIL:
                return None
            return Call("write", freeze(argument))
        if function == "cas":
            if operation.outcome is Outcome.FAIL:
                return Call("cas-failed", freeze(argument)) if self.failed_cas_looks else None
            return Call("cas", freeze(argument))
        raise unknown_call(Call(function))

    def step(self, state: State, call: Call) -> State | Illegal:
        function = call.function
        if function == "read":
            return state if call.result == state else ILLEGAL
        if function == "write":
            return call.argument
        pair: tuple[Hashable, Hashable] = call.argument  # type: ignore[assignment]
        expected, new = pair
        if function == "cas":
            return new if state == expected else ILLEGAL
        return ILLEGAL if state == expected else state

    def looks_only(self, call: Call) -> bool:
        return call.function in ("read", "cas-failed")


@dataclass(frozen=True)
class MultiRegister(OneObject):
    """Transactions of `[read k v]` and `[write k v]` over named registers, all at once."""

    initial: State = ()

    def call(self, operation: Operation) -> Call | None:
        if operation.outcome is Outcome.FAIL:
            return None
        known = operation.outcome is Outcome.OK
        steps = freeze(operation.result if known else operation.argument) or ()
        if not known:
            steps = tuple(step for step in steps if step[0] in ("write", "w"))
        return Call("txn", steps)

    def step(self, state: State, call: Call) -> State | Illegal:
        values = dict(state)  # type: ignore[call-overload]
        for verb, name, value in call.argument:  # type: ignore[attr-defined]
            if verb in ("write", "w"):
                values[name] = value
            elif values.get(name) != value:
                return ILLEGAL
        return tuple(sorted(values.items()))

    def cannot_fail(self, call: Call) -> bool:
        return not any(step[0] in ("read", "r") for step in call.argument)  # type: ignore[attr-defined]

    def looks_only(self, call: Call) -> bool:
        return all(step[0] in ("read", "r") for step in call.argument)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Mutex(OneObject):
    """acquire and release; the state says whether it is held."""

    initial: State = False

    def call(self, operation: Operation) -> Call | None:
        return None if operation.outcome is Outcome.FAIL else Call(operation.function)

    def step(self, state: State, call: Call) -> State | Illegal:
        wanted = {"acquire": True, "release": False}.get(call.function)
        if wanted is None:
            raise unknown_call(call)
        return wanted if state is not wanted else ILLEGAL

    def looks_only(self, call: Call) -> bool:
        return False


@dataclass(frozen=True)
class KeyValue(OneObject):
    """get, put and append on strings by key; `value` of an operation is `[key, value]`."""

    initial: State = ""

    def call(self, operation: Operation) -> Call | None:
        key, value = operation.argument
        if operation.function == "get":
            if operation.outcome is not Outcome.OK:
                return None
            return Call("get", key, operation.result[1] or "")
        if operation.function not in ("put", "append"):
            raise unknown_call(Call(operation.function))
        return None if operation.outcome is Outcome.FAIL else Call(operation.function, key, value)

    def step(self, state: State, call: Call) -> State | Illegal:
        if call.function == "get":
            return state if call.result == state else ILLEGAL
        if call.function == "put":
            return call.result
        text: str = state  # type: ignore[assignment]
        return f"{text}{call.result}"

    def looks_only(self, call: Call) -> bool:
        return call.function == "get"

    def cannot_fail(self, call: Call) -> bool:
        return call.function != "get"

    def partition(self, call: Call) -> Hashable:
        return call.argument


ADDS = frozenset({"add", "enqueue", "push", "offer", "put"})
TAKES = frozenset({"remove", "dequeue", "pop", "poll", "take"})
EMPTY = "empty"


@dataclass(frozen=True)
class Sequence(OneObject):
    """A FIFO queue or a LIFO stack; taking may answer `empty` (or nil)."""

    last_in_first_out: bool
    initial: State = ()

    def call(self, operation: Operation) -> Call | None:
        if operation.outcome is Outcome.FAIL:
            return None
        if operation.function in ADDS:
            return Call("add", freeze(operation.argument))
        if operation.function not in TAKES:
            raise unknown_call(Call(operation.function))
        if operation.outcome is Outcome.INFO:
            return Call("take", None, UNKNOWN_RESULT)
        result = freeze(operation.result)
        return Call("empty") if result in (EMPTY, None) else Call("take", None, result)

    def step(self, state: State, call: Call) -> State | Illegal:
        items: tuple[Hashable, ...] = state  # type: ignore[assignment]
        if call.function == "add":
            return (*items, call.argument)
        if call.function == "empty":
            return ILLEGAL if items else state
        if not items:
            return state if call.result == UNKNOWN_RESULT else ILLEGAL
        taken, rest = (items[-1], items[:-1]) if self.last_in_first_out else (items[0], items[1:])
        return rest if call.result in (taken, UNKNOWN_RESULT) else ILLEGAL

    def looks_only(self, call: Call) -> bool:
        return call.function == "empty"


@dataclass(frozen=True)
class Set(OneObject):
    """add, remove and contains by value, read of everything.

    `add` and `remove` may answer whether they changed the set (true or false); nil: not said.
    """

    initial: State = frozenset()

    def call(self, operation: Operation) -> Call | None:
        if operation.outcome is Outcome.FAIL:
            return None
        function = operation.function
        known = operation.outcome is Outcome.OK
        if function == "read":
            return Call("read", None, frozenset(freeze(operation.result or []))) if known else None
        argument = freeze(operation.argument)
        if function == "contains":
            return Call("contains", argument, bool(operation.result)) if known else None
        if function not in ("add", "remove"):
            raise unknown_call(Call(function))
        said = operation.result if known and isinstance(operation.result, bool) else None
        return Call(function, argument, said)

    def step(self, state: State, call: Call) -> State | Illegal:
        members: frozenset[Hashable] = state  # type: ignore[assignment]
        if call.function == "read":
            return state if call.result == members else ILLEGAL
        present = call.argument in members
        if call.function == "contains":
            return state if call.result is present else ILLEGAL
        changes = present == (call.function == "remove")
        if call.result is not None and call.result is not changes:
            return ILLEGAL
        if not changes:
            return state
        if call.function == "add":
            return members | {call.argument}
        return members - {call.argument}

    def looks_only(self, call: Call) -> bool:
        return call.function in ("read", "contains") or call.result is False


@dataclass(frozen=True)
class Log(OneObject):
    """An append-only log: `append` answers the offset, `read` at an offset a value or nil
    (nothing there yet), `end` the next offset to be written.
    """

    initial: State = ()

    def call(self, operation: Operation) -> Call | None:
        if operation.outcome is Outcome.FAIL:
            return None
        known = operation.outcome is Outcome.OK
        argument = freeze(operation.argument)
        if operation.function == "append":
            return Call("append", argument, operation.result if known else UNKNOWN_RESULT)
        if operation.function not in ("read", "end"):
            raise unknown_call(Call(operation.function))
        return Call(operation.function, argument, freeze(operation.result)) if known else None

    def step(self, state: State, call: Call) -> State | Illegal:
        log: tuple[Hashable, ...] = state  # type: ignore[assignment]
        if call.function == "append":
            if call.result not in (len(log), UNKNOWN_RESULT):
                return ILLEGAL
            return (*log, call.argument)
        if call.function == "end":
            return state if call.result == len(log) else ILLEGAL
        offset: int = call.argument  # type: ignore[assignment]
        found = log[offset] if offset < len(log) else None
        return state if call.result == found else ILLEGAL

    def looks_only(self, call: Call) -> bool:
        return call.function != "append"


@dataclass(frozen=True)
class Topics(OneObject):
    """What the quorum knows of each topic: `create-topic` and `describe-topic` by
    `[name, configuration]`, `delete-topic` by name.

    A refusal tells the state as well as a description does: a creation answered `exists`, a
    deletion answered `absent`. The state is the configuration in a tuple, or nil.
    """

    initial: State = None

    def call(self, operation: Operation) -> Call | None:
        if operation.outcome is Outcome.FAIL:
            return None
        known = operation.outcome is Outcome.OK
        argument = operation.argument
        name, configuration = argument if isinstance(argument, list) else (argument, None)
        return topic_call(operation.function, name, configuration, operation.result, known=known)

    def step(self, state: State, call: Call) -> State | Illegal:
        if call.function == "describe-topic":
            return state if call.result == state else ILLEGAL
        there = state is not None
        refuses = there if call.function == "create-topic" else not there
        if call.result != UNKNOWN_RESULT and (call.result == REFUSED) != refuses:
            return ILLEGAL
        if refuses:
            return state
        target: tuple[Hashable, Hashable] = call.argument  # type: ignore[assignment]
        return target[1:] if call.function == "create-topic" else None

    def looks_only(self, call: Call) -> bool:
        return call.function == "describe-topic" or call.result == REFUSED

    def cannot_fail(self, call: Call) -> bool:
        return call.result == UNKNOWN_RESULT

    def partition(self, call: Call) -> Hashable:
        target: tuple[Hashable, Hashable] = call.argument  # type: ignore[assignment]
        return target[0]


REFUSED = "refused"
TOPIC_REFUSALS = {"create-topic": "exists", "delete-topic": "absent"}


def topic_call(
    function: str, name: Any, configuration: Any, answer: Any, *, known: bool
) -> Call | None:
    """None for a description that was never answered."""
    if function not in ("create-topic", "delete-topic", "describe-topic"):
        raise unknown_call(Call(function))
    target = (freeze(name), freeze(configuration))
    if function == "describe-topic":
        found = None if answer is None else (freeze(answer),)
        return Call(function, (target[0], None), found) if known else None
    if not known:
        return Call(function, target, UNKNOWN_RESULT)
    return Call(function, target, REFUSED if answer == TOPIC_REFUSALS[function] else None)


def initial_value(description: str) -> Any:
    """The `initial value V` that a description names; nil when it names none."""
    match = re.search(r"initial(?: value)?[ :=]+([^\s,;)/]+)", description)
    return freeze(read_forms(match.group(1))[0]) if match else None


def register(description: str, *, failed_cas_looks: bool) -> Model:
    return Register(initial_value(description), failed_cas_looks)


def multi_register(description: str) -> Model:
    """Initial values from a map in the description: `multi-register {x 0, y 0}`."""
    match = re.search(r"\{[^}]*\}", description)
    values = read_forms(match.group(0))[0] if match else {}
    return MultiRegister(tuple(sorted((str(name), value) for name, value in values.items())))


MODELS: Mapping[str, Callable[[str], Model]] = {
    "register": lambda d: register(d, failed_cas_looks=False),
    "cas-register": lambda d: register(d, failed_cas_looks="cas has ok/fail results" in d),
    "multi-register": multi_register,
    "mutex": lambda d: Mutex(),
    "key-value": lambda d: KeyValue(),
    "string kv map": lambda d: KeyValue(),
    "queue": lambda d: Sequence(last_in_first_out=False),
    "FIFO queue": lambda d: Sequence(last_in_first_out=False),
    "stack": lambda d: Sequence(last_in_first_out=True),
    "LIFO stack": lambda d: Sequence(last_in_first_out=True),
    "linearizable set": lambda d: Set(),
    "log": lambda d: Log(),
    "topics": lambda d: Topics(),
}
"""By name. What a description says after the name may set the initial value."""


def model_named(description: str) -> Model:
    """The model that the leading words name. Raises HistoryError for one that is unknown."""
    lowered = description.casefold()
    for name in sorted(MODELS, key=len, reverse=True):
        if lowered.startswith(name.casefold()):
            return MODELS[name](description)
    raise HistoryError(f"unknown model {description!r}; known: {', '.join(MODELS)}")


def calls_of(history: History, model: Model) -> list[tuple[Call, int, int, int]]:
    """(call, invoked, completed, index) of each operation that the model has a say in."""
    calls = []
    for operation in history:
        call = model.call(operation)
        if call is not None:
            calls.append((call, operation.invoked, operation.completed, operation.index))
    return calls
