"""Requests and responses as they travel: a header, then the message. The 4-byte length in front of
them belongs to the connection.

A header of a flexible version may hold tagged fields (skipped), yet its client id keeps the old
two-byte length. The response to ApiVersions always has header version 0 (KIP-511).

Bytes behind a message are ignored, as Kafka and its clients do; some peers send them (librdkafka's
own mock broker ends its Metadata responses with one too many).
"""

from __future__ import annotations

from struct import Struct as Format
from struct import error as struct_error

from .api_keys import Api, all_apis, api
from .buffers import Buffer
from .exceptions import DecodeError, EncodeError
from .schema import Message, Steps, int16, int32, string

BYTES_IN_ONE_STEP = 16 * 1024
"""Fewer hold no more items than are read in some two milliseconds (RULES F1)."""

ITEMS_IN_ONE_STEP = 500


class RequestHeader(Message, versions="1-2", flexible="2+", in_place=True):
    """What stands before every request.

    `api_key` is a plain number: it may be one that nobody knows.
    """

    api_key: int = int16()
    api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string(nullable="0+", classic=True)


class ResponseHeader(Message, versions="0-1", flexible="1+", in_place=True):
    """What stands before every response."""

    correlation_id: int = int32()


def decode_request_header(buffer: Buffer) -> tuple[RequestHeader, int]:
    """The header at the start of the buffer, and the position of the body.

    An unknown key or version still gives its number and correlation id, so that the answer can name
    them; the position is then the end of what could be read. ApiVersions must be answered in body
    version 0 with UNSUPPORTED_VERSION (case P01); any other closes the connection.

    Raises:
        DecodeError: too short for a header, or its client id or tagged fields are broken.
    """
    try:
        key, version, correlation_id = _START.unpack_from(buffer)
    except struct_error:
        raise DecodeError(f"no request header in {len(buffer)} bytes") from None
    header_version = _HEADER_VERSIONS.get((key, version))
    if header_version is not None:
        return RequestHeader.decode_from(buffer, 0, header_version)
    try:
        return RequestHeader.decode_from(buffer, 0, 1)
    except DecodeError:
        return (
            RequestHeader(api_key=key, api_version=version, correlation_id=correlation_id),
            _START.size,
        )


def decode_request(buffer: Buffer) -> tuple[RequestHeader, Message]:
    """Header and request of a known API and version.

    Raises:
        DecodeError: an unknown API or version, or no valid request of it.
    """
    header, position = decode_request_header(buffer)
    request, _ = _known(header).request.decode_from(buffer, position, header.api_version)
    return header, request


def encode_request(header: RequestHeader, request: Message) -> list[Buffer]:
    """
    Raises:
        EncodeError: the request cannot be said in `header.api_version`.
    """
    version = _to_encode(header).request_header_version(header.api_version)
    return request.encode_behind(_joined(header.encode(version)), header.api_version)


def encode_request_in_steps(header: RequestHeader, request: Message) -> Steps[list[Buffer]]:
    """As `encode_request`; in one step where the request is short."""
    if not request.holds_more_than(ITEMS_IN_ONE_STEP):
        return encode_request(header, request)
    version = _to_encode(header).request_header_version(header.api_version)
    prefix = _joined(header.encode(version))
    return (yield from request.encode_in_steps(prefix, header.api_version))


def encode_response(header: RequestHeader, response: Message) -> list[Buffer]:
    """The response to the request with that header.

    Raises:
        EncodeError: the response cannot be said in `header.api_version`.
    """
    return response.encode_behind(_response_prefix(header), header.api_version)


def encode_response_in_steps(header: RequestHeader, response: Message) -> Steps[list[Buffer]]:
    """As `encode_response`; in one step where the response is short."""
    if not response.holds_more_than(ITEMS_IN_ONE_STEP):
        return encode_response(header, response)
    return (yield from response.encode_in_steps(_response_prefix(header), header.api_version))


def _response_prefix(header: RequestHeader) -> bytearray:
    prefix = bytearray(header.correlation_id.to_bytes(4, "big", signed=True))
    if _to_encode(header).response_header_version(header.api_version):
        prefix.append(0)  # no tagged fields
    return prefix


def decode_response(header: RequestHeader, buffer: Buffer) -> Message:
    """The response to the request with that header.

    Raises:
        DecodeError: another correlation id, or no valid response of that API and version.
    """
    known, position = _answered(header, buffer)
    response, _ = known.response.decode_from(buffer, position, header.api_version)
    return response


def decode_response_in_steps(header: RequestHeader, buffer: Buffer) -> Steps[Message]:
    """As `decode_response`; in one step where the response is short."""
    if len(buffer) < BYTES_IN_ONE_STEP:
        return decode_response(header, buffer)
    known, position = _answered(header, buffer)
    steps = known.response.decode_in_steps(buffer, position, header.api_version)
    response, _ = yield from steps
    return response


def _answered(header: RequestHeader, buffer: Buffer) -> tuple[Api, int]:
    """What is answered, and where the response begins."""
    known = _known(header)
    answered, position = ResponseHeader.decode_from(
        buffer, 0, known.response_header_version(header.api_version)
    )
    if answered.correlation_id != header.correlation_id:
        raise DecodeError(
            f"answer to request {answered.correlation_id}, expected {header.correlation_id}"
        )
    return known, position


_START = Format(">hhi")

_HEADER_VERSIONS = {
    (int(known.key), version): known.request_header_version(version)
    for known in all_apis()
    for version in range(known.min_version, known.max_version + 1)
}
"""Of the requests that are known."""


def _known(header: RequestHeader) -> Api:
    try:
        return api(header.api_key)
    except KeyError:
        raise DecodeError(f"unknown API key {header.api_key}") from None


def _to_encode(header: RequestHeader) -> Api:
    try:
        return api(header.api_key)
    except KeyError:
        raise EncodeError(f"unknown API key {header.api_key}") from None


def _joined(buffers: list[Buffer]) -> bytearray:
    joined = bytearray()
    for buffer in buffers:
        joined += buffer
    return joined
