"""From a history to its verdict: `judge_run` for a whole run, `judge` by the name of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .checkers import Status, Verdict
from .checkers.data import (
    check_bank,
    check_counter,
    check_long_fork,
    check_set,
    check_set_full,
)
from .checkers.kafka import KafkaReport, KafkaSettings, Ledger, check_kafka, report_on
from .checkers.linearizability import MODELS, check_linearizable, model_named
from .checkers.transactions import check_list_append, check_rw_register, property_named
from .checkers.verdict import unknown
from .history import History, HistoryError
from .report import write_report

Checker = Callable[[History, str | None, Mapping[str, Any]], Verdict]

CHECKERS: Mapping[str, Checker] = {
    "Kafka": lambda history, _, settings: check_kafka(history, KafkaSettings.of(settings)),
    "list-append": lambda history, level, _: check_list_append(history, property_named(level)),
    "rw-register": lambda history, level, _: check_rw_register(history, property_named(level)),
    "bank": lambda history, _, settings: check_bank(history, total=settings.get("total")),
    "counter": lambda history, _, settings: check_counter(history),
    "set": lambda history, _, settings: check_set(history),
    "set-full": lambda history, _, settings: check_set_full(history),
    "long-fork": lambda history, _, settings: check_long_fork(history),
}
"""By leading words of the model. Everything else is a sequential object of MODELS."""


def known_models() -> list[str]:
    return sorted([*CHECKERS, *MODELS], key=str.casefold)


def judge(
    history: History,
    model: str,
    *,
    property: str | None = None,
    settings: Mapping[str, Any] | None = None,
    explain: bool = True,
    demand_evidence: bool = True,
) -> Verdict:
    """The verdict of the checker that `model` names by its leading words.

    `explain` False: the bare verdict, without the search for a small failing part.
    `demand_evidence`: a history in which nothing could have failed is UNKNOWN, not VALID.
    Raises HistoryError for an unknown model and for operations that the model does not have.
    """
    named = [name for name in (*CHECKERS, *MODELS) if model.casefold().startswith(name.casefold())]
    if not named:
        raise HistoryError(f"unknown model {model!r}; known: {', '.join(known_models())}")
    name = max(named, key=len)
    if name in CHECKERS:
        verdict = CHECKERS[name](history, property, settings or {})
    else:
        verdict = check_linearizable(history, model_named(model), minimise=explain)
    return weighed(verdict) if demand_evidence else verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that is to be said about one run."""

    model: str
    verdict: Verdict
    kafka: KafkaReport | None
    """Levels, guarantee and rulings, for histories of partitioned logs."""

    @property
    def holds(self) -> bool:
        """Proven right. A verdict of UNKNOWN is none to rely on."""
        return self.verdict.status is Status.VALID

    def write_report(self, path: Path, history: History, *, title: str) -> None:
        """One HTML file that needs no network."""
        write_report(path, history, self.verdict, title=title, kafka=self.kafka)


def judge_run(
    history: History,
    *,
    model: str | None = None,
    property: str | None = None,
    settings: Mapping[str, Any] | None = None,
    ledger: Ledger | None = None,
) -> Judgement:
    """**The entry for whoever made a run**: what does its history say?

    Write the history with `history.Recorder` while the run goes on (one line an event, so that a
    killed run leaves all up to its last moment) and read it with `read_history`, or fill a
    `History` directly. Faults and what was seen of the cluster belong into it as observations
    (`checkers.kafka.observations` lists them): they make the ledger that tells a violation from a
    loss outside the guarantee. `ledger` gives another one, such as the simulation's own.

    `model` None: told by the operations. Raises HistoryError when it cannot be told, or for
    operations that the model does not have.

        history = read_history(path)
        judgement = judge_run(history)
        judgement.write_report(path.with_suffix(".html"), history, title="run 7")
        assert judgement.holds, judgement.verdict.reason
    """
    chosen = model or guess_model(history)
    if chosen is None:
        raise HistoryError("cannot tell the model from the operations; name it")
    if not chosen.casefold().startswith("kafka"):
        verdict = judge(history, chosen, property=property, settings=settings)
        return Judgement(chosen, verdict, None)
    report = report_on(history, KafkaSettings.of(settings or {}), ledger)
    return Judgement(chosen, weighed(report.verdict), report)


def weighed(verdict: Verdict) -> Verdict:
    """A VALID that nothing could have made INVALID is UNKNOWN (case C03)."""
    if verdict.status is Status.VALID and "too-weak" in verdict.kinds:
        return unknown("too weak: nothing in the history could have shown a fault")
    return verdict


def guess_model(history: History) -> str | None:
    """The model that the operations' names give away; None when several would do."""
    if history.declared_model is not None:
        return history.declared_model
    functions = frozenset(history.function)
    if functions & {"send", "poll", "assign", "subscribe"}:
        return "Kafka"
    if functions == {"txn"}:
        verbs = {micro[0] for value in history.argument for micro in value or ()}
        if verbs & {"send", "poll"}:
            return "Kafka"
        if "append" in verbs:
            return "list-append"
        return "rw-register" if verbs & {"w"} else "multi-register"
    by_functions = (
        ({"acquire", "release"}, "mutex"),
        ({"read", "write", "cas"}, "cas-register"),
        ({"get", "put", "append"}, "key-value"),
        ({"read", "transfer"}, "bank"),
        ({"enqueue", "dequeue"}, "queue"),
        ({"push", "pop"}, "stack"),
        ({"append", "read", "end"}, "log"),
        ({"create-topic", "delete-topic", "describe-topic"}, "topics"),
    )
    for known, model in by_functions:
        if functions and functions <= known:
            return model
    return None


__all__ = [
    "CHECKERS",
    "Judgement",
    "guess_model",
    "judge",
    "judge_run",
    "known_models",
    "weighed",
]
