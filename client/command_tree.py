"""The commands of `logboat`, by name, each made when it is used.

Importing every command's module and having Typer look at every parameter took three times as long
as Typer itself, for one page of help. What `--help` shows of a command is its line here, which a
test compares with the command; inside a group it is the command's docstring.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    """Also of the function or the Typer in the module."""
    module: str
    """Beside this one."""
    help: str
    """One line: what the command says of itself first."""

    def load(self) -> Any:
        """The command itself."""
        found = getattr(import_module(f".{self.module}", __package__), self.name)
        return _group(found) if isinstance(found, typer.Typer) else _command(self.name, found)


COMMANDS = (
    Entry(
        "cluster", "cluster.commands", "A cluster on this machine: start, look at, stop, remove it."
    ),
    Entry("topic", "topic_change_commands", "Topics: create, list, describe, change, delete."),
    Entry("produce", "record_commands", "Write each line as a record."),
    Entry("consume", "record_commands", "Print records as they come, until Ctrl-C."),
    Entry("group", "group_commands", "Consumer groups: list, describe, lag, reset, delete."),
    Entry("quorum", "quorum_commands", "The metadata quorum: its state, log, leader and voters."),
    Entry(
        "partition", "partition_commands", "One partition: where its replicas stand, who leads it."
    ),
    Entry("chaos", "chaos.commands", "Faults on purpose: network, disk, clock and processes."),
    Entry("bench", "bench_commands", "Measure: produce, consume, e2e."),
    Entry("verify", "bench_commands", "Write records, read them back, and compare."),
    Entry("generate", "generate_commands", "Text for other programs: prometheus, completion."),
    Entry("profile", "profiles", "Clusters by name: list, set, use, delete."),
    Entry("api", "api_command", "Ask a node anything over HTTP."),
    Entry("doctor", "doctor", "Look for what is wrong with a cluster, from here."),
    Entry("node", "node_command", "Run one node in the foreground."),
)


class Unmade(TyperCommand):
    """Stands in for a command until somebody uses it: for help, completion and suggestions its name
    and what it says of itself are enough."""

    def __init__(self, name: str, help_text: str | None, make: Callable[[], Any]) -> None:
        super().__init__(name, help=help_text, rich_markup_mode=None)
        self._make = make

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Whatever happens with a command begins here, completion of its arguments included; the
        context is that of the command itself."""
        return self._make().make_context(*arguments, **named)


def whole_tree() -> list[TyperCommand]:
    """The commands of the root."""
    return [Unmade(entry.name, entry.help, entry.load) for entry in COMMANDS]


def _group(described: typer.Typer) -> TyperGroup:
    """As typer.main.get_group makes it, but for the commands, which are made when they are used."""
    group = TyperGroup(
        name=described.info.name,
        help=described.info.help,
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for info in described.registered_commands:
        function = info.callback
        assert function is not None
        name = info.name or function.__name__.replace("_", "-")

        def make(name: str = name, function: Callable[..., Any] = function) -> Any:
            return _command(name, function)

        group.add_command(Unmade(name, inspect.getdoc(function), make))
    for below in described.registered_groups:
        assert below.typer_instance is not None
        group.add_command(_group(below.typer_instance))
    return group


def _command(name: str, function: Callable[..., Any]) -> Any:
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(function)
    return get_command(alone)
