"""`logboat api METHOD PATH`: curl that knows where the cluster is."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from .failure import ExitStatus, Failure
from .node_api import DEFAULT_URL, NodeApi, Url
from .terminal import emit, say


def api(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="GET, POST, PUT, DELETE, PATCH.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Such as /api/v1/cluster.")],
    data: Annotated[
        str | None,
        typer.Option("-d", "--data", help="The body, JSON; @FILE reads it, @- standard input."),
    ] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Ask a node anything over HTTP.

    The answer's body goes to standard output, whatever its status."""
    if not path.startswith("/"):
        raise Failure(f"{path!r} is no path: it begins with /", ExitStatus.USAGE)
    answer = NodeApi(url).ask(method.upper(), path, _body(data))
    emit(answer.body if isinstance(answer.body, str) else json.dumps(answer.body, indent=2))
    if answer.status >= 400:
        say(f"HTTP {answer.status}")
        raise typer.Exit(int(ExitStatus.FAILED))


def _body(data: str | None) -> Any:
    if data is None:
        return None
    text: str | bytes = data
    if data == "@-":
        text = sys.stdin.buffer.read()
    elif data.startswith("@"):
        try:
            with open(data[1:], "rb") as file:
                text = file.read()
        except OSError as error:
            raise Failure(f"cannot read {data[1:]}: {error.strerror}") from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise Failure(f"the body is no JSON: {error}", ExitStatus.USAGE) from error
