"""`python -m logboat.jepsen_style COMMAND`: one entry for every tool of the suite."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import NoReturn

from .check_command import check

USAGE_ERROR = 2
"""Exit status for an unknown command or bad arguments, in every command."""

Command = Callable[[Sequence[str]], int]
"""Takes the arguments after the command's name, returns the exit status."""


def loaded(module: str, name: str) -> Command:
    """A command that is imported when it is asked for: most of them bring the whole node along."""

    def command(arguments: Sequence[str]) -> int:
        found: Command = getattr(import_module(f".{module}", __package__), name)
        return found(arguments)

    return command


COMMANDS: Mapping[str, Command] = {
    "check": check,
    "mutants": loaded("mutants.run", "mutants_command"),
    "replay": loaded("processes.command", "replay"),
    "run": loaded("processes.command", "run"),
    "simulate": loaded("simulate_command", "simulate"),
    "soak": loaded("processes.soak", "soak"),
}
"""By name."""


def main(arguments: Sequence[str], commands: Mapping[str, Command] = COMMANDS) -> int:
    """Run the named command; the exit status is its answer."""
    if arguments and arguments[0] in ("-h", "--help"):
        print(_usage())
        return 0
    if not arguments or arguments[0] not in commands:
        named = f"unknown command {arguments[0]!r}" if arguments else "no command given"
        print(f"jepsen-style: {named}\n{_usage()}", file=sys.stderr)
        return USAGE_ERROR
    return commands[arguments[0]](arguments[1:])


def _usage() -> str:
    known = ", ".join(sorted(COMMANDS)) or "none yet"
    return f"usage: python -m logboat.jepsen_style COMMAND ...\ncommands: {known}"


def leave_at_once(status: int) -> NoReturn:
    """End this process as it stands."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    own_process: dict[str, Command] = {**COMMANDS, "check": partial(check, leave=leave_at_once)}
    sys.exit(main(sys.argv[1:], own_process))
