"""`logboat doctor`: what newcomers fail at, looked at one by one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import typer

from .failure import ExitStatus, Failure
from .node_api import DEFAULT_URL, NodeApi, Url
from .terminal import As, Output, emit, table

CONNECT_SECONDS = 2.0
MOST_SKEW_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    good: bool
    said: str


def doctor(output: As = Output.TABLE, url: Url = DEFAULT_URL) -> None:
    """Look for what is wrong with a cluster, from here.

    Are its nodes up, where do they say they are, can this machine reach that, do the clocks agree?
    Status 1 when something is wrong."""
    findings = list(examine(NodeApi(url)))
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


def examine(api: NodeApi) -> Iterator[Finding]:
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
    yield _clock(api)


def _of_node(node: dict[str, Any]) -> Iterator[Finding]:
    name = f"node {node['id']}"
    yield Finding(f"{name} is active", node["state"] == "active", node["state"])
    for protocol in ("kafka", "http"):
        address = node[protocol]
        if address is None:
            continue
        problem = _unreachable(address)
        yield Finding(
            f"{name} is reached at its advertised {protocol} address",
            problem is None,
            address if problem is None else f"{address}: {problem}",
        )


def _unreachable(address: str) -> str | None:
    import socket

    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS):
            return None
    except OSError as error:
        return str(error)


def _clock(api: NodeApi) -> Finding:
    from email.utils import parsedate_to_datetime

    what = "the clocks agree"
    before = time.time()
    answer = api.ask("GET", "/healthz", None)
    here = (before + time.time()) / 2
    date = answer.headers.get("Date")
    if date is None:
        return Finding(what, True, "the node does not say its time")
    skew = abs(parsedate_to_datetime(date).timestamp() + 0.5 - here)
    return Finding(what, skew <= MOST_SKEW_SECONDS, f"within {skew:.0f} s")
