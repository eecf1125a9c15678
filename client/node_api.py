"""A cluster's HTTP API for the command line: an answer, or a Failure with its exit status."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, unquote

import typer

from .failure import TIMED_OUT_STATUSES, ExitStatus, Failure
from .profiles import url_in_use

if TYPE_CHECKING:
    from .cluster.probe import Answer

DEFAULT_URL = ""
"""Not said: `_where` finds out."""

USUAL_URL = "http://127.0.0.1:8082"

TOPICS = "/api/v1/topics"
NO_TOPIC = 40403
NO_GROUP = 40405
"""Error codes; that of a missing partition is another one."""
NEXT_NODE_SECONDS = 5.0

Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="LOGBOAT_HTTP",
        help="Any nodes of the cluster, separated by commas. Otherwise: the profile in use, the "
        f"cluster in ./logboat-data, {USUAL_URL}.",
        show_default=False,
    ),
]
"""The option that every command about a running cluster takes."""


class NodeApi:
    """Requests to the first of the nodes at `url` that takes a connection; only `http://host:port`
    is spoken."""

    def __init__(self, url: str) -> None:
        self.urls = tuple(_checked(one) for one in (url or _where()).split(",") if one.strip())
        if not self.urls:
            raise Failure(f"{url!r} names no node", ExitStatus.USAGE)

    @property
    def url(self) -> str:
        """Of the node that is asked first."""
        return self.urls[0]

    @property
    def address(self) -> str:
        return self.url.removeprefix("http://")

    def ask(self, method: str, path: str, body: Any, *, timeout_seconds: float = 40.0) -> Answer:
        """Whatever a node answers. Raises Failure when none does."""
        from .cluster.probe import NoAnswer, exchange

        reasons = []
        for url in self.urls:
            # One that stands still keeps nobody from asking the next.
            is_last = method != "GET" or url == self.urls[-1]
            seconds = timeout_seconds if is_last else min(timeout_seconds, NEXT_NODE_SECONDS)
            try:
                return exchange(
                    url.removeprefix("http://"),
                    path,
                    method=method,
                    body=body,
                    timeout_seconds=seconds,
                )
            except NoAnswer as error:
                if error.asked and method != "GET":
                    raise Failure(
                        f"{url} does not answer ({error}): it may have been done",
                        ExitStatus.TIMED_OUT,
                    ) from error
                reasons.append(f"{url} does not answer ({error})")
        raise Failure(
            f"{'; '.join(reasons)}; is the cluster up (`logboat cluster status`), and is this "
            "where it listens?",
            ExitStatus.UNREACHABLE,
        )

    def call(
        self, method: str, path: str, body: Any = None, *, timeout_seconds: float = 40.0
    ) -> Any:
        """The JSON of a good answer. A Failure says what the node said, and what may help."""
        answer = self.ask(method, path, body, timeout_seconds=timeout_seconds)
        if answer.status < 300 and answer.status != 207:
            return answer.body
        if isinstance(answer.body, dict) and answer.body.get("error_code") == NO_TOPIC:
            raise no_topic(answer.body["message"], self._did_you_mean(path))
        raise _failure(answer.status, answer.body)

    def _did_you_mean(self, path: str) -> str | None:
        """A topic whose name is close to that of the path."""
        from difflib import get_close_matches

        name = unquote(path.removeprefix(f"{TOPICS}/").partition("/")[0])
        with suppress(Failure):
            topics = self.call("GET", TOPICS)["topics"]
            names = [one["name"] for one in topics if not one["internal"]]
            return next(iter(get_close_matches(name, names, n=1)), None)
        return None


def _where() -> str:
    return url_in_use() or _urls_of_this_folder() or USUAL_URL


def _urls_of_this_folder() -> str | None:
    """Of the cluster that `cluster up` made here."""
    from .cluster.folder import DEFAULT_DATA_DIR, ClusterFolder
    from .cluster.state import load_state

    try:
        state = load_state(ClusterFolder.at(DEFAULT_DATA_DIR))
    except Failure:
        return None
    return state.http_urls


def _checked(url: str) -> str:
    scheme, separator, rest = url.strip().rstrip("/").partition("://")
    _, _, port = rest.rpartition(":")
    if not separator or scheme != "http" or "/" in rest or not (port.isascii() and port.isdigit()):
        raise Failure(f"{url!r} is not http://host:port", ExitStatus.USAGE)
    return f"http://{rest}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{quote(topic, safe='')}"


def no_topic(message: str, did_you_mean: str | None) -> Failure:
    """What the node said, with what helps on the command line."""
    hint = f"did you mean {did_you_mean!r}?" if did_you_mean else "`logboat topic list` shows all"
    return Failure(f"{message.rstrip('.')}; {hint}")


def _failure(status: int, body: Any) -> Failure:
    exit_status = ExitStatus.TIMED_OUT if status in TIMED_OUT_STATUSES else ExitStatus.FAILED
    if not isinstance(body, dict):
        return Failure(f"HTTP {status}", exit_status)
    message = body.get("message", f"HTTP {status}")
    if body.get("error_code") == NO_GROUP:
        return Failure(f"{message.rstrip('.')}; `logboat group list` shows all")
    hint = f" ({body['hint']})" if body.get("hint") else ""
    return Failure(f"{message}{hint}", exit_status)


def nodes_of_cluster(api: NodeApi) -> dict[int, NodeApi]:
    """By id, those whose HTTP address the node knows. Raises Failure."""
    nodes = api.call("GET", "/api/v1/cluster")["nodes"]
    return {one["id"]: NodeApi(f"http://{one['http']}") for one in nodes if one["http"]}
