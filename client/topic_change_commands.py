"""`logboat topic config ...`, `add-partitions` and `trim`: what can be changed about a topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from .failure import ExitStatus, Failure
from .node_api import DEFAULT_URL, NodeApi, Url, topic_path
from .terminal import As, Output, emit, say, table
from .topic_commands import Name, setting, topic
from .topic_description import settings_table

config = typer.Typer(
    name="config",
    help="A topic's settings: describe, get, set, unset.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
topic.add_typer(config)

__all__ = ["config", "topic"]

OWN = "DYNAMIC_TOPIC_CONFIG"
"""Source of what the topic has been given itself."""

CheckOnly = Annotated[
    bool, typer.Option("--dry-run", help="Say whether it could be done, and change nothing.")
]


@config.command()
def describe(
    name: Name,
    everything: Annotated[
        bool, typer.Option("-a", "--all", help="Also those that are the cluster's.")
    ] = False,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Show the settings that the topic has itself."""
    _show(NodeApi(url).call("GET", f"{topic_path(name)}/configs"), output, everything=everything)


@config.command()
def get(
    name: Name,
    wanted: Annotated[str, typer.Argument(metavar="SETTING", help="Kafka's name of it.")],
    url: Url = DEFAULT_URL,
) -> None:
    """Print the value of one setting, whoever gave it."""
    for one in NodeApi(url).call("GET", f"{topic_path(name)}/configs")["configs"]:
        if one["name"] == wanted:
            emit("" if one["value"] is None else one["value"])
            return
    raise Failure(f"there is no setting {wanted!r}; `logboat topic config describe {name} -a`")


@config.command("set")
def set_config(
    name: Name,
    settings: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...")],
    dry_run: CheckOnly = False,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Give the topic settings of its own.

    All of them, or none if one is refused."""
    _alter(url, name, {"set": dict(map(setting, settings)), "validate_only": dry_run}, output)


@config.command()
def unset(
    name: Name,
    settings: Annotated[list[str], typer.Argument(metavar="NAME...")],
    dry_run: CheckOnly = False,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Take settings back: the cluster's are in force again."""
    _alter(url, name, {"unset": settings, "validate_only": dry_run}, output)


def _alter(url: str, name: str, wanted: Mapping[str, Any], output: Output) -> None:
    document = NodeApi(url).call("PATCH", f"{topic_path(name)}/configs", wanted)
    if wanted["validate_only"]:
        say("It could be done; nothing was changed.")
    _show(document, output, everything=False)


def _show(document: Mapping[str, Any], output: Output, *, everything: bool) -> None:
    shown = [one for one in document["configs"] if everything or one["source"] == OWN]
    if output is Output.JSON:
        emit(json.dumps(shown, indent=2))
        return
    emit(settings_table(shown, output))


@topic.command("add-partitions")
def add_partitions(
    name: Name,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, help="How many more the topic shall have.")
    ],
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Give a topic more partitions. From then on keys go to other partitions than before."""
    api = NodeApi(url)
    before = int(api.call("GET", topic_path(name))["partition_count"])
    # The node is told the new total, so that a repetition does not add them twice.
    document = api.call("POST", f"{topic_path(name)}/partitions", {"count": before + count})
    now = document["partition_count"]
    if output is Output.JSON:
        emit(json.dumps({"topic": name, "partition_count": now}))
    else:
        emit(table(("TOPIC", "PARTITIONS"), [(name, str(now))], output))


@topic.command()
def trim(
    name: Name,
    before: Annotated[
        str,
        typer.Option(
            "--before", help="An offset, end, @TIMESTAMP in ms, @DATE[TTIME] or @-5m.", metavar="TO"
        ),
    ],
    partition: Annotated[
        int | None, typer.Option("-p", "--partition", min=0, help="This one only.")
    ] = None,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Delete the records before a place, for good."""
    from .read_from import Place, ReadFrom

    place = ReadFrom.parse(before)
    if place.place not in (Place.OFFSET, Place.END, Place.TIME):
        raise Failure(f"{before!r} is neither an offset, end nor @TIME", ExitStatus.USAGE)
    api = NodeApi(url)
    count = int(api.call("GET", topic_path(name))["partition_count"])
    if partition is not None and partition >= count:
        raise Failure(f"{name} has no partition {partition}, its partitions are 0 to {count - 1}")
    if place.place is Place.OFFSET and partition is None and count > 1:
        raise Failure("an offset is of one partition: -p says of which", ExitStatus.USAGE)
    trimmed = []
    for number in range(count) if partition is None else [partition]:
        path = f"{topic_path(name)}/partitions/{number}/records"
        offset = place.number if place.place is Place.OFFSET else None
        if place.place is Place.TIME:
            offset = _offset_at(api, path, place.number)
        trimmed.append(api.call("POST", f"{path}:delete", {"before_offset": offset}))
    if output is Output.JSON:
        emit(json.dumps(trimmed, indent=2))
        return
    rows = [(name, str(one["partition"]), str(one["log_start_offset"])) for one in trimmed]
    emit(table(("TOPIC", "PARTITION", "LOG-START-OFFSET"), rows, output))


def _offset_at(api: NodeApi, path: str, timestamp: int) -> int:
    answer = api.call("GET", f"{path}?timestamp={timestamp}&max_bytes=1")
    first = answer["records"][0] if answer["records"] else None
    return int(answer["next_offset"] if first is None else first["offset"])
