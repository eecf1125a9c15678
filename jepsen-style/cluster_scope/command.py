"""Scope `cluster` as the command `simulate` knows it."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..schedule import Schedule, ScheduleError
from ..schedule.quests import reachable
from ..simulation.scope import Scope
from .controls import BUGS
from .run import Plan


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, choices=[3, 4, 5], default=3)
    parser.add_argument(
        "--schedule", type=_schedule, metavar="FILE", help="this one instead of those of seeds"
    )
    parser.add_argument(
        "--histories", type=Path, metavar="FOLDER", help="write each seed's history there"
    )
    parser.add_argument("--bug", choices=list(BUGS), help="control: the product with this bug")


def _schedule(path: str) -> tuple[str, Schedule]:
    try:
        with open(path, "rb") as file:
            return path, Schedule.from_json(file.read())
    except (OSError, ScheduleError) as error:
        raise argparse.ArgumentTypeError(f"{path}: {error}") from None


def _plan(options: argparse.Namespace) -> Plan:
    path, schedule = options.schedule or ("", None)
    return Plan(options.nodes, options.bug, schedule, path, options.histories)


SCOPE = Scope("cluster", reachable(), _add_options, _plan)
