"""The declarations against Kafka's own schemas, where those are at hand: every field of every
version, also of the records and versions that no other codec knows."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from logboat.wire import (
    ZERO_UUID,
    CoordinatorKey,
    Message,
    Struct,
    all_apis,
    api,
    control_records,
)
from logboat.wire.frame import RequestHeader, ResponseHeader
from logboat.wire.messages.default_principal import DefaultPrincipalData
from logboat.wire.schema import Field, Versions
from tests.wire.message_samples import coordinator_records

DATA = Path(os.environ.get("LOGBOAT_TEST_DATA", Path(__file__).parents[2] / ".." / "shared"))
SCHEMAS = sorted((DATA / "kafka-messages").glob("*.json"))

RECORDS = coordinator_records()
HEADERS: dict[str, type[Message]] = {
    "RequestHeader": RequestHeader,
    "ResponseHeader": ResponseHeader,
}


def load(path: Path) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(re.sub(r"(?m)^\s*//.*$", "", path.read_text()))
    return schema


def declared(schema: dict[str, Any]) -> type[Message] | None:
    name = schema["name"]
    if schema["type"] in ("request", "response"):
        known = api(schema["apiKey"])
        return known.request if schema["type"] == "request" else known.response
    if schema["type"] == "metadata":
        return None  # records of Kafka's own metadata log, which we do not keep
    if name == "DefaultPrincipalData":
        return DefaultPrincipalData
    message: type[Message] = (
        HEADERS.get(name) or RECORDS.get(name) or getattr(control_records, name)
    )
    return message


@pytest.mark.skipif(not SCHEMAS, reason="kafka-messages is not at hand")
@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_a_declaration_says_what_the_schema_says(path: Path) -> None:
    schema = load(path)
    message = declared(schema)
    if message is None:
        return
    assert message.__versions__ == Versions.parse(schema["validVersions"])
    flexible = Versions.parse(schema["flexibleVersions"])
    commons = {common["name"]: common["fields"] for common in schema.get("commonStructs", [])}
    for version in range(message.__versions__.lowest, message.__versions__.highest + 1):
        assert (version in message.__flexible__) == (version in flexible)
        assert described(message, version) == expected(schema["fields"], commons, version)
    if issubclass(message, CoordinatorKey):
        assert message.record_type == schema["apiKey"]


@pytest.mark.skipif(not SCHEMAS, reason="kafka-messages is not at hand")
def test_nothing_is_declared_that_has_no_schema() -> None:
    names = {load(path)["name"] for path in SCHEMAS}
    for known in all_apis():
        assert {known.request.__name__, known.response.__name__} <= names


Description = list[tuple[str, str, bool, int | None, Any, bool, Any]]


def described(struct: type[Struct], version: int) -> Description:
    return [
        (
            field.name,
            kind_of(field),
            version in field.nullable,
            field.tag,
            default_of(field),
            field.ignorable,
            described(inner, version) if (inner := inner_of(field)) else None,
        )
        for field in struct.__fields__
        if field.carried_in(version)
    ]


def inner_of(field: Field) -> type[Struct] | None:
    return field.element.struct if field.element is not None else field.struct


def kind_of(field: Field) -> str:
    return f"[]{field.element.kind}" if field.element is not None else field.kind


def default_of(field: Field) -> Any:
    return "" if field.default == ZERO_UUID else field.default


def expected(
    fields: list[dict[str, Any]], commons: dict[str, list[dict[str, Any]]], version: int
) -> Description:
    found: Description = []
    for field in fields:
        versions = field.get("versions") or field["taggedVersions"]
        if version not in Versions.parse(versions):
            continue
        type_ = field["type"].removeprefix("[]")
        array = "[]" if field["type"].startswith("[]") else ""
        inner = field.get("fields") or commons.get(type_)
        found.append(
            (
                names_of(field["name"]),
                array + ("struct" if inner else type_),
                version in Versions.parse(field.get("nullableVersions", "none")),
                field.get("tag"),
                expected_default(field, array, type_, inner is not None),
                field.get("ignorable", False),
                expected(inner, commons, version) if inner else None,
            )
        )
    return found


def names_of(name: str) -> str:
    special = {"RequestApiKey": "api_key", "RequestApiVersion": "api_version"}
    name = special.get(name, name).replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def expected_default(field: dict[str, Any], array: str, type_: str, struct: bool) -> Any:
    default = field.get("default", "")
    if default in (None, "null") or (struct and not array) or type_ == "records":
        return None
    if array:
        return []
    if type_ == "string":
        return default
    if type_ == "bytes":
        return b""
    if type_ == "bool":
        return default in (True, "true")
    if type_ == "uuid":
        return ""
    return float(default or 0) if type_ == "float64" else int(str(default or 0), 0)
