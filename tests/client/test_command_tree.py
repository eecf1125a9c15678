"""Commands are made when they are used: nothing of it shows in help, completion and suggestions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.main import get_command, get_group
from typer.testing import CliRunner

from logboat.client.cli import app
from logboat.client.command_tree import COMMANDS, Entry

WIDTH = 80 - 2 - 6
"""What a page of help has for a command's name and line."""

GROUPS = [entry for entry in COMMANDS if hasattr(entry.load(), "commands")]
LOGBOAT = [sys.executable, "-m", "logboat.client.entry"]


def named(entry: Entry) -> str:
    return entry.name


@pytest.mark.parametrize("entry", COMMANDS, ids=named)
def test_a_line_of_help_is_what_the_command_says_of_itself(entry: Entry) -> None:
    command = entry.load()
    assert command.name == entry.name
    assert command.get_short_help_str(WIDTH) == entry.help


def groups_below(path: tuple[str, ...], group: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from groups_below((*path, name), command)


def test_no_line_of_help_is_cut_on_80_columns() -> None:
    groups = [*groups_below((), get_command(app))]
    for entry in GROUPS:
        groups += groups_below((entry.name,), entry.load())
    assert len(groups) > len(GROUPS) + 1
    for path, group in groups:
        room = WIDTH - max(map(len, group.commands))
        for name, command in group.commands.items():
            line = command.get_short_help_str(room)
            assert line, (*path, name)
            assert not line.endswith("..."), (*path, name)


@pytest.mark.parametrize("entry", GROUPS, ids=named)
def test_the_commands_of_a_group_are_those_that_typer_would_make(entry: Entry) -> None:
    module = sys.modules[f"logboat.client.{entry.module}"]
    described = getattr(module, entry.name)
    assert isinstance(described, typer.Typer)
    assert pages(entry.load()) == pages(get_group(described))


def pages(command: Any, parent: Any = None) -> dict[str, str]:
    """The help of a command and of all below it."""
    context = command.make_context(command.name, [], parent, resilient_parsing=True)
    found = {context.command_path: context.command.get_help(context)}
    for below in getattr(command, "commands", {}).values():
        found |= pages(below, context)
    return found


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("clustr",), "cluster"),
        (("produc",), "produce"),
        (("cluster", "statu"), "status"),
        (("cluster", "node", "paus"), "pause"),
        (("topic", "config", "sett"), "set"),
    ],
)
def test_a_misspelt_command_gets_a_suggestion(typed: tuple[str, ...], meant: str) -> None:
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 2
    assert f"Did you mean '{meant}'" in result.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("logboat clu", ["cluster"]),
        ("logboat cluster p", ["purge"]),
        ("logboat cluster node re", ["restart", "resume"]),
        ("logboat cluster up --eph", ["--ephemeral"]),
        ("logboat produce --dead", ["--dead-letter"]),
        ("logboat topic list -o ", ["table", "json", "plain"]),
    ],
)
def test_completion_knows_commands_options_and_values(typed: str, offered: list[str]) -> None:
    asked = completion_of(typed)
    result = CliRunner().invoke(app, env=asked, prog_name="logboat")
    assert result.stdout.split() == offered


def test_every_command_is_completed_at_the_root() -> None:
    env = {**os.environ, **completion_of("logboat ")}
    ran = subprocess.run(LOGBOAT, capture_output=True, text=True, check=True, env=env)
    assert ran.stdout.split() == [entry.name for entry in COMMANDS]


def completion_of(typed: str) -> dict[str, str]:
    """What bash tells a program that completes the last word."""
    return {
        "_LOGBOAT_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
    }


def modules_of(*arguments: str) -> set[str]:
    """What `logboat` has imported by its end."""
    program = (
        "import sys\n"
        "from logboat.client.cli import main\n"
        f"sys.argv = ['logboat', *{arguments!r}]\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "Usage: logboat" in ran.stdout
    return set(ran.stderr.split())


def test_help_imports_no_command() -> None:
    ours = {name for name in modules_of("--help") if name.startswith("logboat.client.")}
    assert ours == {
        f"logboat.client.{name}" for name in ("cli", "command_tree", "failure", "terminal")
    }


def test_the_help_of_a_group_imports_no_other_group() -> None:
    loaded = modules_of("group", "--help")
    others = {f"logboat.client.{entry.module}" for entry in COMMANDS if entry.name != "group"}
    assert not loaded & (others - {"logboat.client.profiles"}), "profiles say where a cluster is"
