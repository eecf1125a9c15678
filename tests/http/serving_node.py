"""A whole node in the test's own loop, and a client of its HTTP API."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

from logboat.node.run import Node
from tests.http.http_asker import Asker
from tests.node.running_node import running_node

CLUSTER = "/v3/clusters/test-cluster"


@contextlib.asynccontextmanager
async def serving_node(directory: Path, **settings: str) -> AsyncIterator[tuple[Node, Asker]]:
    async with running_node(directory, http_listener="127.0.0.1:0", **settings) as node:
        assert node.addresses.http is not None
        base = f"http://127.0.0.1:{node.addresses.http.port}"
        async with aiohttp.ClientSession() as session:
            yield node, Asker(session, base)
