"""Scope `raft` as the command `simulate` knows it."""

from __future__ import annotations

import argparse

from ..simulation.scope import Scope
from .controls import BY_NUMBER
from .run import Plan


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, choices=[3, 5], default=3)
    parser.add_argument("--compaction", type=int, metavar="N", help="snapshot every N entries")
    parser.add_argument("--transfers", action="store_true", help="leaders hand over now and again")
    control = parser.add_mutually_exclusive_group()
    control.add_argument("--bare", action="store_true", help="control: the engine without guards")
    control.add_argument("--without", choices=list(BY_NUMBER), help="control: all guards but one")


def _plan(options: argparse.Namespace) -> Plan:
    return Plan(
        nodes=options.nodes,
        bare=options.bare,
        without=options.without,
        compaction=options.compaction,
        transfers=options.transfers,
    )


SCOPE = Scope("raft", (), _add_options, _plan)
