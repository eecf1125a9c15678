"""How much work the HTTP API takes on at once: what does not fit is refused, never queued."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import ApiError

MAX_REQUESTS = 256
"""Requests in work, health checks excepted."""

MAX_BYTES = 64 << 20
"""Request bodies being read and record batches being answered, together."""


class Admission:
    """Counts requests and bytes in work."""

    def __init__(self, max_requests: int = MAX_REQUESTS, max_bytes: int = MAX_BYTES) -> None:
        self._max_requests = max_requests
        self._max_bytes = max_bytes
        self._requests = 0
        self._bytes = 0

    @contextmanager
    def request(self) -> Iterator[None]:
        """Raises ApiError 503 when as many requests as allowed are in work."""
        if self._requests >= self._max_requests:
            raise _busy(f"{self._requests} requests are in work")
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1

    @contextmanager
    def memory(self, size_bytes: int) -> Iterator[None]:
        """Raises ApiError 503 when that much memory is not to be had now. A single request larger
        than everything is let in alone: refusing it for ever would be no answer."""
        if self._bytes and self._bytes + size_bytes > self._max_bytes:
            raise _busy(f"{self._bytes} bytes are in work")
        self._bytes += size_bytes
        try:
            yield
        finally:
            self._bytes -= size_bytes


def _busy(what: str) -> ApiError:
    return ApiError(503, f"the node is busy: {what}", retriable=True, hint="try again in a second")
