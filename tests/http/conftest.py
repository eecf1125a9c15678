"""An HTTP client of a node in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random

import pytest
from aiohttp.test_utils import TestClient, TestServer

from logboat.node.http.keys import LEADERS
from logboat.node.http.server import application
from tests.http.fake_http_node import FakeNode, topic


@pytest.fixture
def node() -> FakeNode:
    """With one topic, `orders`: partition n is led by node n + 1."""
    fake = FakeNode()
    fake.add(topic("orders"))
    return fake


PATIENCE_S = 1.0
"""For a leader that never comes; one that comes late may need `patient`."""


@pytest.fixture
async def http(node: FakeNode) -> AsyncIterator[TestClient]:  # type: ignore[type-arg]
    """An HTTP client of that node."""
    server = TestServer(application(node, Random(1), host="127.0.0.1", leader_seconds=PATIENCE_S))
    async with TestClient(server) as client:
        yield client


@pytest.fixture
def patient(http: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[type-arg]
    """Requests wait for a leader until the test gives them one."""
    assert http.app is not None
    monkeypatch.setattr(http.app[LEADERS], "_patience", 60.0)
