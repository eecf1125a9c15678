"""JSON without silent changes: what would be lost is refused, numbers keep their text.

RFC 8259 leaves to each parser what to make of names that come twice and of numbers that no float
holds; the usual choices drop the one and round the other. Here a repeated name is an error, and
2^70 and 0.10 come out as they went in. orjson reads first, because it refuses lone surrogates,
infinite numbers, bombs of nesting and whatever is no UTF-8; the standard parser, which has hooks,
reads only what may need them.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain
from typing import Any

import orjson


class NotJson(ValueError):
    """The message is a sentence without its subject: "is no valid JSON: ..."."""


def exact(text: bytes) -> Any:
    """The document, with every number but plain integers as an `orjson.Fragment` of its text.

    Raises NotJson.
    """
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise NotJson(f"is no valid JSON: {error}") from None
    try:
        return json.loads(
            text.decode(),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
        )
    except RecursionError:
        raise NotJson("is nested too deeply") from None


def flat_object(text: bytes) -> Any:
    """The document; an object of strings, numbers and lists of such objects, and nothing deeper, is
    recognised as free of repeated names without reading it again. Raises NotJson.

    Every name has two quotes and every string value has; more quotes than that, those within
    strings apart, are of names that were dropped.
    """
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise NotJson(f"is no valid JSON: {error}") from None
    if type(document) is dict:
        quotes = 2 * len(document)
        for value in document.values():
            kind = type(value)
            if kind is str:
                quotes += 2
            elif kind is list:
                within = _quotes_of_flat(value)
                if within is None:
                    return exact(text)
                quotes += within
            elif kind is dict or kind is float:
                return exact(text)
        if _quotes_around(text) != quotes:
            return exact(text)
    return document


_FLAT = frozenset({str, int, bool, type(None)})


def _quotes_of_flat(items: list[Any]) -> int | None:
    """Around the names and strings of these objects; None when they are no flat objects.

    There are thousands of them in a batch, so the loop over all values is left to C.
    """
    if not all(type(item) is dict for item in items):
        return None
    kinds = Counter(map(type, chain.from_iterable(map(dict.values, items))))
    if not _FLAT.issuperset(kinds):
        return None
    return 2 * (sum(map(len, items)) + kinds[str])


def _quotes_around(text: bytes) -> int:
    """Of a valid JSON text: quotes that begin or end a string. A pair of backslashes is one of the
    string; where no pairs are left, a backslash before a quote escapes it."""
    if b"\\" not in text:
        return text.count(b'"')
    single = text.replace(b"\\\\", b"")
    return single.count(b'"') - single.count(b'\\"')


def same_text(text: bytes) -> orjson.Fragment | None:
    """A stored JSON text to be put into an answer as it is; None when it is no JSON, or spans lines
    and so would break an answer of lines."""
    if b"\n" in text or b"\r" in text:
        return None
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return orjson.Fragment(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise NotJson(f"has the name {twice[:80]!r} twice")
    return document


_LONGEST_INTEGER = 20
"""Digits and sign of what orjson writes as a number."""


def _integer(text: str) -> Any:
    if len(text) <= _LONGEST_INTEGER and text != "-0":
        value = int(text)
        if -(2**63) <= value < 2**64:
            return value
    return orjson.Fragment(text)


def _float(text: str) -> Any:
    return orjson.Fragment(text)
