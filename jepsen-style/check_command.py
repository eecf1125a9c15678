"""`check FILE [--model M]` and `check --manifest DIR`."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from .checkers import Status, Verdict
from .history import History, HistoryError, read_history
from .judge import judge_run, known_models
from .manifest import check_manifest

INVALID = 1
UNREADABLE = 2
SHOWN_ANOMALIES = 20


def check(arguments: Sequence[str], *, leave: Callable[[int], int] = int) -> int:
    """Status 0: as it should be; 1: a verdict is bad or wrong; 2: the input cannot be used.

    `leave` is told the status while the history is still in memory; a process that ends right there
    is spared giving it back, which takes a tenth of the time of a check.
    """
    parser = argparse.ArgumentParser(prog="python -m logboat.jepsen_style check")
    parser.add_argument("file", nargs="?", type=Path, help="a history")
    parser.add_argument("--model", help=f"one of: {', '.join(known_models())}")
    parser.add_argument("--format", help="the file's format; by default told by its content")
    parser.add_argument("--property", help="for transactions: the isolation level")
    parser.add_argument("--manifest", type=Path, metavar="DIR", help="check a whole folder")
    parser.add_argument("--report", type=Path, metavar="HTML", help="write a report of the run")
    options = parser.parse_args(list(arguments))
    if (options.file is None) == (options.manifest is None):
        parser.error("give either a file or --manifest")
    started = perf_counter()
    kept: list[History] = []
    # Histories are millions of objects without cycles.
    gc.disable()
    try:
        if options.manifest is not None:
            files, wrong = manifest(options.manifest)
        else:
            files, wrong = 1, one_file(options, kept)
        print(f"check: files={files} wrong={wrong} seconds={perf_counter() - started:.2f}")
        return leave(INVALID if wrong else 0)
    except HistoryError as error:
        print(f"check: {options.file or options.manifest}: {error}", file=sys.stderr)
        return UNREADABLE
    finally:
        kept.clear()
        gc.enable()


def manifest(directory: Path) -> tuple[int, int]:
    files = wrong = 0
    for checked in check_manifest(directory):
        files += 1
        if checked.quarrel is not None:
            wrong += 1
            print(f"WRONG {checked.file}: {checked.quarrel}")
    return files, wrong


def one_file(options: argparse.Namespace, kept: list[History]) -> int:
    """How many verdicts are bad: 1 or 0. Puts the history into `kept`."""
    history = read_history(options.file, options.format)
    kept.append(history)
    judgement = judge_run(history, model=options.model, property=options.property)
    if options.report is not None:
        judgement.write_report(options.report, history, title=options.file.name)
    verdict = judgement.verdict
    print(f"model {judgement.model}, {len(history)} operations: {verdict.status.value}")
    show(verdict)
    if judgement.kafka is not None:
        levels = judgement.kafka.levels.items()
        print(f"  {', '.join(f'{level}: {status.value}' for level, status in levels)}")
        for topic, promise in sorted(judgement.kafka.promised.items()):
            print(f"  promised of {topic}: {promise}")
        print(f"  guarantee: {judgement.kafka.guarantee.value}")
    return 0 if judgement.holds else 1


def show(verdict: Verdict) -> None:
    if verdict.status is Status.UNKNOWN:
        print(f"  unknown: {verdict.reason}")
    for title, anomalies in (("", verdict.anomalies), ("reported only: ", verdict.reported)):
        for anomaly in anomalies[:SHOWN_ANOMALIES]:
            print(f"  {title}{anomaly}")
        if len(anomalies) > SHOWN_ANOMALIES:
            print(f"  {title}and {len(anomalies) - SHOWN_ANOMALIES} more")
