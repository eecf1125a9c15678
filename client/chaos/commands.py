"""`logboat chaos ...`: hurt a cluster on purpose, to see what it does.

What a node breaks in itself goes over HTTP to any cluster whose nodes were started with faults, and
ends by itself, whatever becomes of the command. Killing and restarting are for the clusters of this
machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from ..cluster import node_commands
from ..cluster.places import DataDir, Ephemeral
from ..failure import ExitStatus, Failure
from ..node_api import DEFAULT_URL, NodeApi, Url, nodes_of_cluster
from ..terminal import As, Output, emit, say, table
from .times import TIME_HELP, in_words, seconds_or_refuse

chaos = typer.Typer(
    name="chaos",
    help="Faults on purpose: network, disk, clock and processes.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Hurt = Annotated[int, typer.Argument(metavar="NODE", min=0)]
AllHurt = Annotated[list[int], typer.Argument(metavar="NODE...", min=0)]
Others = Annotated[list[int], typer.Argument(metavar="OTHER...", min=0)]
For = Annotated[str, typer.Option("--for", metavar="TIME", help=f"{TIME_HELP}; then it ends.")]

HEADER = ("NODE", "CUT-OFF-FROM", "DELAYS", "DROPS", "DISK", "CLOCK")


@chaos.command()
def status(output: As = Output.TABLE, url: Url = DEFAULT_URL) -> None:
    """Show what is broken on purpose at each node."""
    from .nodes import faults_now

    _show(faults_now(nodes_of_cluster(NodeApi(url))), output)


@chaos.command()
def partition(
    node_id: Hurt,
    others: Others,
    for_: For = "10s",
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Cut a node off from others: nothing passes between them."""
    _inject(url, [node_id], [{"kind": "partition", "node": one} for one in others], for_, output)


@chaos.command()
def delay(
    node_id: Hurt,
    others: Others,
    by: Annotated[str, typer.Option("--by", metavar="TIME", help="50ms, 2s.")],
    for_: For = "10s",
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Hold what a node sends to others for a while."""
    faults = [{"kind": "delay", "node": one, "delay": by} for one in others]
    _inject(url, [node_id], faults, for_, output)


@chaos.command()
def drop(
    node_id: Hurt,
    others: Others,
    chance: Annotated[
        str, typer.Option("--chance", metavar="PERCENT", help="Of each write, like 5%.")
    ] = "10%",
    for_: For = "10s",
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Lose some of what a node sends to others.

    The connection breaks in the middle of it."""
    from .plan import chance_of

    thrown = chance_of(chance)
    if thrown is None:
        raise Failure(f"--chance {chance!r} is not between 0% and 100%", ExitStatus.USAGE)
    faults = [{"kind": "drop", "node": one, "chance": thrown} for one in others]
    _inject(url, [node_id], faults, for_, output)


@chaos.command("disk-full")
def disk_full(
    node_ids: AllHurt, for_: For = "10s", output: As = Output.TABLE, url: Url = DEFAULT_URL
) -> None:
    """Leave no room on the disks of nodes.

    What would need a new block fails with ENOSPC. A voter whose journal has to grow meanwhile ends,
    as on any full disk; start it again with `logboat cluster node start`."""
    _inject(url, node_ids, [{"kind": "disk-full"}], for_, output)


@chaos.command()
def clock(
    node_ids: AllHurt,
    by: Annotated[str, typer.Option("--by", metavar="OFFSET", help="+30s, -2h, +1d.")],
    for_: For = "10s",
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Set the wall clocks of nodes wrong. What measures durations stays right."""
    _inject(url, node_ids, [{"kind": "clock", "offset": by}], for_, output)


@chaos.command()
def pause(
    node_ids: AllHurt, for_: For = "10s", output: As = Output.TABLE, url: Url = DEFAULT_URL
) -> None:
    """Let nodes stand still, connections open, for 30 s at most.

    As a long garbage collection would."""
    _inject(url, node_ids, [{"kind": "pause"}], for_, output)


@chaos.command()
def heal(
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
    data_dir: DataDir = None,
    ephemeral: Ephemeral = False,
) -> None:
    """End everything that is broken on purpose, at every node.

    A node that stands still is woken where its process is on this machine, and waited for
    elsewhere. With --data-dir or --ephemeral, nodes of that cluster that do not run are started,
    too."""
    from ..cluster.places import default_folder_of
    from .nodes import faults_now, heal_all
    from .running import revive, wake

    if data_dir is not None or ephemeral:
        folder, url = _local(data_dir, ephemeral, url)
        revive(folder)
    api = NodeApi(url)
    if (here := default_folder_of(api.urls)) is not None:
        wake(here)
    nodes = nodes_of_cluster(api)
    heal_all(nodes)
    _show(faults_now(nodes), output)


@chaos.command()
def kill(
    node_id: node_commands.NodeId,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help=f"{TIME_HELP}; then start it again."),
    ] = None,
    data_dir: DataDir = None,
    ephemeral: Ephemeral = False,
) -> None:
    """Kill a node of this machine as a crash would.

    With --for, start it again after that."""
    from ..cluster.places import existing_folder
    from .record import note
    from .who import who

    for_s = None if for_ is None else seconds_or_refuse(for_, "--for")
    folder = existing_folder(data_dir, ephemeral)
    node_commands.kill(node_id, data_dir, ephemeral)
    note(folder, node_id, "kill", for_s, who())
    if for_s is None:
        return
    try:
        time.sleep(for_s)
    finally:
        # Ctrl-C says that it has been dead for long enough.
        node_commands.start(node_id, data_dir, ephemeral)


@chaos.command()
def restart(
    node_id: node_commands.NodeId, data_dir: DataDir = None, ephemeral: Ephemeral = False
) -> None:
    """Stop a node of this machine in good order and start it again."""
    from ..cluster.places import existing_folder
    from .record import note
    from .who import who

    note(existing_folder(data_dir, ephemeral), node_id, "restart", None, who())
    node_commands.restart(node_id, data_dir, ephemeral)


@chaos.command()
def run(
    plan: Annotated[str, typer.Argument(metavar="PLAN.TOML", help="Steps; docs/chaos.md.")],
    check: Annotated[
        bool, typer.Option("--check", help="Say whether it could be carried out; do nothing.")
    ] = False,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
    data_dir: DataDir = None,
    ephemeral: Ephemeral = False,
) -> None:
    """Carry out a plan of faults, step by step.

    All of it is undone at the end or on Ctrl-C. Exit status 1: some step could not be carried
    out."""
    from .plan import load_plan
    from .running import carry_out, prepare

    wanted = load_plan(plan)
    folder, url = _local(data_dir, ephemeral, url) if wanted.needs_processes else (None, url)
    ready = prepare(wanted, NodeApi(url), folder)
    if check:
        say(f"{plan}: {len(wanted.steps)} steps, {in_words(wanted.length_s)}.")
        return
    strikes = carry_out(ready)
    if output is Output.JSON:
        emit(json.dumps([strike.as_document() for strike in strikes], indent=2))
    else:
        header = ("AT", "FAULT", "NODES", "FOR", "OUTCOME")
        emit(table(header, [strike.as_row() for strike in strikes], output))
    if any(not strike.done for strike in strikes):
        raise Failure("not every step could be carried out")


@chaos.command()
def history(
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
    data_dir: DataDir = None,
    ephemeral: Ephemeral = False,
) -> None:
    """Show what was broken on purpose lately.

    When, until when and by whom. Nodes keep their last 500 faults, over restarts, too; the
    cluster's folder, where it is here, those of processes."""
    from dataclasses import asdict

    from .history import all_entries, as_row

    if data_dir is not None or ephemeral:
        _, url = _local(data_dir, ephemeral, url)
    entries = all_entries(NodeApi(url), data_dir, ephemeral)
    if output is Output.JSON:
        emit(json.dumps([asdict(one) for one in entries], indent=2))
        return
    header = ("AT", "UNTIL", "NODE", "FAULT", "OTHER", "AMOUNT", "BY")
    emit(table(header, [as_row(one) for one in entries], output))


def _local(data_dir: str | None, ephemeral: bool, url: str) -> tuple[Any, str]:
    """The folder of a cluster of this machine, and where its nodes are asked."""
    from ..cluster.places import existing_folder
    from ..cluster.state import load_state

    folder = existing_folder(data_dir, ephemeral)
    return folder, url or load_state(folder).http_urls


def _inject(
    url: str, node_ids: Sequence[int], faults: Sequence[dict[str, Any]], for_: str, output: Output
) -> None:
    """All of them at each of these nodes. Known to be wrong is known before anything is broken."""
    from .nodes import FAULTS, known
    from .who import who

    nodes = nodes_of_cluster(NodeApi(url))
    known(nodes, node_ids)
    for node_id in node_ids:
        nodes[node_id].call("GET", FAULTS)
    shown = {}
    for node_id in node_ids:
        for fault in faults:
            asked = {**fault, "for": for_, "by": who()}
            shown[node_id] = nodes[node_id].call("POST", FAULTS, asked)
    _show(shown, output)


def _show(faults: Mapping[int, Mapping[str, Any]], output: Output) -> None:
    if output is Output.JSON:
        emit(json.dumps([{"node": node_id, **one} for node_id, one in faults.items()], indent=2))
        return
    emit(table(HEADER, [_row(node_id, one) for node_id, one in faults.items()], output))


def _row(node_id: int, one: Mapping[str, Any]) -> tuple[str, ...]:
    offset_ms = one["clock_offset_ms"]
    return (
        str(node_id),
        ",".join(map(str, one["cut"])) or "-",
        ",".join(f"{other}:{ms}ms" for other, ms in one["delays_ms"].items()) or "-",
        ",".join(f"{other}:{chance:.4g}" for other, chance in one["losses"].items()) or "-",
        "full" if one["disk_full"] else "-",
        f"{offset_ms / 1000:+g}s" if offset_ms else "-",
    )
