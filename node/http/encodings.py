"""How keys and values, which are bytes, are said in JSON. The caller names the encoding: a guess
would one day turn somebody's bytes into other bytes.

========  =========================================  ==========================
encoding  in                                         out
========  =========================================  ==========================
string    a JSON string, stored as UTF-8             the string
json      any JSON value, stored as compact JSON     the value
base64    a JSON string of base64                    the string
========  =========================================  ==========================

null is a null key, or a tombstone, in every encoding. Bytes that the wanted encoding cannot say
come out as base64, and the record says so: JSON text with line breaks among them.
"""

from __future__ import annotations

import base64
import binascii
from enum import StrEnum
from typing import Any

import orjson

from .errors import ApiError
from .strict_json import same_text


class Encoding(StrEnum):
    STRING = "string"
    JSON = "json"
    BASE64 = "base64"

    @staticmethod
    def named(name: str, parameter: str) -> Encoding:
        try:
            return Encoding(name)
        except ValueError:
            raise ApiError(
                400, f"{parameter} is {name!r}; it takes string, json or base64"
            ) from None


def to_bytes(value: Any, encoding: Encoding, *, record: int, field: str) -> bytes | None:
    """Raises ApiError 422 naming the record and the field when the value does not fit."""
    if value is None:
        return None
    if encoding is Encoding.JSON:
        try:
            return orjson.dumps(value)
        except orjson.JSONEncodeError:
            raise ApiError(422, f"record {record}: {field} is nested too deeply") from None
    if not isinstance(value, str):
        raise ApiError(
            422,
            f"record {record}: {field} is no string, but its encoding is {encoding}",
            hint=f"{field}_encoding=json stores any JSON value",
        )
    if encoding is Encoding.STRING:
        return value.encode("utf-8")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ApiError(422, f"record {record}: {field} is no valid base64") from None


def from_bytes(data: bytes | None, encoding: Encoding) -> tuple[Any, Encoding]:
    """The JSON value, and the encoding it is really in."""
    if data is None:
        return None, encoding
    try:
        if encoding is Encoding.STRING:
            return data.decode("utf-8"), encoding
        if encoding is Encoding.JSON and (text := same_text(data)) is not None:
            return text, encoding
    except UnicodeDecodeError:
        pass
    return base64.b64encode(data).decode("ascii"), Encoding.BASE64
