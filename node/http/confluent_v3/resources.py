"""Objects and lists as v3 says them: `kind`, `metadata`, and links to what belongs to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from aiohttp import web

from ....metadata.image import TopicImage
from ....wire import ErrorCode
from ..bodies import read_body, worked
from ..errors import ApiError, from_kafka, no_partition
from ..guards import json_response
from ..keys import NODE
from ..media import JSON_TYPE, content_type, require_accept
from ..strict_json import NotJson, exact

Document = dict[str, Any]

OBJECT_BYTES = 500
"""How much work an object is, in bytes of JSON (RULES F1)."""


class Resources:
    """Of one request: links name the address that its client used.

    Raises ApiError 404 when the path names another cluster, 406 when it wants no JSON.
    """

    def __init__(self, request: web.Request) -> None:
        require_accept(request, JSON_TYPE)
        self.node = request.app[NODE]
        self.image = self.node.image()
        self.cluster_id = self.image.cluster_id
        self._base = f"{request.scheme}://{request.host}/v3/clusters"
        asked = request.match_info.get("cluster", self.cluster_id)
        if asked != self.cluster_id:
            raise ApiError(404, f"there is no cluster {asked[:100]!r} here")

    def url(self, *segments: object) -> str:
        """Below the cluster; without segments the cluster itself."""
        path = (self.cluster_id, *map(str, segments))
        return "/".join((self._base, *(quote(segment, safe="-") for segment in path)))

    def link(self, *segments: object) -> Document:
        return {"related": self.url(*segments)}

    def resource(
        self, kind: str, segments: Iterable[object], names: Iterable[object], **fields: Any
    ) -> Document:
        """`names`: pairs of the resource name, such as "topic=orders"."""
        crn = "/".join(f"{name}" for name in (f"kafka={self.cluster_id}", *names))
        metadata = {"self": self.url(*segments), "resource_name": f"crn:///{crn}"}
        return {"kind": kind, "metadata": metadata, "cluster_id": self.cluster_id, **fields}

    def collection(self, kind: str, segments: Iterable[object], data: list[Document]) -> Document:
        """Always whole: there are no further pages."""
        metadata = {"self": self.url(*segments), "next": None}
        return {"kind": kind, "metadata": metadata, "data": data}

    def clusters(self, data: list[Document]) -> Document:
        metadata = {"self": self._base, "next": None}
        return {"kind": "KafkaClusterList", "metadata": metadata, "data": data}

    def topic(self, request: web.Request) -> TopicImage:
        """The one that the path names. Raises ApiError 404, 40403."""
        name = request.match_info["topic"]
        topic = self.image.topics.get(name)
        if topic is None:
            raise from_kafka(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name[:249]!r}"
            )
        return topic

    def partition(self, request: web.Request, topic: TopicImage) -> int:
        """Raises ApiError 404, 40403."""
        text = request.match_info["partition"]
        number = number_in_path(text, "partition")
        if number >= len(topic.partitions):
            raise no_partition(topic.name, number, len(topic.partitions))
        return number

    def broker(self, request: web.Request) -> int:
        """Raises ApiError 404."""
        number = number_in_path(request.match_info["broker"], "broker")
        if number not in self.image.brokers:
            raise ApiError(404, f"there is no broker {number}")
        return number


def number_in_path(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        raise ApiError(404, f"{text[:40]!r} is no {what} id")
    return int(text)


def answer(document: Document, *, status: int = 200, location: str | None = None) -> web.Response:
    headers = None if location is None else {"Location": location}
    return json_response(document, status=status, headers=headers)


async def listed(
    resources: Resources,
    kind: str,
    segments: Iterable[object],
    count: int,
    make: Callable[[], list[Document]],
) -> web.Response:
    """A list of what `make` makes, beside the loop when that looks at many things (RULES F1)."""
    return await worked(
        OBJECT_BYTES * count, lambda: answer(resources.collection(kind, segments, make()))
    )


async def object_in_body(request: web.Request) -> Document:
    """Raises ApiError 400 (v3's documents know no 422 but for records) or 415."""
    if content_type(request) != JSON_TYPE:
        given = request.headers.get("Content-Type")
        raise ApiError(
            415,
            "Content-Type is missing" if given is None else f"Content-Type is {given[:100]!r}",
            hint=f"send {JSON_TYPE}",
        )
    try:
        document = exact(await read_body(request))
    except NotJson as error:
        raise ApiError(400, f"the body {error}") from None
    if not isinstance(document, dict):
        raise ApiError(400, "the body is no JSON object")
    return document


def refuse_keys(document: Document, *known: str, what: str = "the body") -> None:
    """A misspelt key is an error, not a default. Raises ApiError 400."""
    unknown = sorted(document.keys() - set(known))
    if unknown:
        raise ApiError(
            400, f"unknown key {unknown[0][:80]!r} in {what}; known are {', '.join(known)}"
        )
