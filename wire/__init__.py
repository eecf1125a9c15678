"""Kafka's wire protocol: messages, frames, error codes, record batches, compression.

Bytes in, values out, and back; no I/O, no state, nothing of ours imported but a checksum.

* `messages/`, `coordinator_records/`, `control_records/`: the declarations (`schema.py` is their
  notation, `compiler.py` makes them fast);
* `api_keys.py`: which APIs and versions there are; `errors.py`: their error codes;
* `frame.py`: header and body of a request or response;
* `records.py`, `compression.py`: what is inside a partition.

What a node serves, and in which versions, is decided by its handlers, not here.
"""

from __future__ import annotations

from .api_keys import Api, ApiKey, all_apis, api
from .buffers import Buffer, Records
from .errors import ErrorCode
from .exceptions import DecodeError, EncodeError, WireError
from .frame import (
    BYTES_IN_ONE_STEP,
    RequestHeader,
    decode_request,
    decode_request_header,
    decode_response,
    decode_response_in_steps,
    encode_request,
    encode_request_in_steps,
    encode_response,
    encode_response_in_steps,
)
from .schema import ZERO_UUID, Message, Steps, Struct
from .versioned import CoordinatorKey, Versioned

__all__ = [
    "BYTES_IN_ONE_STEP",
    "ZERO_UUID",
    "Api",
    "ApiKey",
    "Buffer",
    "CoordinatorKey",
    "DecodeError",
    "EncodeError",
    "ErrorCode",
    "Message",
    "Records",
    "RequestHeader",
    "Steps",
    "Struct",
    "Versioned",
    "WireError",
    "all_apis",
    "api",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "decode_response_in_steps",
    "encode_request",
    "encode_request_in_steps",
    "encode_response",
    "encode_response_in_steps",
]
