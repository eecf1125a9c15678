"""Media types: what a body is, and what an answer may be (RFC 9110, sections 8.3 and 12.5).

They are compared without regard to case and parameters. A missing Accept takes anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from ...seam import frozen
from .errors import ApiError

JSON_TYPE = "application/json"
V2_TYPE = "application/vnd.kafka.v2+json"
_V2_TYPES = frozenset(
    {V2_TYPE, *(f"application/vnd.kafka.{name}.v2+json" for name in ("binary", "json", "text"))}
)


@frozen
class Accepted:
    """One range of an Accept header; `*` stands for anything."""

    kind: str
    subtype: str
    quality: float

    def covers(self, media_type: str) -> bool:
        kind, _, subtype = media_type.partition("/")
        return self.kind in ("*", kind) and self.subtype in ("*", subtype)

    @property
    def precision(self) -> int:
        return (self.kind != "*") + (self.subtype != "*")


def content_type(request: web.Request) -> str | None:
    """Of the body, in lower case; None when it is not said. Raises ApiError 415."""
    given = request.headers.getall("Content-Type", [])
    if len(given) > 1:
        raise ApiError(415, "the request has more than one Content-Type")
    named = given[0].partition(";")[0].strip().lower() if given else ""
    return named or None


def accept(request: web.Request, offers: Sequence[str]) -> str | None:
    """The one of `offers` that the client likes best, the first of equals; None: none of them."""
    ranges = _ranges(request)
    if not ranges:
        return offers[0]
    best, best_quality = None, 0.0
    for offer in offers:
        covering = [one for one in ranges if one.covers(offer)]
        if not covering:
            continue
        quality = max(covering, key=lambda one: one.precision).quality
        if quality > best_quality:
            best, best_quality = offer, quality
    return best


def require_accept(request: web.Request, *offers: str) -> str:
    """As `accept`. Raises ApiError 406."""
    found = accept(request, offers)
    if found is None:
        asked = ", ".join(request.headers.getall("Accept"))
        raise ApiError(406, f"Accept is {asked[:200]!r}; the answer can be {' or '.join(offers)}")
    return found


def error_type(request: web.Request, default: str) -> str:
    """What an error is said in: whichever JSON the client asked for by name, else `default`."""
    for one in _ranges(request):
        named = f"{one.kind}/{one.subtype}"
        if one.quality > 0 and (named == JSON_TYPE or named in _V2_TYPES):
            return named
    return default


def _ranges(request: web.Request) -> list[Accepted]:
    """What cannot be read is taken for not said."""
    found = []
    for part in ",".join(request.headers.getall("Accept", [])).split(","):
        named, *parameters = part.split(";")
        kind, slash, subtype = named.strip().lower().partition("/")
        if slash and kind and subtype and subtype.isprintable() and " " not in kind + subtype:
            found.append(Accepted(kind, subtype, _quality(parameters)))
    return found


def _quality(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 1.0
    return 1.0
