"""Headers and bodies as they travel: cases P01 (unknown versions) and P03 (odd headers)."""

from __future__ import annotations

import pytest

from logboat.wire import (
    ApiKey,
    DecodeError,
    EncodeError,
    Message,
    RequestHeader,
    all_apis,
    api,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from logboat.wire.frame import ResponseHeader
from logboat.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from logboat.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from logboat.wire.messages.metadata import MetadataRequest, MetadataResponse
from logboat.wire.messages.produce import ProduceRequest


def header(key: int, version: int, client_id: str | None = "client") -> RequestHeader:
    return RequestHeader(api_key=key, api_version=version, correlation_id=77, client_id=client_id)


def test_a_classic_request_has_these_bytes() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    frame = b"".join(encode_request(header(ApiKey.HEARTBEAT, 0, "c"), request))
    assert frame.hex(" ") == "00 0c 00 00 00 00 00 4d 00 01 63 00 01 67 00 00 00 01 00 01 6d"
    assert decode_request(frame) == (header(ApiKey.HEARTBEAT, 0, "c"), request)


def test_a_flexible_request_keeps_the_old_length_of_its_client_id() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    frame = b"".join(encode_request(header(ApiKey.HEARTBEAT, 4, "c"), request))
    assert frame.hex(" ") == ("00 0c 00 04 00 00 00 4d 00 01 63 00 02 67 00 00 00 01 02 6d 00 00")
    assert decode_request(frame) == (header(ApiKey.HEARTBEAT, 4, "c"), request)


@pytest.mark.parametrize("client_id", [None, "", "x" * 300, "naïve-客户" * 20])
def test_any_client_id_is_read_in_flexible_headers(client_id: str | None) -> None:
    for key, version, request in (
        (ApiKey.API_VERSIONS, 3, ApiVersionsRequest(client_software_name="n")),
        (ApiKey.METADATA, 9, MetadataRequest(topics=None)),
    ):
        frame = b"".join(encode_request(header(key, version, client_id), request))
        assert decode_request(frame) == (header(key, version, client_id), request)


def test_unknown_tags_in_a_header_are_skipped() -> None:
    plain = b"".join(header(ApiKey.METADATA, 9, None).encode(2))
    assert plain[-1:] == b"\0"
    tagged = plain[:-1] + b"\x02" + b"\x4d\x03abc" + b"\xa8\x46\x00"
    body = b"".join(MetadataRequest(topics=None).encode(9))
    assert decode_request(tagged + body) == (
        header(ApiKey.METADATA, 9, None),
        MetadataRequest(topics=None),
    )


@pytest.mark.parametrize("version", [6, 32767, -1])
def test_an_unknown_version_still_gives_its_correlation_id(version: int) -> None:
    frame = b"".join(header(ApiKey.API_VERSIONS, version).encode(2)) + b"body of the future"
    read, _ = decode_request_header(frame)
    assert (read.api_key, read.api_version, read.correlation_id) == (18, version, 77)
    assert not api(read.api_key).supports(read.api_version)
    with pytest.raises(DecodeError, match="no version"):
        decode_request(frame)


def test_the_answer_to_an_unknown_version_of_api_versions_is_a_v0_body() -> None:
    asked = header(ApiKey.API_VERSIONS, 32767)
    row = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=5)
    answer = ApiVersionsResponse(error_code=35, api_keys=[row])
    asked.api_version = 0
    frame = b"".join(encode_response(asked, answer))
    assert frame.hex(" ") == "00 00 00 4d 00 23 00 00 00 01 00 12 00 00 00 05"


def test_an_unknown_key_still_gives_its_correlation_id() -> None:
    read, _ = decode_request_header(b"\x03\xe8\0\x01\0\0\0\x4d" + b"\xff")
    assert (read.api_key, read.api_version, read.correlation_id) == (1000, 1, 77)
    with pytest.raises(DecodeError, match="unknown API key"):
        decode_request(b"\x03\xe8\0\x01\0\0\0\x4d\xff\xff")


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"GET / HT"[:7], id="seven bytes"),
        pytest.param(b"\0\x12\0\x03\0\0\0\x4d", id="no client id"),
        pytest.param(b"\0\x12\0\x03\0\0\0\x4d\0\x05abc", id="client id cut"),
        pytest.param(b"\0\x12\0\x03\0\0\0\x4d\xff\xff", id="no tags"),
        pytest.param(b"\0\x12\0\x03\0\0\0\x4d\xff\xff\x01\x05\x09", id="tag past the end"),
        pytest.param(b"\0\x12\0\x03\0\0\0\x4d\0\x01\xff\0", id="client id not UTF-8"),
    ],
)
def test_a_broken_header_is_a_decode_error(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_request_header(frame)


def test_the_response_to_api_versions_has_the_oldest_header() -> None:
    for version in range(6):
        asked = header(ApiKey.API_VERSIONS, version)
        frame = b"".join(encode_response(asked, ApiVersionsResponse()))
        assert frame[4:] == b"".join(ApiVersionsResponse().encode(version))
        assert decode_response(asked, frame) == ApiVersionsResponse()


def test_a_flexible_response_has_tags_in_its_header() -> None:
    for version, prefix in ((3, "00 00 00 4d"), (4, "00 00 00 4d 00")):
        asked = header(ApiKey.HEARTBEAT, version)
        frame = b"".join(encode_response(asked, HeartbeatResponse(error_code=27)))
        assert frame.hex(" ").startswith(prefix + " 00 00 00 00 00 1b")
        assert decode_response(asked, frame) == HeartbeatResponse(error_code=27)
    tagged = b"\0\0\0\x4d\x01\x4d\x03abc" + b"".join(HeartbeatResponse().encode(4))
    assert decode_response(header(ApiKey.HEARTBEAT, 4), tagged) == HeartbeatResponse()


def test_an_answer_to_another_request_is_refused() -> None:
    asked = header(ApiKey.HEARTBEAT, 4)
    frame = b"".join(encode_response(asked, HeartbeatResponse()))
    asked.correlation_id = 78
    with pytest.raises(DecodeError, match="answer to request 77"):
        decode_response(asked, frame)


def test_bytes_behind_a_message_are_ignored_as_kafka_does() -> None:
    asked = header(ApiKey.METADATA, 9)
    request = b"".join(encode_request(asked, MetadataRequest(topics=None)))
    response = b"".join(encode_response(asked, MetadataResponse()))
    assert decode_request(request + b"\0") == (asked, MetadataRequest(topics=None))
    assert decode_response(asked, response + b"\0") == MetadataResponse()


def test_the_header_of_a_large_frame_does_not_copy_it() -> None:
    partition = ProduceRequest.PartitionProduceData(index=0, records=bytes(1000))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    parts = encode_request(header(ApiKey.PRODUCE, 9), ProduceRequest(topic_data=[topic]))
    frame = memoryview(bytearray(b"".join(parts)))
    read, position = decode_request_header(frame)
    assert read == header(ApiKey.PRODUCE, 9)
    request, end = ProduceRequest.decode_from(frame, position, 9)
    assert end == len(frame)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame.obj


def test_every_api_round_trips_in_a_frame() -> None:
    for known in all_apis():
        for version in range(known.min_version, known.max_version + 1):
            asked = header(known.key, version)
            request, response = known.request(), known.response()
            assert decode_request(b"".join(encode_request(asked, request))) == (asked, request)
            frame = b"".join(encode_response(asked, response))
            assert decode_response(asked, frame) == response
            size = 5 if known.response_header_version(version) else 4
            assert frame[size:] == b"".join(response.encode(version))


def test_what_cannot_be_said_is_refused() -> None:
    with pytest.raises(EncodeError):
        encode_request(header(ApiKey.HEARTBEAT, 9), HeartbeatRequest())
    with pytest.raises(EncodeError):
        ResponseHeader(correlation_id=2**31).encode(0)
    unknown: Message = HeartbeatResponse()
    with pytest.raises(EncodeError, match="unknown API key"):
        encode_response(header(1000, 0), unknown)
