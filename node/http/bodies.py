"""Request bodies: of the right type, in bounded time and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson
from aiohttp import web

from ...seam import offload
from .errors import ApiError
from .keys import NODE

BODY_SECONDS = 30.0
"""A client that sends slower than its body in this time holds memory for nothing."""

OFFLOAD_BYTES = 64 << 10
"""Parsing more than this takes longer than a loop callback may (RULES F1)."""

_SLACK_BYTES = 64 << 10

Result = TypeVar("Result")


def max_body_bytes(max_message_bytes: int) -> int:
    """A batch of the largest size in base64, and room for the JSON around it."""
    return max_message_bytes * 4 // 3 + _SLACK_BYTES


def body_size_bound(request: web.Request) -> int:
    """What reading the body may cost: what the client announces, or the limit for chunked ones."""
    limit = max_body_bytes(request.app[NODE].max_message_bytes)
    return min(limit, request.content_length if request.content_length is not None else limit)


async def read_body(request: web.Request) -> bytes:
    """Raises ApiError 408 when it does not arrive in time; aiohttp raises 413 above the limit."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        raise ApiError(408, f"the body did not arrive within {BODY_SECONDS:.0f} s") from None


async def worked(size: int, work: Callable[[], Result]) -> Result:
    """`work` here when its input of `size` bytes is little, beside the loop when it is not."""
    return work() if size <= OFFLOAD_BYTES else await offload(work)


def json_object(body: bytes) -> dict[str, Any]:
    """Raises ApiError 400."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"the body is no valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise ApiError(400, "the body is no JSON object")
    return document


def refuse_unknown_keys(document: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises ApiError 422; a misspelt key would else do nothing, in silence."""
    if unknown := sorted(document.keys() - set(known)):
        raise ApiError(422, f"unknown key {unknown[0]!r}", hint=", ".join(known))


def node_id_in(document: Mapping[str, Any], key: str) -> int:
    """The node that is named there. Raises ApiError."""
    named = document.get(key)
    if not isinstance(named, int) or isinstance(named, bool):
        raise ApiError(422, f'"{key}" is no node id')
    return named


def require_type(request: web.Request, *allowed: str) -> str:
    """The media type without parameters; ApiError 415 unless it is one of `allowed`.

    A browser sends `text/plain` across origins without asking first; a strict type keeps other
    people's pages from writing.
    """
    if request.content_type not in allowed or "Content-Type" not in request.headers:
        raise ApiError(
            415,
            f"Content-Type {request.headers.get('Content-Type', 'is missing')}",
            hint=f"send {' or '.join(allowed)}",
        )
    return request.content_type
