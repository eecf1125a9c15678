"""Where handlers find what they serve, typed: aiohttp keeps it per application, not per module."""

from __future__ import annotations

from collections import Counter
from random import Random

from aiohttp import web

from .admission import Admission, Lease
from .idempotency import IdempotencyKeys
from .leaders import Leaders
from .open_requests import OpenRequests
from .ports import HttpNode

LEADERS = web.AppKey("leaders", Leaders)
NODE = web.AppKey("node", HttpNode)
RNG = web.AppKey("rng", Random)
ADMISSION = web.AppKey("admission", Admission)
IDEMPOTENCY = web.AppKey("idempotency", IdempotencyKeys)
LEASE = web.RequestKey("lease", Lease)
"""Of each request but health checks."""
REQUESTS = web.AppKey("requests", Counter[tuple[str, int]])
"""Answered HTTP requests, by method and status."""
OPEN = web.AppKey("open", OpenRequests)
