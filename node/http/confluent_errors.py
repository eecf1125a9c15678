"""Errors under the paths of Confluent's REST proxy: two keys, and its own codes.

    {"error_code": 40401, "message": "there is no topic 'orders'; GET /topics lists the topics"}

`error_code` is the HTTP status, or the status with two more digits. What `/api/v1` says in fields
of its own (`errors.py`) stands here in the message, for clients of these paths know no other keys.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import orjson
from aiohttp import web

from ...wire import ErrorCode
from .errors import ApiError
from .guards import JSON_TYPE, Handler, in_words, kept_headers
from .media import V2_TYPE, error_type

log = logging.getLogger(__name__)

K = ErrorCode

V3_PATH = "/v3"
V2_PATHS = ("/topics", "/consumers", "/brokers", "/admin/topics")

_BAD_REQUEST = (400, 40002)
_CODES: Mapping[ErrorCode, tuple[int, int]] = MappingProxyType(
    {
        K.TOPIC_ALREADY_EXISTS: _BAD_REQUEST,
        K.INVALID_TOPIC_EXCEPTION: _BAD_REQUEST,
        K.INVALID_PARTITIONS: _BAD_REQUEST,
        K.INVALID_REPLICATION_FACTOR: _BAD_REQUEST,
        K.INVALID_REPLICA_ASSIGNMENT: _BAD_REQUEST,
        K.INVALID_CONFIG: _BAD_REQUEST,
        K.INVALID_REQUEST: _BAD_REQUEST,
        K.POLICY_VIOLATION: _BAD_REQUEST,
        K.UNSUPPORTED_VERSION: _BAD_REQUEST,
        K.SECURITY_DISABLED: _BAD_REQUEST,
        K.TOPIC_DELETION_DISABLED: _BAD_REQUEST,
    }
)
"""Where Confluent's (status, code) differ from those of `errors.py`."""


def error_answer(error: ApiError, *, v3: bool) -> tuple[int, dict[str, Any]]:
    """(HTTP status, document)."""
    status, code = error.status, error.error_code
    kafka_error = error.kafka_error
    if kafka_error is not None and kafka_error in _CODES:
        status, code = _CODES[kafka_error]
    elif code == 40403 and not v3 and kafka_error is not None:
        # In v2 40403 says that a consumer instance is gone, as clients know it.
        code = 40401
    elif code == 40402 and v3:
        code = 40403
    return status, {"error_code": code, "message": _sentence(error)}


def record_code(error: ApiError) -> int:
    """The code of one record that was not written, as Confluent's v2 has them."""
    if error.error_code in (40101, 40301, 40401, 40402):
        return error.error_code
    return 50003 if error.retriable else 50002


def _sentence(error: ApiError) -> str:
    # Hints of /api/v1 name its paths; these clients use others.
    hint = error.hint if error.hint and "/api/v1" not in error.hint else None
    return error.message if hint is None else f"{error.message}; {hint}"


def family(path: str) -> str | None:
    """v2 or v3; None: not one of Confluent's paths."""
    if path == V3_PATH or path.startswith(V3_PATH + "/"):
        return "v3"
    if any(path == own or path.startswith(own + "/") for own in V2_PATHS):
        return "v2"
    return None


@web.middleware
async def confluent_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors of these paths in their own form; of others they pass through."""
    found = family(request.path)
    if found is None:
        return await handler(request)
    headers = {}
    try:
        return await handler(request)
    except ApiError as raised:
        error = raised
    except web.HTTPRequestEntityTooLarge:
        error = ApiError(413, "the request body is too large", hint="send fewer records at once")
    except web.HTTPException as raised:
        error = ApiError(raised.status, in_words(raised, request))
        headers = kept_headers(raised.headers)
    except Exception:
        # Our mistake: the log has the traceback, the client a plain sentence.
        log.exception("%s %s failed", request.method, request.path)
        error = ApiError(500, "internal error; the node's log says more")
    status, document = error_answer(error, v3=found == "v3")
    if status == 503:
        headers["Retry-After"] = "1"
    return web.Response(
        status=status,
        body=orjson.dumps(document) + b"\n",
        content_type=JSON_TYPE if found == "v3" else error_type(request, V2_TYPE),
        headers=headers,
    )
