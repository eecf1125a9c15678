"""POST /api/v1/producers: an id for a producer whose batches may be sent again.

Its batches name `producer_id`, `producer_epoch` and a `base_sequence` that counts the records of
each partition from 0; what is sent again, through whichever node, is answered with where it already
stands. The last five batches of a partition are recognised.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from .errors import no_controller
from .guards import json_response
from .keys import NODE
from .ports import Unreachable

ID_SECONDS = 10.0


async def create_producer(request: web.Request) -> web.Response:
    deadline = asyncio.get_running_loop().time() + ID_SECONDS
    try:
        producer_id = await request.app[NODE].new_producer_id(deadline)
    except Unreachable:
        raise no_controller() from None
    return json_response({"producer_id": producer_id, "producer_epoch": 0}, status=201)
