"""The paths of v2. Each is also taken with a slash at its end, as some clients write it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from aiohttp import web

from ..guards import Handler
from ..keys import LEADERS, NODE, RNG
from . import consumers, produce, topics
from .calls import PART
from .consumers import FINDING, INSTANCES
from .finding import Finding
from .instances import Instances
from .performing import answer_call

_INSTANCE = "/consumers/{group}/instances/{instance}"

ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", topics.root),
    ("GET", "/brokers", topics.brokers),
    ("GET", "/topics", topics.list_topics),
    ("POST", "/admin/topics", topics.create_topic),
    ("GET", "/topics/{topic}", topics.describe_topic),
    ("POST", "/topics/{topic}", produce.produce),
    ("GET", "/topics/{topic}/partitions", topics.list_partitions),
    ("GET", "/topics/{topic}/partitions/{partition}", topics.describe_partition),
    ("POST", "/topics/{topic}/partitions/{partition}", produce.produce),
    ("GET", "/topics/{topic}/partitions/{partition}/offsets", topics.partition_offsets),
    ("POST", "/consumers/{group}", consumers.create),
    ("DELETE", _INSTANCE, consumers.delete),
    ("POST", _INSTANCE + "/subscription", consumers.subscribe),
    ("GET", _INSTANCE + "/subscription", consumers.subscription),
    ("DELETE", _INSTANCE + "/subscription", consumers.unsubscribe),
    ("POST", _INSTANCE + "/assignments", consumers.assign),
    ("GET", _INSTANCE + "/assignments", consumers.assignment),
    ("GET", _INSTANCE + "/records", consumers.poll),
    ("POST", _INSTANCE + "/offsets", consumers.commit),
    ("GET", _INSTANCE + "/offsets", consumers.committed),
    ("POST", _INSTANCE + "/positions", consumers.seek),
    ("POST", _INSTANCE + "/positions/beginning", consumers.seek_to_beginning),
    ("POST", _INSTANCE + "/positions/end", consumers.seek_to_end),
)


def install(app: web.Application) -> None:
    """Instances live as long as the listener."""
    for method, path, handler in ROUTES:
        slashed = path if path == "/" else path + "{_:/?}"
        if method == "GET":
            app.router.add_get(slashed, handler)  # and HEAD
        else:
            app.router.add_route(method, slashed, handler)
    instances = Instances(app[NODE], app[LEADERS], app[RNG])
    app[INSTANCES] = instances
    app[FINDING] = Finding(app[NODE], instances)
    app.cleanup_ctx.append(_living)


async def _living(app: web.Application) -> AsyncIterator[None]:
    instances = app[INSTANCES]
    app[NODE].serve_calls(PART, partial(answer_call, instances))
    instances.start()
    yield
    await instances.stop()
