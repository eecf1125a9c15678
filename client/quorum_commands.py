"""`logboat quorum ...`: the voters that keep the cluster's metadata."""

from __future__ import annotations

import json
from typing import Annotated, Any
from uuid import UUID

import typer

from .node_api import DEFAULT_URL, NodeApi, Url
from .terminal import As, Output, Watch, emit, look_and_watch, say, table

quorum = typer.Typer(
    name="quorum",
    help="The metadata quorum: its state, log, leader and voters.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@quorum.command()
def status(watch: Watch = False, output: As = Output.TABLE, url: Url = DEFAULT_URL) -> None:
    """Show leader, voters and observers, as the leader sees them."""
    api = NodeApi(url)
    look_and_watch(lambda: _status(api.call("GET", "/api/v1/quorum"), output), watch=watch)


def _status(document: dict[str, Any], output: Output) -> str:
    if output is Output.JSON:
        return json.dumps(document, indent=2)
    header = ("NODE", "ROLE", "LOG-END", "LAG", "LAST-CONTACT", "DIRECTORY-ID")
    voters = [_row(one, "leader" if one["leads"] else "follower") for one in document["voters"]]
    observers = [_row(one, "observer") for one in document["observers"]]
    shown = table(header, voters + observers, output)
    if output is Output.PLAIN:
        return shown
    return (
        f"cluster {document['cluster_id']}: node {document['leader_id']} leads in epoch "
        f"{document['leader_epoch']}, high watermark {document['high_watermark']}, "
        f"largest lag {document['max_follower_lag']}\n{shown}"
    )


@quorum.command()
def log(
    since: Annotated[
        int | None,
        typer.Option("--since", metavar="INDEX", min=0, help="From this entry on, to the end."),
    ] = None,
    number: Annotated[
        int, typer.Option("-n", "--num", metavar="N", min=1, max=1000, help="So many of the last.")
    ] = 100,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Show what the quorum has decided.

    These are the committed entries of the metadata log. Those that a snapshot covers are no longer
    there; --since says so when it goes that far."""
    from .quorum_log import columns_of, content_in_words, pages

    api = NodeApi(url)
    entries = [entry for page in pages(api, since, number) for entry in page["entries"]]
    if output is Output.JSON:
        emit(json.dumps(entries, indent=2))
        return
    rows = [(*columns_of(one), content_in_words(one["content"])) for one in entries]
    emit(table(("INDEX", "TERM", "KIND", "CONTENT"), rows, output))


@quorum.command()
def transfer(
    node_id: Annotated[int, typer.Argument(metavar="NODE", min=0, help="A voter.")],
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Have another voter lead the quorum.

    It is the active controller then. No command is lost: the leader waits until that voter has all
    there is. What cannot be done now, say because the voter is down, changes nothing; exit status
    1."""
    done = NodeApi(url).call("POST", "/api/v1/quorum:transfer-leadership", {"to": node_id})
    if output is Output.JSON:
        emit(json.dumps(done, indent=2))
        return
    row = (str(done["leader_id"]), str(done["leader_epoch"]))
    emit(table(("LEADER", "EPOCH"), [row], output))


@quorum.command("replace-voter")
def replace_voter(
    node_id: Annotated[int, typer.Argument(metavar="NODE", min=0)],
    directory_id: Annotated[
        UUID, typer.Argument(metavar="DIRECTORY-ID", help="The new one, as the node names it.")
    ],
    url: Url = DEFAULT_URL,
) -> None:
    """Admit a voter whose disk was lost, with its new directory. Then start the node again.

    The old directory never votes again. The node's own records come back from other replicas.
    """
    body = {"directory_id": str(directory_id)}
    NodeApi(url).call("PUT", f"/api/v1/quorum/voters/{node_id}", body)
    say(f"Voter {node_id} is directory {directory_id} now; start the node again.")


def _row(replica: dict[str, Any], role: str) -> tuple[str, ...]:
    return (
        str(replica["node_id"]),
        role,
        _known(replica["log_end_offset"]),
        _known(replica["lag"]),
        "now" if replica["leads"] else _ago(replica["silent_for_ms"]),
        _known(replica["directory_id"]),
    )


def _known(value: object) -> str:
    return "-" if value is None else str(value)


def _ago(milliseconds: int | None) -> str:
    return "never" if milliseconds is None else f"{milliseconds / 1_000:.1f} s ago"
