"""What travels over a channel of service "kafka" between two nodes.

    request:  i64 broker epoch | i64 sequence | Kafka request (header and body)
    answer:   i64 metadata index | Kafka response

The first pair names a request that must not happen twice (RULES A5; zero sequence: no such
request). The index is what the asker's image must reach before it may pass the answer on (RULES
A6; 0: none). Answers come in the order of the requests.
"""

from __future__ import annotations

import struct

from ..wire import Buffer, DecodeError

KAFKA_SERVICE = "kafka"

_ORIGIN = struct.Struct(">qq")
_INDEX = struct.Struct(">q")


def with_origin(broker_epoch: int, sequence: int, request: list[Buffer]) -> list[Buffer]:
    return [_ORIGIN.pack(broker_epoch, sequence), *request]


def split_request(payload: memoryview) -> tuple[int, int, memoryview]:
    """(broker epoch, sequence, Kafka request). Raises DecodeError."""
    if len(payload) < _ORIGIN.size:
        raise DecodeError(f"a request of {len(payload)} bytes")
    broker_epoch, sequence = _ORIGIN.unpack_from(payload)
    return broker_epoch, sequence, payload[_ORIGIN.size :]


def with_index(index: int, response: list[Buffer]) -> list[Buffer]:
    return [_INDEX.pack(index), *response]


def split_answer(payload: memoryview) -> tuple[int, memoryview]:
    """(metadata index, Kafka response). Raises DecodeError."""
    if len(payload) < _INDEX.size:
        raise DecodeError(f"an answer of {len(payload)} bytes")
    (index,) = _INDEX.unpack_from(payload)
    return index, payload[_INDEX.size :]
