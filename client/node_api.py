"""One node's HTTP API for the command line: an answer, or a Failure with its exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from .failure import ExitStatus, Failure
from .profiles import url_in_use

if TYPE_CHECKING:
    from .cluster.probe import Answer

DEFAULT_URL = "http://127.0.0.1:8082"

Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="LOGBOAT_HTTP",
        help="Any node of the cluster; else that of the profile in use.",
    ),
]
"""The option that every command about a running cluster takes."""


class NodeApi:
    """Requests to the node at `url`; only `http://host:port` is spoken."""

    def __init__(self, url: str) -> None:
        if url == DEFAULT_URL:
            url = url_in_use() or DEFAULT_URL
        scheme, separator, rest = url.rstrip("/").partition("://")
        if not separator or scheme != "http" or "/" in rest or not rest:
            raise Failure(f"{url!r} is not http://host:port", ExitStatus.USAGE)
        self.url = f"http://{rest}"
        self.address = rest

    def ask(self, method: str, path: str, body: Any, *, timeout_seconds: float = 40.0) -> Answer:
        """Whatever the node answers. Raises Failure when it does not."""
        from .cluster.probe import ask

        answer = ask(self.address, path, method=method, body=body, timeout_seconds=timeout_seconds)
        if answer is None:
            raise Failure(f"{self.url} does not answer", ExitStatus.UNREACHABLE)
        return answer

    def call(
        self, method: str, path: str, body: Any = None, *, timeout_seconds: float = 40.0
    ) -> Any:
        """The JSON of a good answer. A Failure says what the node said, and what may help."""
        answer = self.ask(method, path, body, timeout_seconds=timeout_seconds)
        if answer.status < 300 and answer.status != 207:
            return answer.body
        raise _failure(answer.status, answer.body)


def topic_path(topic: str) -> str:
    return f"/api/v1/topics/{quote(topic, safe='')}"


def _failure(status: int, body: Any) -> Failure:
    exit_status = ExitStatus.TIMED_OUT if status in (408, 504) else ExitStatus.FAILED
    if not isinstance(body, dict):
        return Failure(f"HTTP {status}", exit_status)
    hint = f" ({body['hint']})" if body.get("hint") else ""
    return Failure(f"{body.get('message', f'HTTP {status}')}{hint}", exit_status)


def nodes_of_cluster(api: NodeApi) -> dict[int, NodeApi]:
    """By id, those whose HTTP address the node knows. Raises Failure."""
    nodes = api.call("GET", "/api/v1/cluster")["nodes"]
    return {one["id"]: NodeApi(f"http://{one['http']}") for one in nodes if one["http"]}
