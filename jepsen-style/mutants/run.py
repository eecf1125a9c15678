"""Breaking a checker and asking whether the generated histories notice.

The changed text is compiled in place of the module while the package of checkers is imported
afresh, so every checker that uses it sees it. *Killed* means that some history got another verdict
than from the real checkers: another status, other anomalies, another ruling. A mutant that crashes
has not been told apart by a verdict, and that history does not count.
"""

from __future__ import annotations

import importlib
import importlib.util
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from random import Random
from time import perf_counter
from types import FrameType, ModuleType
from typing import Any

from ..history import History
from .catalogue import CATALOGUE, CHECKERS, Mutant
from .kafka_stories import STORIES, Story, told
from .objects import object_history
from .transaction_stories import (
    BANK_FAULTS,
    FAULTS,
    SET_FAULTS,
    bank_history,
    grown_set_history,
    long_fork_history,
    transaction_history,
    unread_counter,
)

LEAST_MUTANTS = 60
ROUNDS = 150
KAFKA_ROUNDS = 6
SECONDS_PER_HISTORY = 5
"""A mutant that searches for ever is stopped; that counts as a crash."""

Signature = tuple[Any, ...]
"""What a verdict says, comparable between two copies of the checkers."""

SEQUENTIAL = (
    "register",
    "cas-register",
    "mutex",
    "key-value",
    "queue",
    "stack",
    "linearizable set",
    "log",
    "topics",
)


class TooSlow(Exception):
    """The mutant was stopped."""


def signature(verdict: Any) -> Signature:
    return (
        verdict.status.value,
        tuple(sorted({anomaly.kind for anomaly in verdict.anomalies})),
        tuple(sorted({anomaly.kind for anomaly in verdict.reported})),
    )


def objects(name: str, corrupted: bool, seed: int) -> History:
    random = Random(seed)
    size, clients = random.randrange(3, 16), random.randrange(2, 6)
    return object_history(name, random, operations=size, clients=clients, corrupted=corrupted)


def import_checker(module: str, name: str) -> Callable[..., Any]:
    checker: Callable[..., Any] = getattr(importlib.import_module(f"{CHECKERS}.{module}"), name)
    return checker


def sequential_cases() -> Iterator[tuple[str, History]]:
    for seed in range(ROUNDS):
        for name in SEQUENTIAL:
            yield name, objects(name, seed % 3 > 0, seed)


def judge_sequential(case: tuple[str, History]) -> Signature:
    name, history = case
    described = f"{name} (cas has ok/fail results)" if name == "cas-register" else name
    model = import_checker("linearizability.models", "model_named")(described)
    check = import_checker("linearizability.check", "check_linearizable")
    return signature(check(history, model, minimise=False, step_limit=200_000))


def polynomial_cases(*names: str) -> Callable[[], Iterator[History]]:
    def cases() -> Iterator[History]:
        for seed in range(ROUNDS * 2):
            for name in names:
                yield objects(name, seed % 3 > 0, seed)

    return cases


def judge_log(history: History) -> Signature:
    columns = importlib.import_module(f"{CHECKERS}.polynomial.log").LogHistory.of(history)
    return signature(import_checker("polynomial.log", "check_log")(columns, gaps=False))


def by(module: str, name: str) -> Callable[[History], Signature]:
    return lambda history: signature(import_checker(module, name)(history))


def transaction_cases(kind: str) -> Callable[[], Iterator[History]]:
    def cases() -> Iterator[History]:
        for seed in range(ROUNDS):
            for fault in FAULTS:
                yield transaction_history(kind, Random(seed), fault)

    return cases


def long_fork_cases() -> Iterator[History]:
    for seed in range(ROUNDS):
        shown = 1 if seed % 3 else 2
        yield long_fork_history(Random(seed), forked=seed % 2 == 0, shown=shown)


def bank_cases() -> Iterator[History]:
    yield from polynomial_cases("bank")()
    for seed in range(ROUNDS):
        for fault in BANK_FAULTS:
            yield bank_history(Random(seed), fault)


def counter_cases() -> Iterator[History]:
    yield from polynomial_cases("counter")()
    for seed in range(ROUNDS):
        yield unread_counter(Random(seed))


def set_full_cases() -> Iterator[History]:
    for seed in range(ROUNDS):
        for fault in SET_FAULTS:
            yield grown_set_history(Random(seed), fault)


def kafka_cases() -> Iterator[Story]:
    for seed in range(KAFKA_ROUNDS):
        for name in STORIES:
            for bad in (True, False):
                yield told(name, Random(seed), bad=bad)


def judge_kafka(story: Story) -> Signature:
    chosen = {name: getattr(story.settings, name) for name in type(story.settings).__slots__}
    settings = import_checker("kafka.settings", "KafkaSettings")(**chosen)
    report = import_checker("kafka.check", "report_on")(story.history, settings)
    rulings = tuple(sorted(ruling.guarantee.value for _, ruling in report.rulings))
    levels = tuple((level, status.value) for level, status in report.levels.items())
    return (*signature(report.verdict), report.guarantee.value, rulings, levels)


Bench = tuple[Callable[[], Iterator[Any]], Callable[[Any], Signature]]

BENCHES: Mapping[str, Bench] = {
    "linearizability": (sequential_cases, judge_sequential),
    "log": (polynomial_cases("log"), judge_log),
    "register": (polynomial_cases("register"), by("polynomial.register", "check_register")),
    "sets": (
        polynomial_cases("linearizable set", "linearizable set of snapshots"),
        by("polynomial.sets", "check_set"),
    ),
    "queue": (polynomial_cases("queue"), by("polynomial.queue", "check_queue")),
    "list-append": (
        transaction_cases("list-append"),
        by("transactions.list_append", "check_list_append"),
    ),
    "rw-register": (
        transaction_cases("rw-register"),
        by("transactions.rw_register", "check_rw_register"),
    ),
    "bank": (bank_cases, by("data.bank", "check_bank")),
    "counter": (counter_cases, by("data.counter", "check_counter")),
    "set": (polynomial_cases("set"), by("data.sets", "check_set")),
    "set-full": (set_full_cases, by("data.sets", "check_set_full")),
    "long-fork": (long_fork_cases, by("data.long_fork", "check_long_fork")),
    "kafka": (kafka_cases, judge_kafka),
}


class MutatedModule(MetaPathFinder, Loader):
    """Finds one module, and gives it the mutated text."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = f"{CHECKERS}.{mutant.module}"
        spec = importlib.util.find_spec(self._name)
        assert spec is not None
        assert spec.origin is not None
        self._origin = spec.origin
        text = Path(spec.origin).read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            raise ValueError(
                f"mutant {mutant.name!r} fits {text.count(mutant.old)} places, not one"
            )
        self._text = text.replace(mutant.old, mutant.new)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return ModuleSpec(fullname, self, origin=self._origin)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._text, f"<mutant of {self._origin}>", "exec"), module.__dict__)


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The checkers as imported inside are the mutated ones; the real ones come back after."""
    finder = MutatedModule(mutant)
    real = {
        name: sys.modules.pop(name)
        for name in list(sys.modules)
        if name == CHECKERS or name.startswith(f"{CHECKERS}.")
    }
    package = sys.modules[CHECKERS.rpartition(".")[0]]
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in list(sys.modules):
            if name == CHECKERS or name.startswith(f"{CHECKERS}."):
                del sys.modules[name]
        sys.modules.update(real)
        package.checkers = real[CHECKERS]  # type: ignore[attr-defined]


def killed(mutant: Mutant, cases: Sequence[Any], expected: Sequence[Signature]) -> bool:
    _, judge = BENCHES[mutant.bench]
    with applied(mutant):
        for case, right in zip(cases, expected, strict=True):
            try:
                with time_limit():
                    got = judge(case)
            except Exception:
                # A crash is no verdict.
                continue
            if got != right:
                return True
    return False


@contextmanager
def time_limit() -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise TooSlow

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_PER_HISTORY)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def run(catalogue: Sequence[Mutant] = CATALOGUE) -> list[Mutant]:
    """The survivors."""
    survivors: list[Mutant] = []
    benches = {mutant.bench: None for mutant in catalogue}
    for bench in benches:
        make, judge = BENCHES[bench]
        cases = list(make())
        expected = [judge(case) for case in cases]
        for mutant in catalogue:
            if mutant.bench == bench and not killed(mutant, cases, expected):
                survivors.append(mutant)
    return survivors


def mutants_command(arguments: Sequence[str]) -> int:
    """`mutants`: status 1 when one survives or there are fewer than 60."""
    if arguments:
        print("usage: python -m logboat.jepsen_style mutants", file=sys.stderr)
        return 2
    started = perf_counter()
    survivors = run()
    for mutant in survivors:
        print(f"SURVIVED {mutant.name}")
    total = len(CATALOGUE)
    print(f"{perf_counter() - started:.1f} seconds")
    print(f"mutants: total={total} killed={total - len(survivors)}")
    return 1 if survivors or total < LEAST_MUTANTS else 0
