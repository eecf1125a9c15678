"""`logboat doctor`: what newcomers fail at, looked at one by one."""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import typer

from .cluster.places import DataDir, Ephemeral, folder_of
from .failure import ExitStatus, Failure
from .node_api import DEFAULT_URL, NodeApi, Url
from .terminal import As, Output, emit, table

SECONDS = 5.0
"""For a connection, and for an answer."""

MOST_SKEW_SECONDS = 2.0

LEAST_ROOM_BYTES = 512 << 20
"""Of a disk that is not as good as full: compaction and the quorum's snapshots write copies."""


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    good: bool
    said: str


def doctor(
    data_dir: DataDir = None,
    ephemeral: Ephemeral = False,
    output: As = Output.TABLE,
    url: Url = DEFAULT_URL,
) -> None:
    """Look for what is wrong with a cluster, from here.

    Are its nodes up, where do they say they are, does the node answer there, do the clocks agree?
    If its folder is here: is there room for its data? Status 1 when something is wrong."""
    findings = list(examine(NodeApi(url), data_dir, ephemeral))
    if output is Output.JSON:
        emit(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        rows = [
            ("good" if finding.good else "WRONG", finding.what, finding.said)
            for finding in findings
        ]
        emit(table(("", "CHECK", "FOUND"), rows, output))
    if not all(finding.good for finding in findings):
        raise typer.Exit(int(ExitStatus.FAILED))


def examine(
    api: NodeApi, data_dir: str | None = None, ephemeral: bool = False
) -> Iterator[Finding]:
    """Raises Failure when the folder was named and holds no cluster."""
    try:
        overview = api.call("GET", "/api/v1/cluster")
    except Failure as failure:
        yield Finding("the node answers", False, failure.sentence)
        return
    yield Finding("the node answers", True, api.url)
    reasons = "; ".join(overview["unhealthy_reasons"])
    yield Finding("the cluster is healthy", overview["is_healthy"], reasons or "yes")
    for node in overview["nodes"]:
        yield from _of_node(node)
    folder = folder_of(overview["cluster_id"], data_dir, ephemeral)
    if folder is not None:
        yield from room_of_folders(
            {node["id"]: folder.node_data(node["id"]) for node in overview["nodes"]}
        )


def _of_node(node: dict[str, Any]) -> Iterator[Finding]:
    name = f"node {node['id']}"
    yield Finding(f"{name} is active", node["state"] == "active", node["state"])
    kafka, http = node["kafka"], node["http"]
    yield _kafka(f"{name} answers as Kafka does at its advertised address", kafka)
    if http is not None:
        yield _clock(f"{name} tells the time of here at its advertised HTTP address", http)


def _kafka(what: str, address: str) -> Finding:
    """Whether a client that is sent there finds a broker."""
    import socket

    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), SECONDS) as connection:
            connection.sendall(_ASKS_FOR_APIS)
            apis = _apis(connection.makefile("rb").read(_APIS_BEGIN.size))
    except OSError as error:
        return Finding(what, False, f"{address}: {error.strerror or error}")
    if apis is None:
        return Finding(what, False, f"{address}: somebody else listens there")
    return Finding(what, True, f"{address} ({apis} APIs)")


_ASKS_FOR_APIS = struct.pack(">ihhih", 10, 18, 0, 0, -1)
"""Length, key and version of ApiVersions, correlation id, no client id: every broker answers it."""

_APIS_BEGIN = struct.Struct(">iihi")
"""Length, correlation id, error code, number of APIs."""


def _apis(answer: bytes) -> int | None:
    if len(answer) < _APIS_BEGIN.size:
        return None
    length, correlation_id, error_code, count = _APIS_BEGIN.unpack(answer)
    # Six bytes an API in version 0.
    is_answer = (correlation_id, error_code, length) == (0, 0, 10 + 6 * count)
    return count if is_answer else None


def _clock(what: str, address: str) -> Finding:
    from email.utils import parsedate_to_datetime

    before = time.time()
    try:
        answer = NodeApi(f"http://{address}").ask("GET", "/healthz", None, timeout_seconds=SECONDS)
    except Failure as failure:
        return Finding(what, False, failure.sentence)
    after = time.time()
    date = answer.headers.get("Date")
    if date is None:
        return Finding(what, True, f"{address}, which does not say")
    # Whole seconds, rounded down, at some time between question and answer: as far away as it is at
    # least, or a node that is slow to answer would have a wrong clock.
    there = parsedate_to_datetime(date).timestamp()
    skew = max(before - (there + 1), there - after, 0)
    return Finding(what, skew <= MOST_SKEW_SECONDS, f"{address}, {skew:.0f} s away")


def room_of_folders(folders: Mapping[int, str]) -> Iterator[Finding]:
    """By node id; one finding for each file system."""
    shared: dict[int, list[int]] = {}
    for node_id, path in folders.items():
        try:
            shared.setdefault(os.stat(path).st_dev, []).append(node_id)
        except OSError as error:
            what = f"node {node_id} has room for data"
            yield Finding(what, False, f"{path}: {error.strerror}")
    for node_ids in shared.values():
        noun, verb = ("node", "has") if len(node_ids) == 1 else ("nodes", "have")
        what = f"{noun} {', '.join(map(str, node_ids))} {verb} room for data"
        yield _room(what, folders[node_ids[0]])


def _room(what: str, path: str) -> Finding:
    try:
        found = os.statvfs(path)
    except OSError as error:
        return Finding(what, False, f"{path}: {error.strerror}")
    free, size = (blocks * found.f_frsize for blocks in (found.f_bavail, found.f_blocks))
    # Some file systems count no files.
    names = found.f_files == 0 or found.f_favail > 0
    said = f"{free / 1e9:.1f} of {size / 1e9:.1f} GB are free" if names else "no more files fit"
    return Finding(what, free >= LEAST_ROOM_BYTES and names, f"{said} at {path}")
