"""The format of `chaos run`: which faults, when, of whom, for how long (docs/chaos.md).

    for = "60s"

    [[step]]
    every = "20s"
    fault = "pause"
    nodes = "leader of orders/0"
    for = "3s"

Everything that can be wrong without asking the cluster is found here, before anything begins.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..failure import ExitStatus, Failure
from .roles import ROLES_HELP, Who, who_of
from .times import TIME_HELP, seconds_of

LONGEST_FOR_S = 600.0
LONGEST_PAUSE_S = 30.0
"""A node takes no more."""
LONGEST_PLAN_S = 24 * 3600.0
MOST_STRIKES = 10_000
DEFAULT_FOR_S = 10.0

PLAN_KEYS = ("for", "seed", "step")
STEP_KEYS = ("at", "every", "fault", "nodes", "for")

FAULTS: Mapping[str, tuple[str, ...]] = {
    # fault: what it takes beside the keys of every step
    "kill": (),
    "restart": (),
    "pause": (),
    "partition": ("others",),
    "delay": ("others", "by"),
    "drop": ("others", "chance"),
    "disk-full": (),
    "clock": ("by",),
}
OF_PROCESSES = ("kill", "restart")

_OFFSET = re.compile(r"[+-]?\d{1,9}(ms|s|m|h|d)")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%")


@dataclass(frozen=True, slots=True)
class Step:
    """One fault, once or again and again."""

    number: int
    fault: str
    nodes: Who
    at_s: float
    """Since the beginning."""
    every_s: float | None
    for_s: float
    others: Who | None
    """Of partition, delay and drop; None: all other nodes."""
    amount: str | None
    """Of delay and clock, as a node takes it."""
    chance: float | None
    """Of drop."""

    @property
    def of_processes(self) -> bool:
        return self.fault in OF_PROCESSES

    def in_words(self) -> str:
        """What happens to whom, without how long."""
        words = [self.fault, self.nodes.text]
        if self.others is not None:
            words.append(f"{'from' if self.fault == 'partition' else 'to'} {self.others.text}")
        if self.amount is not None:
            words.append(f"by {self.amount}")
        if self.chance is not None:
            words.append(f"{self.chance:.4g}")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    """Of the file."""
    length_s: float
    seed: int | None
    """Of the dice behind `any` and `follower of`."""
    steps: tuple[Step, ...]

    @property
    def needs_processes(self) -> bool:
        return any(step.of_processes for step in self.steps)

    def strikes(self) -> list[tuple[float, Step]]:
        """When each step strikes, in order of time and then of the file."""
        found = []
        for step in self.steps:
            at_s = step.at_s
            while at_s < self.length_s or (step.every_s is None and at_s <= self.length_s):
                found.append((at_s, step))
                if step.every_s is None:
                    break
                at_s += step.every_s
        return sorted(found, key=lambda strike: (strike[0], strike[1].number))


def load_plan(path: str) -> Plan:
    """Raises Failure (usage): one sentence with file and line."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", ExitStatus.USAGE) from error
    except UnicodeDecodeError as error:
        raise Failure(f"{path} is no text in UTF-8", ExitStatus.USAGE) from error
    return parse_plan(text, path)


def parse_plan(text: str, path: str) -> Plan:
    """Raises Failure (usage)."""
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{path}: {error}", ExitStatus.USAGE) from error
    return _Reader(path, _lines_of_keys(text)).plan(document)


def chance_of(text: object) -> float | None:
    """`5%` or 0.05; None for what is no chance above 0."""
    if isinstance(text, str):
        match = _PERCENT.fullmatch(text.strip())
        if match is None:
            return None
        chance = float(match[1]) / 100
    elif isinstance(text, int | float) and not isinstance(text, bool):
        chance = float(text)
    else:
        return None
    return chance if 0 < chance <= 1 else None


class _Reader:
    """Turns the document into a plan, or says what is wrong and where."""

    def __init__(self, path: str, lines: Mapping[tuple[int, str], int]) -> None:
        self._path = path
        self._lines = lines

    def plan(self, document: dict[str, Any]) -> Plan:
        self._refuse_unknown(0, document, PLAN_KEYS)
        tables = document.get("step", [])
        if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
            raise self._wrong(0, "step", "steps are tables: begin each with [[step]]")
        if not tables:
            raise self._wrong(0, "step", "it has no [[step]]")
        steps = tuple(self._step(number, one) for number, one in enumerate(tables, start=1))
        length_s = self._length(document, steps)
        for step in steps:
            if "for" in document and step.at_s >= length_s:
                raise self._wrong(step.number, "at", "it would begin after the plan has ended")
        seed = document.get("seed")
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
            raise self._wrong(0, "seed", "seed is no whole number")
        plan = Plan(self._path, length_s, seed, steps)
        expected = sum(1 if s.every_s is None else length_s / s.every_s for s in steps)
        if expected > MOST_STRIKES:
            raise self._wrong(0, "for", f"it strikes more than {MOST_STRIKES:,} times")
        return plan

    def _length(self, document: dict[str, Any], steps: tuple[Step, ...]) -> float:
        """As said, or until the last step has ended."""
        if "for" in document:
            return self._seconds(0, document, "for", LONGEST_PLAN_S)
        endless = next((step for step in steps if step.every_s is not None), None)
        if endless is not None:
            raise self._wrong(
                endless.number, "every", 'how long? The plan needs a "for" above its steps'
            )
        return max(step.at_s + step.for_s for step in steps)

    def _step(self, number: int, table: dict[str, Any]) -> Step:
        fault = table.get("fault")
        if not isinstance(fault, str) or fault not in FAULTS:
            what = "fault is missing" if fault is None else f"there is no fault {fault!r}"
            hint = _nearest(fault, tuple(FAULTS))
            raise self._wrong(number, "fault", f"{what}; there are {', '.join(FAULTS)}{hint}")
        self._refuse_unknown(number, table, (*STEP_KEYS, *FAULTS[fault]), f" of {fault}")
        if "nodes" not in table:
            raise self._wrong(number, "nodes", f"nodes is missing: {ROLES_HELP}")
        every_s = (
            self._seconds(number, table, "every", LONGEST_PLAN_S) if "every" in table else None
        )
        if every_s == 0:
            raise self._wrong(number, "every", "every is no time at all")
        at_s = self._seconds(number, table, "at", LONGEST_PLAN_S) if "at" in table else every_s or 0
        return Step(
            number=number,
            fault=fault,
            nodes=self._who(number, table, "nodes"),
            at_s=at_s,
            every_s=every_s,
            for_s=self._for(number, table, fault),
            others=self._who(number, table, "others") if "others" in table else None,
            amount=self._amount(number, table, fault),
            chance=self._chance(number, table) if fault == "drop" else None,
        )

    def _for(self, number: int, table: dict[str, Any], fault: str) -> float:
        if fault == "restart":
            if "for" in table:
                raise self._wrong(number, "for", "a restart takes as long as it takes")
            return 0.0
        if "for" not in table:
            return DEFAULT_FOR_S
        return self._seconds(
            number, table, "for", LONGEST_PAUSE_S if fault == "pause" else LONGEST_FOR_S
        )

    def _who(self, number: int, table: dict[str, Any], key: str) -> Who:
        who = who_of(table[key])
        if who is None:
            raise self._wrong(number, key, f"{key} {table[key]!r} is nobody: {ROLES_HELP}")
        return who

    def _amount(self, number: int, table: dict[str, Any], fault: str) -> str | None:
        if fault not in ("delay", "clock"):
            return None
        by = table.get("by")
        if fault == "delay":
            if not isinstance(by, str) or seconds_of(by) is None:
                raise self._wrong(number, "by", f'a delay needs a "by" like {TIME_HELP}')
        elif not isinstance(by, str) or not _OFFSET.fullmatch(by):
            raise self._wrong(number, "by", 'a clock needs a "by" like +30s, -2h or +1d')
        return by

    def _chance(self, number: int, table: dict[str, Any]) -> float:
        chance = chance_of(table.get("chance", "10%"))
        if chance is None:
            raise self._wrong(number, "chance", "a chance is like 5% or 0.05, above none")
        return chance

    def _seconds(self, number: int, table: dict[str, Any], key: str, largest: float) -> float:
        text = table[key]
        seconds = seconds_of(text) if isinstance(text, str) else None
        if seconds is None:
            raise self._wrong(number, key, f"{key} {text!r} is no time like {TIME_HELP}")
        if seconds > largest:
            raise self._wrong(number, key, f"{key} is more than {largest:g}s")
        return seconds

    def _refuse_unknown(
        self, number: int, table: dict[str, Any], known: tuple[str, ...], of: str = ""
    ) -> None:
        for key in table:
            if key not in known:
                listed, hint = ", ".join(known), _nearest(key, known)
                raise self._wrong(number, key, f"unknown key {key!r}; those{of} are {listed}{hint}")

    def _wrong(self, number: int, key: str, what: str) -> Failure:
        """`number` of the step, 0 for the plan itself; a key that is not there has the line of its
        step."""
        line = self._lines.get((number, key)) or self._lines.get((number, ""))
        where = f"{self._path}:{line}" if line else self._path
        step = f" step {number}:" if number else ""
        return Failure(f"{where}:{step} {what}", ExitStatus.USAGE)


def _nearest(word: object, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(str(word), known, 1)
    return f" (did you mean {near[0]}?)" if near else ""


_HEADER = re.compile(r"\s*\[\[\s*step\s*\]\]")
_KEY = re.compile(r"""\s*["']?([A-Za-z0-9_-]+)["']?\s*=""")


def _lines_of_keys(text: str) -> dict[tuple[int, str], int]:
    """(number of the step, or 0; key) -> line, from 1. TOML's parser keeps none. The key "" is the
    step's header."""
    found: dict[tuple[int, str], int] = {}
    step = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if _HEADER.match(line):
            step += 1
            found[step, ""] = number
        elif match := _KEY.match(line):
            found.setdefault((step, match[1]), number)
    return found
