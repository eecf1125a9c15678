"""kio, an independent codec generated from Kafka's own schemas, says the same bytes.

Fields are matched by their order: both sides list what a version carries in the order of the wire.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import random
from functools import cache
from typing import Any

import kio.index as kio_index
import kio.schema.errors as kio_errors
import kio.schema.index as kio_schemas
import pytest
from kio.serial import entity_reader, entity_writer
from kio.serial._implicit_defaults import get_tagged_field_default
from kio.serial._introspect import (
    EntityField,
    EntityTupleField,
    classify_field,
    get_field_tag,
    is_optional,
)
from kio.static.constants import EntityType
from kio.static.primitive import i32Timedelta, i64Timedelta

from logboat.wire import ZERO_UUID, ErrorCode, Message, Struct, all_apis
from logboat.wire.control_records import (
    ControlRecordTypeSchema,
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from logboat.wire.coordinator_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from logboat.wire.frame import RequestHeader, ResponseHeader
from logboat.wire.messages.default_principal import DefaultPrincipalData
from logboat.wire.schema import Field
from tests.wire.message_samples import sample

SAMPLES = 4

KIO_LACKS = {
    "ApiVersions": {5},
    "DeleteGroups": {3},
    "StreamsGroupDescribe": {1},
    "StreamsGroupHeartbeat": {1},
    "StreamsGroupTopologyDescriptionUpdate": {0},
    "TxnOffsetCommit": {6},
    "UnregisterController": {0},
}
"""Versions of Kafka 4.4 that this release of kio does not know; they round-trip in
`test_messages_round_trip.py`."""

OTHERS: list[tuple[str, EntityType, type[Message]]] = [
    ("request_header", EntityType.header, RequestHeader),
    ("response_header", EntityType.header, ResponseHeader),
    ("consumer_protocol_assignment", EntityType.data, ConsumerProtocolAssignment),
    ("consumer_protocol_subscription", EntityType.data, ConsumerProtocolSubscription),
    ("control_record_type_schema", EntityType.data, ControlRecordTypeSchema),
    ("default_principal_data", EntityType.data, DefaultPrincipalData),
    ("end_txn_marker", EntityType.data, EndTxnMarker),
    ("k_raft_version_record", EntityType.data, KRaftVersionRecord),
    ("leader_change_message", EntityType.data, LeaderChangeMessage),
    ("snapshot_footer_record", EntityType.data, SnapshotFooterRecord),
    ("snapshot_header_record", EntityType.data, SnapshotHeaderRecord),
    ("voters_record", EntityType.data, VotersRecord),
]


def known_to_kio(name: str) -> list[int]:
    return sorted(kio_schemas.schema_name_map.get(name, {}))


def test_the_list_of_what_kio_lacks_is_exact() -> None:
    lacking = {}
    for api in all_apis():
        ours = set(range(api.min_version, api.max_version + 1))
        missing = ours - set(known_to_kio(kio_schemas.api_key_map.get(api.key, "")))
        if missing:
            lacking[api.name] = missing
    assert lacking == KIO_LACKS


@pytest.mark.parametrize("api", all_apis(), ids=lambda api: api.name)
def test_requests_and_responses_have_the_bytes_that_kio_says(api: Any) -> None:
    for version in range(api.min_version, api.max_version + 1):
        if version in KIO_LACKS.get(api.name, ()):
            continue
        name = kio_schemas.api_key_map[api.key]
        for kind, ours in (
            (EntityType.request, api.request),
            (EntityType.response, api.response),
        ):
            compare(ours, version, kio_index.load_entity_schema(name, version, kind))


@pytest.mark.parametrize(("name", "kind", "ours"), OTHERS, ids=[name for name, _, _ in OTHERS])
def test_headers_and_records_have_the_bytes_that_kio_says(
    name: str, kind: Any, ours: type[Message]
) -> None:
    compared = 0
    for version in known_to_kio(name):
        if version in ours.__versions__:
            compare(ours, version, kio_index.load_entity_schema(name, version, kind))
            compared += 1
    assert compared


def compare(ours: type[Message], version: int, theirs: Any) -> None:
    read, write = entity_reader(theirs), entity_writer(theirs)
    shape = shape_of(ours, version, theirs)
    for seed in range(SAMPLES):
        rng = random.Random(f"{ours.__name__} {version} {seed}")
        message = sample(ours, version, rng, lambda path, _, r: narrow(shape.get(path), r))
        buffer = io.BytesIO()
        write(buffer, to_kio(message, version, theirs))
        expected = buffer.getvalue()
        assert b"".join(message.encode(version)) == expected, (message, version)
        assert ours.decode(expected, version) == message
        entity, size = read(expected, 0)
        assert size == len(expected)
        assert entity == to_kio(message, version, theirs)


def carried(struct: type[Struct], version: int) -> list[Field]:
    return [field for field in struct.__fields__ if field.carried_in(version)]


def shape_of(struct: type[Struct], version: int, theirs: Any, path: str = "") -> dict[str, str]:
    """Which type kio gives each of our primitive fields, by path; checks the tags on the way."""
    path = path or struct.__name__
    shape: dict[str, str] = {}
    fields = carried(struct, version)
    their_fields = dataclasses.fields(theirs)
    assert len(fields) == len(their_fields), (path, version)
    for ours, field in zip(fields, their_fields, strict=True):
        tag = get_field_tag(field)
        assert ours.tag == tag, (path, ours.name)
        nested = ours.element.struct if ours.element is not None else ours.struct
        if nested is not None:
            inner = classify_field(field).type_
            shape |= shape_of(nested, version, inner, f"{path}.{ours.name}")
        else:
            shape[f"{path}.{ours.name}"] = field.metadata["kafka_type"]
    return shape


@cache
def kio_error_codes() -> list[int]:
    return [code.value for code in kio_errors.ErrorCode if code.value in set(ErrorCode)]


def narrow(kafka_type: str | None, rng: random.Random) -> Any:
    """Values that kio's richer types can hold; None where any will do."""
    if kafka_type == "error_code":
        return rng.choice(kio_error_codes())
    if kafka_type == "datetime_i64":
        return rng.choice([0, 1, 1_760_000_000_123, rng.randrange(2**40)])
    if kafka_type in ("timedelta_i32", "timedelta_i64"):
        return rng.choice([0, 1, 2**31 - 1, -1, rng.randrange(2**31)])
    return None


def to_kio(value: Struct, version: int, theirs: Any) -> Any:
    values = {}
    fields = carried(type(value), version)
    for ours, field in zip(fields, dataclasses.fields(theirs), strict=True):
        values[field.name] = field_to_kio(getattr(value, ours.name), ours, version, field)
    return theirs(**values)


def field_to_kio(value: Any, ours: Field, version: int, field: Any) -> Any:
    kind = classify_field(field)
    if value is None:
        if ours.struct is not None and version not in ours.nullable:
            return get_tagged_field_default(field)  # a tagged struct that is not sent
        return None
    if isinstance(kind, EntityTupleField):
        return tuple(to_kio(item, version, kind.type_) for item in value)
    if isinstance(kind, EntityField):
        return to_kio(value, version, kind.type_)
    kafka_type = field.metadata["kafka_type"]
    if kafka_type == "datetime_i64" and value == -1 and is_optional(field):
        return None
    if ours.element is not None:
        return tuple(primitive_to_kio(item, kafka_type) for item in value)
    return primitive_to_kio(value, kafka_type)


def primitive_to_kio(value: Any, kafka_type: str) -> Any:
    milliseconds = datetime.timedelta(milliseconds=1)
    if kafka_type == "error_code":
        return kio_errors.ErrorCode(value)
    if kafka_type == "uuid":
        return None if value == ZERO_UUID else value
    if kafka_type == "records":
        return bytes(value)
    if kafka_type == "timedelta_i32":
        return i32Timedelta.parse(value * milliseconds)
    if kafka_type == "timedelta_i64":
        return i64Timedelta.parse(value * milliseconds)
    if kafka_type == "datetime_i64":
        return datetime.datetime.fromtimestamp(0, datetime.UTC) + value * milliseconds
    return value
