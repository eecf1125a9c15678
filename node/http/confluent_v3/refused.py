"""v3: what is described by its documents and not built, answered plainly."""

from __future__ import annotations

from aiohttp import web

from ....wire import ErrorCode
from ..errors import from_kafka


async def no_authorizer(_: web.Request) -> web.Response:
    """ACLs: as Kafka answers without an authorizer, 400 and 40002. Nothing was read or changed."""
    raise from_kafka(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
