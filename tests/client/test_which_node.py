"""Which node a command asks, and what it says when none answers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from logboat.client.failure import ExitStatus, Failure
from logboat.client.node_api import DEFAULT_URL, USUAL_URL, NodeApi

NOBODY = "http://127.0.0.1:1"


@contextmanager
def answering() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"path": self.path}).encode())

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def silent() -> Iterator[str]:
    """Takes connections, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_first_that_takes_a_connection_is_asked(method: str) -> None:
    with answering() as url:
        assert NodeApi(f"{NOBODY},{url}").call(method, "/x") == {"path": "/x"}


def test_one_that_stands_still_keeps_nobody_from_asking_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("logboat.client.node_api.NEXT_NODE_SECONDS", 0.2)
    with silent() as paused, answering() as url:
        assert NodeApi(f"{paused},{url}").call("GET", "/x") == {"path": "/x"}


def test_a_change_that_may_have_been_heard_is_not_asked_for_twice() -> None:
    with silent() as paused, answering() as url, pytest.raises(Failure) as told:
        NodeApi(f"{paused},{url}").call("POST", "/x", {}, timeout_seconds=0.2)
    assert told.value.status is ExitStatus.TIMED_OUT
    assert "it may have been done" in told.value.sentence


def test_nodes_that_do_not_answer_are_named_with_the_reason() -> None:
    with pytest.raises(Failure) as told:
        NodeApi(f"{NOBODY},http://127.0.0.1:2").call("GET", "/x")
    assert told.value.status is ExitStatus.UNREACHABLE
    for said in (NOBODY, "http://127.0.0.1:2", "Connection refused", "cluster status"):
        assert said in told.value.sentence


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8082",
        "https://x:1",
        "http://",
        "http://x",
        "http://x:y",
        "http://a:1/b",
        ",",
        "x",
    ],
)
def test_what_is_no_address_is_a_usage_error(url: str) -> None:
    with pytest.raises(Failure) as told:
        NodeApi(url)
    assert told.value.status is ExitStatus.USAGE


def test_without_a_word_it_is_the_profile_then_the_cluster_made_here_then_the_usual_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert NodeApi(DEFAULT_URL).urls == (USUAL_URL,)
    node = {"id": 1, "pid": None, "kafka": "127.0.0.1:1", "quorum": "127.0.0.1:2"}
    state = {"version": 1, "cluster_id": "c", "ephemeral": False}
    state["nodes"] = [{**node, "http": "127.0.0.1:3"}, {**node, "id": 2, "http": "127.0.0.1:4"}]
    (tmp_path / "logboat-data").mkdir()
    (tmp_path / "logboat-data" / "cluster.json").write_text(json.dumps(state))
    assert NodeApi(DEFAULT_URL).urls == ("http://127.0.0.1:3", "http://127.0.0.1:4")
    (tmp_path / "logboat").mkdir()
    profiles = {"current": "mine", "urls": {"mine": "http://a:1,http://b:2"}}
    (tmp_path / "logboat" / "profiles.json").write_text(json.dumps(profiles))
    assert NodeApi(DEFAULT_URL).urls == ("http://a:1", "http://b:2")
    # What was said counts, also when it is what would be the default.
    assert NodeApi(USUAL_URL).urls == (USUAL_URL,)
