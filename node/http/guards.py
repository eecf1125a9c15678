"""What every request passes: errors become documents, strangers stay out, load is bounded."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any

import orjson
from aiohttp import web
from aiohttp.typedefs import Middleware
from multidict import CIMultiDict
from yarl import URL

from .errors import ApiError
from .keys import ADMISSION, LEASE, REQUESTS

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
JSON_TYPE = "application/json"


def json_response(
    document: Any, *, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    body = orjson.dumps(document) + b"\n"
    return web.Response(body=body, status=status, content_type=JSON_TYPE, headers=headers)


def error_response(error: ApiError) -> web.Response:
    headers = {"Retry-After": "1"} if error.status in (429, 503) else None
    return json_response(error.document(), status=error.status, headers=headers)


_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


@web.middleware
async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """By method and status, when it is answered to the end."""
    response = await handler(request)
    # A client may call its method as it likes, which must not make the count grow without bound.
    method = request.method if request.method in _METHODS else "other"
    request.app[REQUESTS][method, response.status] += 1
    return response


@web.middleware
async def errors_as_documents(request: web.Request, handler: Handler) -> web.StreamResponse:
    """One shape for every error, aiohttp's own (404, 405, 413) included."""
    try:
        return await handler(request)
    except ApiError as error:
        return error_response(error)
    except web.HTTPRequestEntityTooLarge:
        return error_response(
            ApiError(413, "the request body is too large", hint="send fewer records at once")
        )
    except web.HTTPException as error:
        response = error_response(ApiError(error.status, in_words(error, request)))
        # What the protocol demands beside the status, such as Allow with 405.
        response.headers.update(kept_headers(error.headers))
        return response
    except Exception:
        # Our mistake: the log has the traceback, the client a plain sentence.
        log.exception("%s %s failed", request.method, request.path)
        return error_response(
            ApiError(
                500,
                "internal error; the node's log says more",
                outcome_unknown=request.method not in ("GET", "HEAD"),
            )
        )


def loopback_hosts_only() -> Middleware:
    """For a listener on loopback: a page whose name was rebound to 127.0.0.1 still sends its own
    name as Host, and is refused."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not _is_loopback_name(request.host):
            raise ApiError(
                403,
                f"Host {request.host[:80]!r} is not this machine",
                hint="this node listens on loopback only; use http://127.0.0.1",
            )
        return await handler(request)

    return guard


@web.middleware
async def bounded(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path in HEALTH_PATHS:
        # A busy node is alive: its supervisor must hear so.
        return await handler(request)
    with request.app[ADMISSION].request() as request[LEASE]:
        return await handler(request)


def is_loopback(host: str) -> bool:
    """Whether binding to `host` means that only this machine can connect."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_loopback_name(host_header: str) -> bool:
    try:
        host = URL(f"http://{host_header}").host
    except ValueError:
        return False
    return host is not None and (is_loopback(host) or host.endswith(".localhost"))


def in_words(error: web.HTTPException, request: web.Request) -> str:
    if error.status == 404:
        return f"there is no {request.path}"
    if error.status == 405:
        return f"{request.path} does not take {request.method}"
    return error.reason


def kept_headers(headers: CIMultiDict[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in ("allow", "location")}
