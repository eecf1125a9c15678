"""What a handler serves, and the shape of a handler."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..seam import frozen
from ..wire import ApiKey, Message, RequestHeader

if TYPE_CHECKING:
    from ..metadata.commands import Origin
    from .caller import Caller
    from .services import Services


@dataclass(slots=True)
class Call:
    """One request on its way through a handler."""

    header: RequestHeader
    caller: Caller
    origin: Origin | None = None
    """Set by another node for a request that must not happen twice (RULES A5)."""
    on_gone: Callable[[], None] | None = None

    @property
    def version(self) -> int:
        return self.header.api_version

    def when_gone(self, act: Callable[[], None]) -> None:
        """`act` is called should the connection end before this request is answered."""
        self.on_gone = act

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""


Reply = Any
"""A response `Message`; on the inter-node listener also a `ControllerAnswer`; None: no answer."""

Handler = Callable[["Services", Any, Call], Reply | Coroutine[Any, Any, Reply]]
"""`handle(services, request, call)`. A plain function answers within the turn of the loop in which
the request was read; a coroutine function gets a task."""

NOTHING: frozenset[ApiKey] = frozenset()


@frozen
class Served:
    """One API as this node serves it; the handler's module is loaded at its first request."""

    key: ApiKey
    min_version: int
    max_version: int
    module: str
    """Below `node.handlers`, with a public `handle`."""
    may_start_behind: frozenset[ApiKey] = NOTHING
    """Kafka handles one request of a connection at a time. This one may also start while requests
    of these keys, read before it on its connection, are unanswered. Answers keep their order."""
    ends_with_client: bool = False
    """Nobody misses its outcome when the connection is gone: it is cancelled then."""
    advertised: bool = True
    """Shown by ApiVersions."""
    advertised_min: int | None = None
    """Where ApiVersions shows another minimum than is served."""

    def serves(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version

    def load(self) -> Handler:
        module = import_module(f".handlers.{self.module}", __package__)
        handler: Handler = module.handle
        return handler


class CloseConnection(Exception):
    """The peer cannot be answered within the protocol; the message goes to the log."""


def is_reply(result: object) -> bool:
    """Whether a handler has answered at once."""
    return result is None or isinstance(result, Message)
