"""`run --minutes M --nodes N [--seed S] [--mode MODE] [--root]`, and `replay FILE [--root]`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from ..schedule import Schedule, ScheduleError
from .draw import MODES, draw
from .means import find_means
from .outcome import Word
from .run import Outcome, run_schedule
from .strikes import NotBuilt

USAGE_ERROR = 2
SEEDS = 1 << 31

SHOWN = 5
"""Reasons that are printed; the report has all."""


def run(arguments: Sequence[str]) -> int:
    """A cluster of real processes, hurt for so long; status 0 only when every promise held."""
    parser = argparse.ArgumentParser(prog="run", description=run.__doc__)
    parser.add_argument("--minutes", type=_positive, required=True)
    parser.add_argument("--nodes", type=int, choices=[3, 4, 5], required=True)
    parser.add_argument("--seed", type=int, help="of the schedule; another one each time without")
    parser.add_argument("--mode", choices=MODES, default=MODES[0], help="durability of the topic")
    _add_common(parser)
    options = parser.parse_args(arguments)
    seed = time.time_ns() % SEEDS if options.seed is None else options.seed
    schedule = draw(
        seed, nodes=options.nodes, minutes=options.minutes, mode=options.mode, root=options.root
    )
    return _carry_out(parser, schedule, options)


def replay(arguments: Sequence[str]) -> int:
    """Carry out a schedule file on real processes: the same faults at the same times. What the
    system makes of them may differ from one time to the next."""
    parser = argparse.ArgumentParser(prog="replay", description=replay.__doc__)
    parser.add_argument("file", type=Path, metavar="FILE")
    _add_common(parser)
    options = parser.parse_args(arguments)
    try:
        schedule = Schedule.from_json(options.file.read_bytes())
    except (OSError, ScheduleError) as error:
        parser.error(f"{options.file}: {error}")
    return _carry_out(parser, schedule, options)


def _carry_out(
    parser: argparse.ArgumentParser, schedule: Schedule, options: argparse.Namespace
) -> int:
    folder = options.folder or Path(f"jepsen-runs/{time.strftime('%Y%m%d-%H%M%S')}-{schedule.seed}")
    if folder.exists():
        parser.error(f"{folder} exists: a run gets a new folder")
    print(
        f"seed {schedule.seed}, {schedule.nodes} nodes, {len(schedule.faults)} faults in "
        f"{schedule.hurt_ms / 1000:.0f} s: {folder}",
        flush=True,
    )
    means = find_means(root=options.root)
    for line in means.lines():
        print(line, flush=True)
    try:
        outcome = run_schedule(schedule, folder, means=means)
    except NotBuilt as refused:
        parser.error(str(refused))
    _tell(outcome)
    return outcome.word.status


def _tell(outcome: Outcome) -> None:
    print(outcome.coverage.text())
    for reason in outcome.reasons[:SHOWN]:
        print(f"{outcome.word.value}: {reason}")
    if outcome.word is not Word.HELD:
        print(f"history, schedule, report and node logs: {outcome.folder}")
    print(outcome.line, flush=True)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--root",
        action="store_true",
        help="also power cuts, full disks and namespaces, for which one must be root",
    )
    parser.add_argument(
        "--folder", type=Path, help="where the run is written; it must not exist yet"
    )


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 24 * 60:
        raise argparse.ArgumentTypeError("minutes of one day, more than none")
    return value
