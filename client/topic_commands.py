"""`logboat topic ...`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from .node_api import DEFAULT_URL, NodeApi, Url, topic_path
from .terminal import As, Output, counted, emit, say, table

topic = typer.Typer(
    name="topic",
    help="Topics: create, list, describe, change, delete.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


Name = Annotated[str, typer.Argument(metavar="TOPIC")]


@topic.command("list")
def list_topics(output: As = Output.TABLE, url: Url = DEFAULT_URL) -> None:
    """List all topics."""
    topics = NodeApi(url).call("GET", "/api/v1/topics")["topics"]
    if output is Output.JSON:
        emit(json.dumps(topics, indent=2))
        return
    rows = [
        (one["name"], str(one["partition_count"]), str(one["replication_factor"])) for one in topics
    ]
    emit(table(("TOPIC", "PARTITIONS", "REPLICAS"), rows, output))


@topic.command()
def create(
    name: Name,
    partitions: Annotated[
        int | None, typer.Option("-p", "--partitions", min=1, help="How many.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option("-r", "--replicas", min=1, help="Of each partition.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("-c", "--config", metavar="NAME=VALUE", help="Repeatable.")
    ] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Create a topic; what is not said is the cluster's default."""
    body = {
        "name": name,
        "partitions": partitions,
        "replication_factor": replicas,
        "configs": dict(setting(text) for text in config or ()),
    }
    made = NodeApi(url).call("POST", "/api/v1/topics", body)
    say(
        f"Created {name}: {counted(made['partition_count'], 'partition')}, "
        f"{counted(made['replication_factor'], 'replica')}."
    )


@topic.command()
def describe(
    name: Name,
    summary: Annotated[
        bool, typer.Option("-s", "--summary", help="Name, id and numbers alone.")
    ] = False,
    configs: Annotated[
        bool, typer.Option("-c", "--configs", help="Settings alone, also the cluster's.")
    ] = False,
    partitions: Annotated[
        bool, typer.Option("-p", "--partitions", help="Partitions alone.")
    ] = False,
    everything: Annotated[bool, typer.Option("-a", "--all", help="All three.")] = False,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Show a topic's partitions, and the settings of its own.

    With -s, -c and -p those parts of it; they go together."""
    from .topic_description import Part, describe_topic

    chosen = {Part.SUMMARY: summary, Part.CONFIGS: configs, Part.PARTITIONS: partitions}
    parts = [part for part in Part if everything or chosen[part]]
    describe_topic(NodeApi(url), name, parts, output)


@topic.command()
def delete(name: Name, url: Url = DEFAULT_URL) -> None:
    """Delete a topic and its records."""
    NodeApi(url).call("DELETE", topic_path(name))
    say(f"Deleted {name}.")


def setting(text: str) -> tuple[str, str]:
    """NAME=VALUE. Raises BadParameter."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, value
