"""Histories of sequential objects under concurrent clients, some with a wrong answer in them.

A client invokes, the operation takes effect, the client is answered: three steps, interleaved by
chance, and a client may crash before or after the effect. So an uncorrupted history is linearizable
by construction; a corrupted one has an answer that was changed, and may or may not be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from ..history import History, Outcome


class Thing(Protocol):
    """An object: makes up what to do next, and does it."""

    def propose(self, random: Random) -> tuple[str, Any]: ...

    def act(self, function: str, argument: Any) -> tuple[Outcome, Any]: ...


@dataclass(slots=True)
class Open:
    function: str
    argument: Any
    done: tuple[Outcome, Any] | None = None


def simulate(thing: Thing, random: Random, *, operations: int, clients: int = 3) -> History:
    """A history of at most `operations` operations by `clients` clients at a time."""
    history = History()
    running: dict[int, Open] = {}
    next_client, left = clients, operations
    idle = list(range(clients))
    while left or running:
        if left and idle and (not running or random.random() < 0.4):
            client = idle.pop(random.randrange(len(idle)))
            function, argument = thing.propose(random)
            history.invoke(client, function, argument, history.events)
            running[client] = Open(function, argument)
            left -= 1
            continue
        client = random.choice(list(running))
        step = running[client]
        if random.random() < 0.06:
            # The client crashes and nobody answers it; another takes its place.
            history.complete(client, Outcome.INFO, None, history.events)
            del running[client]
            idle.append(next_client)
            next_client += 1
        elif step.done is None:
            step.done = thing.act(step.function, step.argument)
        else:
            outcome, result = step.done
            history.complete(client, outcome, result, history.events)
            del running[client]
            idle.append(client)
    return history


def corrupt(history: History, random: Random) -> None:
    """Change one answer, or when something was answered, in one of the ways that faults do."""
    ok = [index for index in range(len(history)) if history.outcome[index] == Outcome.OK]
    if not ok:
        return
    victim = random.choice(ok)
    alike = [i for i in ok if history.function[i] == history.function[victim] and i != victim]
    choice = random.random()
    if choice < 0.15:
        trade_places(history, victim, random.choice(ok))
    elif choice < 0.25:
        refused = [i for i in range(len(history)) if history.outcome[i] == Outcome.FAIL]
        if refused:
            history.outcome[random.choice(refused)] = Outcome.OK
        else:
            history.outcome[victim] = Outcome.FAIL
    elif choice < 0.5 and alike:
        history.result[victim] = history.result[random.choice(alike)]
    elif choice < 0.9:
        history.result[victim] = wrong(history.function[victim], history.result[victim], random)
    elif alike:
        other, results = random.choice(alike), history.result
        results[victim], results[other] = results[other], results[victim]


def trade_places(history: History, one: int, other: int) -> None:
    """Each operation happens when the other did."""
    for column in (history.function, history.argument, history.result):
        column[one], column[other] = column[other], column[one]


def wrong(function: str, result: Any, random: Random) -> Any:
    """An answer near the right one."""
    if isinstance(result, bool):
        return not result
    if function in ("remove", "dequeue") and random.random() < 0.6:
        return "empty"
    if isinstance(result, int):
        return result + random.choice((-1, 1))
    if isinstance(result, list) and function == "read":
        if result and random.random() < 0.7:
            return [item for item in result if item != random.choice(result)]
        return [*result, 99]
    if isinstance(result, dict) and function == "read":
        changed = dict(result)
        account = random.choice(sorted(changed))
        amount = random.choice((-12, -1, 1))
        changed[account] += amount
        if random.random() < 0.5:
            changed[random.choice(sorted(changed))] -= amount
        return changed
    return result


class Values:
    """Values that are never given twice."""

    def __init__(self) -> None:
        self._next = 0

    def fresh(self) -> int:
        self._next += 1
        return self._next


class RegisterThing:
    def __init__(self, *, unique: bool, cas: bool) -> None:
        self.value: Any = None
        self._values = Values()
        self._unique, self._cas = unique, cas

    def propose(self, random: Random) -> tuple[str, Any]:
        if random.random() < 0.5:
            return "read", None
        value = self._values.fresh() if self._unique else random.randrange(3)
        if self._cas and random.random() < 0.5:
            return "cas", [random.randrange(3), value]
        return "write", value

    def act(self, function: str, argument: Any) -> tuple[Outcome, Any]:
        if function == "read":
            return Outcome.OK, self.value
        if function == "write":
            self.value = argument
            return Outcome.OK, argument
        if self.value != argument[0]:
            return Outcome.FAIL, argument
        self.value = argument[1]
        return Outcome.OK, argument


class MutexThing:
    def __init__(self) -> None:
        self.held = False

    def propose(self, random: Random) -> tuple[str, Any]:
        return random.choice(("acquire", "release")), None

    def act(self, function: str, argument: Any) -> tuple[Outcome, Any]:
        if self.held == (function == "acquire"):
            return Outcome.FAIL, None
        self.held = function == "acquire"
        return Outcome.OK, None


class KeyValueThing:
    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def propose(self, random: Random) -> tuple[str, Any]:
        function = random.choice(("get", "get", "put", "append"))
        return function, [random.choice("ab"), None if function == "get" else random.choice("xyz")]

    def act(self, function: str, argument: Any) -> tuple[Outcome, Any]:
        key, value = argument
        if function == "get":
            return Outcome.OK, [key, self.values.get(key, "")]
        before = self.values.get(key, "") if function == "append" else ""
        self.values[key] = before + value
        return Outcome.OK, argument


class SequenceThing:
    def __init__(self, *, last_in_first_out: bool) -> None:
        self._items: list[int] = []
        self._values = Values()
        self._end = -1 if last_in_first_out else 0

    def propose(self, random: Random) -> tuple[str, Any]:
        return ("add", self._values.fresh()) if random.random() < 0.5 else ("remove", None)

    def act(self, function: str, argument: Any) -> tuple[Outcome, Any]:
        if function == "add":
            self._items.append(argument)
            return Outcome.OK, None
        return Outcome.OK, self._items.pop(self._end) if self._items else "empty"


class SetThing:
    """By element (add, remove, contains) or by snapshot (add, read)."""

    def __init__(self, *, snapshots: bool) -> None:
        self._members: set[int] = set()
        self._values = Values()
        self._snapshots = snapshots
        self._removable: list[int] = []
        self._added: list[int] = []

    def propose(self, random: Random) -> tuple[str, Any]:
        if self._added and random.random() < 0.6:
            if self._snapshots:
                return "read", None
            if self._removable and random.random() < 0.3:
                return "remove", self._removable.pop()
            return "contains", random.choice(self._added)
        value = self._values.fresh()
        self._added.append(value)
        self._removable.append(value)
        return "add", value

    def act(self, function: str, argument: Any) -> tuple[Outcome, Any]:
        if function == "read":
            return Outcome.OK, sorted(self._members)
        there = argument in self._members
        if function == "contains":
            return Outcome.OK, there
        if function == "add":
            self._members.add(argument)
            return Outcome.OK, not there
        self._members.discard(argument)
        return Outcome.OK, there


class LogThing:
    def __init__(self) -> None:
        self._log: list[int] = []
        self._values = Values()

    def propose(self, random: Random) -> tuple[str, Any]:
        choice = random.random()
        if choice < 0.4:
            return "append", self._values.fresh()
        return ("end", None) if choice < 0.6 else ("read", random.randrange(len(self._log) + 1))

    def act(self, function: str, argument: Any) -> tuple[Outcome, Any]:
        if function == "append":
            self._log.append(argument)
            return Outcome.OK, len(self._log) - 1
        if function == "end":
            return Outcome.OK, len(self._log)
        return Outcome.OK, self._log[argument] if argument < len(self._log) else None


class TopicsThing:
    def __init__(self) -> None:
        self._topics: dict[str, int] = {}

    def propose(self, random: Random) -> tuple[str, Any]:
        name, choice = random.choice("ab"), random.random()
        if choice < 0.4:
            return "create-topic", [name, random.randrange(3)]
        return ("delete-topic" if choice < 0.6 else "describe-topic"), name

    def act(self, function: str, argument: Any) -> tuple[Outcome, Any]:
        if function == "describe-topic":
            return Outcome.OK, self._topics.get(argument)
        if function == "delete-topic":
            return Outcome.OK, None if self._topics.pop(argument, None) is not None else "absent"
        name, configuration = argument
        if name in self._topics:
            return Outcome.OK, "exists"
        self._topics[name] = configuration
        return Outcome.OK, None


class CounterThing:
    def __init__(self) -> None:
        self._value = 0

    def propose(self, random: Random) -> tuple[str, Any]:
        return ("read", None) if random.random() < 0.5 else ("add", random.choice((1, 2, 5, -3)))

    def act(self, function: str, argument: Any) -> tuple[Outcome, Any]:
        if function == "read":
            return Outcome.OK, self._value
        self._value += argument
        return Outcome.OK, argument


class BankThing:
    def __init__(self) -> None:
        self._balances = {"a": 10, "b": 0, "c": 0}

    def propose(self, random: Random) -> tuple[str, Any]:
        if random.random() < 0.5:
            return "read", None
        source, target = random.sample("abc", 2)
        return "transfer", {"from": source, "to": target, "amount": random.randrange(1, 6)}

    def act(self, function: str, argument: Any) -> tuple[Outcome, Any]:
        if function == "read":
            return Outcome.OK, dict(self._balances)
        if self._balances[argument["from"]] < argument["amount"]:
            return Outcome.FAIL, argument
        self._balances[argument["from"]] -= argument["amount"]
        self._balances[argument["to"]] += argument["amount"]
        return Outcome.OK, argument


THINGS: Mapping[str, Callable[[], Thing]] = {
    "register": lambda: RegisterThing(unique=True, cas=False),
    "cas-register": lambda: RegisterThing(unique=False, cas=True),
    "mutex": MutexThing,
    "key-value": KeyValueThing,
    "queue": lambda: SequenceThing(last_in_first_out=False),
    "stack": lambda: SequenceThing(last_in_first_out=True),
    "linearizable set": lambda: SetThing(snapshots=False),
    "linearizable set of snapshots": lambda: SetThing(snapshots=True),
    "log": LogThing,
    "topics": TopicsThing,
    "counter": CounterThing,
    "bank": BankThing,
    "set": lambda: SetThing(snapshots=True),
}


def object_history(
    name: str, random: Random, *, operations: int = 8, clients: int = 3, corrupted: bool
) -> History:
    history = simulate(THINGS[name](), random, operations=operations, clients=clients)
    if corrupted:
        for _ in range(random.randrange(1, 3)):
            corrupt(history, random)
    return history


__all__ = ["THINGS", "object_history", "simulate"]
