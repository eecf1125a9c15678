"""`logboat group ...`."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import quote

import typer

from .node_api import DEFAULT_URL, NodeApi, Url
from .terminal import As, Output, Watch, emit, headline, look_and_watch, say, table

group = typer.Typer(
    name="group",
    help="Consumer groups: list, describe, lag, reset, delete.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="GROUP")]

LAG_HEADER = (
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-START-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "MEMBER-ID",
    "CLIENT-ID",
    "HOST",
)


@group.command("list")
def list_groups(output: As = Output.TABLE, url: Url = DEFAULT_URL) -> None:
    """List the groups of all nodes."""
    answer = NodeApi(url).call("GET", "/api/v1/groups")
    if answer["unanswered"]:
        missing = ", ".join(map(str, answer["unanswered"]))
        say(f"Groups of nodes that did not answer are missing: {missing}.")
    if output is Output.JSON:
        emit(json.dumps(answer["groups"], indent=2))
        return
    rows = [(g["group_id"], g["state"], g["type"], str(g["coordinator"])) for g in answer["groups"]]
    emit(table(("GROUP", "STATE", "TYPE", "COORDINATOR"), rows, output))


@group.command()
def describe(name: Name, output: As = Output.TABLE, url: Url = DEFAULT_URL) -> None:
    """Show a group's state, its members and what each of them reads."""
    document = NodeApi(url).call("GET", _path(name))
    if output is Output.JSON:
        emit(json.dumps(document, indent=2))
        return
    headline(
        f"{document['group_id']}: {document['state']}, {document['type']}, "
        f"coordinator {document['coordinator']}, assignor {document['assignor'] or 'none'}",
        output,
    )
    rows = [
        (m["member_id"], m["instance_id"] or "-", m["client_id"], m["host"], _assigned(m))
        for m in document["members"]
    ]
    emit(table(("MEMBER-ID", "INSTANCE-ID", "CLIENT-ID", "HOST", "PARTITIONS"), rows, output))


@group.command()
def lag(
    name: Annotated[str | None, typer.Argument(metavar="[GROUP]")] = None,
    watch: Watch = False,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Show what a group, or every group, has yet to read."""
    api = NodeApi(url)

    def look() -> str:
        documents = [api.call("GET", f"{_path(one)}/lag") for one in _names(api, name)]
        if output is Output.JSON:
            return json.dumps(documents if name is None else documents[0])
        return _between(output).join(_lag_table(document, output) for document in documents)

    look_and_watch(look, watch=watch, nothing="There are no groups.")


@group.command()
def reset(
    name: Name,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="start, end, an offset, +N or -N from here, @TIMESTAMP in ms, @DATE[TTIME] (UTC "
            "unless it says otherwise), or @-5m.",
        ),
    ],
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC[:PARTITION]", help="Repeatable; all committed."),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Commit it; otherwise it is only shown.")
    ] = False,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Move where a group without members goes on reading."""
    body = {"to": _destination(to), "topics": topics or [], "execute": execute}
    answer = NodeApi(url).call("POST", f"{_path(name)}/offsets:reset", body)
    if output is Output.JSON:
        emit(json.dumps(answer, indent=2))
    else:
        rows = [
            (row["topic"], str(row["partition"]), _shown(row["from"]), str(row["to"]))
            for row in answer["partitions"]
        ]
        emit(table(("TOPIC", "PARTITION", "FROM", "TO"), rows, output))
    if not execute:
        say("Nothing was changed; add --execute to commit this.")


@group.command()
def delete(name: Name, url: Url = DEFAULT_URL) -> None:
    """Delete a group without members, and its offsets."""
    NodeApi(url).call("DELETE", _path(name))
    say(f"Deleted group {name}.")


def _path(name: str) -> str:
    return f"/api/v1/groups/{quote(name, safe='')}"


def _names(api: NodeApi, name: str | None) -> list[str]:
    if name is not None:
        return [name]
    return [one["group_id"] for one in api.call("GET", "/api/v1/groups")["groups"]]


def _between(output: Output) -> str:
    return "\n" if output is Output.PLAIN else "\n\n"


def _lag_table(document: dict[str, Any], output: Output) -> str:
    rows = [
        (
            row["topic"],
            str(row["partition"]),
            *(_shown(row[key]) for key in ("committed_offset", "log_start_offset")),
            *(_shown(row[key]) for key in ("log_end_offset", "lag")),
            *(row[key] or "-" for key in ("member_id", "client_id", "host")),
        )
        for row in document["partitions"]
    ]
    head = f"{document['group_id']}: {document['state']}, TOTAL-LAG {document['total_lag']}"
    if output is Output.PLAIN:
        return table(LAG_HEADER, [(document["group_id"], *row) for row in rows], output)
    return f"{head}\n{table(LAG_HEADER, rows)}"


def _assigned(member: dict[str, Any]) -> str:
    if member["assignment"] is None:
        return "?"
    return (
        " ".join(
            f"{topic['topic']}:{','.join(map(str, topic['partitions']))}"
            for topic in member["assignment"]
        )
        or "-"
    )


def _destination(to: str) -> str | dict[str, int]:
    """Raises Failure, status 2."""
    from .read_from import Place, ReadFrom

    place = ReadFrom.parse(to)
    match place.place:
        case Place.START:
            return "earliest"
        case Place.END:
            return "latest"
        case Place.TIME:
            return {"timestamp": place.number}
        case Place.OFFSET:
            return {"offset": place.number}
        case Place.AFTER_START:
            return {"shift": place.number}
        case Place.BEFORE_END:
            return {"shift": -place.number}


def _shown(number: int | None) -> str:
    return "-" if number is None else str(number)
