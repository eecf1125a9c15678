"""From the history of a run, and what was seen beside it, to its word."""

from __future__ import annotations

from collections.abc import Sequence

from ..checkers import Status
from ..checkers.kafka import Guarantee, Ledger
from ..checkers.polynomial.log import LogHistory, check_log
from ..cluster_scope.judging import logs_of
from ..history import History
from ..judge import Judgement, judge_run
from .outcome import Floors, Tally, Word

TOLD = 5
"""Anomalies of one log that are told."""


def judge_history(
    history: History, tally: Tally, floors: Floors, seen: Sequence[str]
) -> tuple[Judgement, Word, list[str]]:
    """`seen`: violations that need no history. `tally.lost` is filled in.

    Nothing here takes anything from a disk (V1), so there is no change of an ISR that would excuse
    a loss: the ledger is empty, and every loss a violation.
    """
    judgement = judge_run(history, model="Kafka", ledger=Ledger())
    kafka = judgement.kafka
    tally.lost = 0 if kafka is None else len({_record(one.details) for one, _ in kafka.rulings})
    verdict = judgement.verdict
    anomalies = [*seen, *map(str, verdict.anomalies), *_log_anomalies(history)]
    if anomalies:
        return judgement, Word.VIOLATION, anomalies
    if kafka is not None and kafka.guarantee is Guarantee.OUTSIDE:
        return judgement, Word.OUTSIDE, [f"{tally.lost} records are lost outside the guarantee"]
    if weaknesses := tally.weaknesses(floors):
        return judgement, Word.TOO_WEAK, weaknesses
    if verdict.status is not Status.VALID:
        return judgement, Word.UNDECIDED, [verdict.reason]
    return judgement, Word.HELD, []


def _record(details: object) -> str:
    """One missing record may break several rules; it is lost once."""
    found = details if isinstance(details, dict) else {}
    return f"{found.get('key')} {found.get('value', found.get('offset'))}"


def _log_anomalies(history: History) -> list[str]:
    """Each partition as a log that must be linearizable."""
    found = []
    for key, log in sorted(logs_of(history).items()):
        verdict = check_log(LogHistory.of(log))
        if verdict.status is not Status.VALID:
            told = [str(anomaly) for anomaly in verdict.anomalies[:TOLD]] or [verdict.reason]
            found += [f"log {key}: {text}" for text in told]
    return found
