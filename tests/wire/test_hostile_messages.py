"""Whatever arrives, decoding gives a message or `DecodeError`, in memory that follows the frame."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.wire import DecodeError, Message, all_apis, decode_request
from logboat.wire.messages.api_versions import ApiVersionsRequest
from logboat.wire.messages.create_topics import CreateTopicsRequest
from logboat.wire.messages.fetch import FetchRequest
from logboat.wire.messages.list_groups import ListGroupsRequest
from logboat.wire.messages.metadata import MetadataRequest
from logboat.wire.messages.produce import ProduceRequest
from logboat.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from logboat.wire.varint import decode_signed, decode_unsigned, encode_signed, encode_unsigned
from tests.wire.message_samples import sample, versions_of

REQUESTS = [api.request for api in all_apis()]


def try_to_decode(message: type[Message], data: bytes, version: int) -> Message | None:
    try:
        return message.decode(data, version)
    except DecodeError:
        return None


@pytest.mark.parametrize("message", REQUESTS, ids=lambda message: message.__name__)
def test_a_cut_message_is_a_decode_error(message: type[Message]) -> None:
    rng = random.Random(message.__name__)
    for version in versions_of(message):
        encoded = b"".join(sample(message, version, rng).encode(version))
        for _ in range(5):
            if encoded:
                assert (
                    try_to_decode(message, encoded[: rng.randrange(len(encoded))], version) is None
                )
        assert try_to_decode(message, encoded + b"\0", version) is None


@pytest.mark.parametrize("message", REQUESTS, ids=lambda message: message.__name__)
def test_a_damaged_message_raises_nothing_but_decode_error(message: type[Message]) -> None:
    rng = random.Random(message.__name__)
    for version in versions_of(message):
        encoded = b"".join(sample(message, version, rng).encode(version))
        for _ in range(8):
            damaged = bytearray(encoded)
            for _ in range(rng.randint(1, 4)):
                if damaged:
                    damaged[rng.randrange(len(damaged))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
            try_to_decode(message, bytes(damaged), version)


@settings(deadline=None)  # other work may hold the processor
@given(api=st.sampled_from(all_apis()), version=st.integers(0, 18), data=st.binary(max_size=200))
def test_noise_raises_nothing_but_decode_error(api: object, version: int, data: bytes) -> None:
    key = api.key  # type: ignore[attr-defined]
    header = key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\1"
    try:
        decode_request(header + data)
    except DecodeError:
        return


@pytest.mark.parametrize(
    ("message", "version", "data"),
    [
        pytest.param(MetadataRequest, 1, b"\x7f\xff\xff\xff", id="array of 2**31 - 1"),
        pytest.param(MetadataRequest, 0, b"\xff\xff\xff\xfe", id="array of -2"),
        pytest.param(MetadataRequest, 9, b"\xff\xff\xff\xff\x0f", id="compact array of 2**32 - 2"),
        pytest.param(ListGroupsRequest, 4, b"\xf0\xff\xff\xff\x07", id="array of strings"),
        pytest.param(
            CreateTopicsRequest, 2, b"\0\0\0\1\0\1t\0\0\0\0\0\0\x20\0\0\0", id="array of structs"
        ),
        pytest.param(SaslAuthenticateRequest, 0, b"\x7f\xff\xff\xff", id="bytes of 2**31 - 1"),
        pytest.param(SaslAuthenticateRequest, 0, b"\x80\0\0\0", id="bytes of -2**31"),
        pytest.param(SaslAuthenticateRequest, 2, b"\xff\xff\xff\xff\xff\x01", id="overlong varint"),
        pytest.param(SaslAuthenticateRequest, 2, b"\xff\xff\xff\xff\x1f", id="33-bit varint"),
        pytest.param(ApiVersionsRequest, 3, b"\x81\x80\x02" + b"a" * 40000, id="string of 32768"),
        pytest.param(ApiVersionsRequest, 3, b"\x02\xff\x02v\0", id="not UTF-8"),
        pytest.param(ApiVersionsRequest, 3, b"\x02c\x02v\xff\xff\xff\xff\x0f", id="2**32 - 1 tags"),
        pytest.param(ApiVersionsRequest, 3, b"\x02c\x02v\x01\x05\x7f", id="tag past the end"),
        pytest.param(
            FetchRequest, 7, bytes(25) + b"\0\0\0\0" + b"\0\0\0\1\0\1t\x3f\xff\xff\xff", id="ints"
        ),
        pytest.param(ProduceRequest, 9, b"\0\0\1\0\0\0\0\xff\xff\xff\x7f", id="2**28 topics"),
    ],
)
def test_impossible_lengths_are_refused_before_anything_is_allocated(
    message: type[Message], version: int, data: bytes
) -> None:
    try_to_decode(message, data, version)  # compiles the decoder
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            message.decode(data, version)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


@settings(deadline=None)  # other work may hold the processor
@given(st.integers(0, 2**32 - 1))
def test_unsigned_varints_round_trip(value: int) -> None:
    encoded = encode_unsigned(value)
    assert decode_unsigned(b"?" + encoded, 1) == (value, 1 + len(encoded))


@settings(deadline=None)  # other work may hold the processor
@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_varints_round_trip(value: int) -> None:
    encoded = encode_signed(value)
    assert decode_signed(encoded, 0) == (value, len(encoded))


def test_varints_have_the_bytes_of_the_protocol() -> None:
    assert [encode_unsigned(value).hex() for value in (0, 127, 128, 300, 2**32 - 1)] == [
        "00",
        "7f",
        "8001",
        "ac02",
        "ffffffff0f",
    ]
    assert [encode_signed(value).hex() for value in (0, -1, 1, -64, 64, 2**63 - 1)] == [
        "00",
        "01",
        "02",
        "7f",
        "8001",
        "feffffffffffffffff01",
    ]
    with pytest.raises(DecodeError):
        decode_signed(b"\xff" * 11, 0)
    with pytest.raises(DecodeError):
        decode_signed(b"\xff" * 9 + b"\x02", 0)
