"""GET /healthz: the process answers. GET /readyz: it can be sent work, or why not."""

from __future__ import annotations

from aiohttp import web

from .guards import json_response
from .keys import NODE


async def healthz(_: web.Request) -> web.Response:
    return json_response({"alive": True})


async def readyz(request: web.Request) -> web.Response:
    reasons = list(request.app[NODE].why_not_ready())
    document = {"ready": not reasons, "reasons": reasons}
    return json_response(document, status=503 if reasons else 200)
