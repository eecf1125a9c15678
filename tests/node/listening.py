"""A client listener with handlers of the test's own and nothing behind them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from logboat.node.config import NodeConfig
from logboat.node.dispatch import Dispatcher
from logboat.node.listener import ClientListener
from logboat.node.served import Handler, Served
from logboat.node.services import Services
from logboat.wire import ApiKey


class ServedBy(Served):
    """An API with a handler that is a function of the test, not a module."""

    def __init__(
        self,
        key: ApiKey,
        min_version: int,
        max_version: int,
        handler: Handler,
        *,
        may_start_behind: frozenset[ApiKey] = frozenset(),
    ) -> None:
        super().__init__(key, min_version, max_version, "", may_start_behind=may_start_behind)
        object.__setattr__(self, "_handler", handler)

    def load(self) -> Handler:
        handler: Handler = self._handler  # type: ignore[attr-defined]
        return handler


def table(*rows: Served) -> Mapping[ApiKey, Served]:
    return {row.key: row for row in rows}


def fail(error: BaseException) -> None:
    raise error


def config(**settings: str) -> NodeConfig:
    """Node 1 on free ports; `connections_max_idle_ms="5"` stands for the name with dots."""
    given = {
        "node.id": "1",
        "cluster.id": "test-cluster",
        "log.dirs": "unused",
        "listeners": "PLAINTEXT://127.0.0.1:0,INTERNODE://127.0.0.1:0",
    }
    given.update({name.replace("_", "."): value for name, value in settings.items()})
    return NodeConfig.of(given)


@contextlib.asynccontextmanager
async def listening(
    rows: Mapping[ApiKey, Served], services: Any = None, **settings: str
) -> AsyncIterator[tuple[int, ClientListener]]:
    """(port, listener) while the block runs."""
    listener = ClientListener(config(**settings), fail)
    port = await listener.bind()
    await listener.serve(Dispatcher(cast(Services, services), rows))
    try:
        yield port, listener
    finally:
        await listener.close()
