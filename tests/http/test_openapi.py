"""The API keeps to its own document: every operation is asked with good and bad data."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
import requests
import schemathesis
from aiohttp import web
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from logboat.node.http.openapi import document
from logboat.node.http.operations import Operation, operations
from logboat.node.http.server import application
from logboat.wire.messages.describe_quorum import ReplicaState
from logboat.wire.records import Record, encode_batch
from tests.http.fake_http_node import topic
from tests.http.group_node import GroupNode

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
DOCUMENT = document(operations(), version="test")
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
EXAMPLES = 10
"""Of each operation, good and bad ones each."""


@schemathesis.serializer("application/x-ndjson")
def one_line(_: Any, value: Any) -> Any:
    return json.dumps(value).encode() + b"\n"


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """A server in a thread of its own: what asks it waits for answers."""
    started = threading.Event()
    urls: list[str] = []
    ends: list[Callable[[], object]] = []

    async def serve() -> None:
        node = GroupNode()
        node.add(topic("orders"))
        node.quorum_voters = [ReplicaState(replica_id=1, log_end_offset=90)]
        node.append("orders", 0, encode_batch([Record(value=b"v", timestamp=1)]))
        node.coordinator.on_leadership(0, True, 0)
        await asyncio.sleep(0)
        runner = web.AppRunner(application(node, Random(1), host="127.0.0.1", leader_seconds=0.05))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        urls.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        ends.append(lambda: loop.call_soon_threadsafe(stop.set))
        started.set()
        await stop.wait()
        await runner.cleanup()
        await node.coordinator.stop()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(60)
    yield urls[0]
    ends[0]()
    thread.join()


ASKED = [
    pytest.param(operation, mode, id=f"{operation.method} {operation.path} {mode.value}")
    for operation in operations()
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    # Where nothing is taken, nothing can be wrong.
    if mode is GenerationMode.POSITIVE or operation.parameters or operation.bodies
]


@pytest.mark.parametrize(("operation", "mode"), ASKED)
def test_every_operation_keeps_to_the_document(
    base_url: str, operation: Operation, mode: GenerationMode
) -> None:
    described = SCHEMA[operation.path][operation.method]

    @seed(1)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=described.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        # Neither for ever nor for a minute.
        if operation.path.endswith("/tail"):
            case.query = {**(case.query or {}), "for": "20ms"}
        elif "wait" in (case.query or {}) and str(case.query["wait"])[:1].isdigit():
            case.query = {**case.query, "wait": "20ms"}
        response = case.call(base_url=base_url, timeout=60)
        case.validate_response(response, checks=CHECKS)

    ask()


def test_the_document_is_served_and_names_every_operation(base_url: str) -> None:
    served = requests.get(f"{base_url}/openapi.json", timeout=60).json()
    assert served["openapi"] == "3.1.0"
    assert served["paths"] == DOCUMENT["paths"]
    ids = [entry["operationId"] for path in served["paths"].values() for entry in path.values()]
    assert len(ids) == len(set(ids)) == len(operations())
