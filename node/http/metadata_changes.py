"""GET /api/v1/metadata: what changed after an index, waited for if nothing has.

A node remembers the last changes by name; what they are now is to be read from the cluster, topics
and nodes themselves. Whoever asks from further back is told so (`compacted`) and reads everything
anew.
"""

from __future__ import annotations

from aiohttp import web

from . import query
from .guards import json_response
from .keys import NODE
from .while_connected import while_connected

LONGEST_WAIT_MS = 60_000
_INT64_MAX = 2**63 - 1


async def metadata(request: web.Request) -> web.Response:
    """Without `since`: the index to begin with."""
    history = request.app[NODE].metadata_history()
    since = query.whole_number(request.query, "since", largest=_INT64_MAX)
    wait_ms = query.duration_ms(request.query, "wait", largest_ms=LONGEST_WAIT_MS)
    if since is None:
        return json_response(history.after(history.index))
    found = await while_connected(request, history.wait_after(since, wait_ms / 1000))
    return json_response(found)
