"""Where Kafka frames stand on a connection between nodes. Pure, and by its own knowledge of the
bytes (`raftlog/handshake.py`, `raftlog/channel.py`, `node/internode_frame.py`).

    dialer    u32 length, hello | u32 length, proof | sealed requests ...
    listener  u32 length, welcome                   | sealed answers, in the order of the requests

    sealed    u32 length of the payload | u64 sequence | 16 bytes MAC | payload
    request   16 bytes of origin, then a Kafka request: its API key comes first

The sequence allows no gap: a lost frame is the last one that its connection carries that way.
"""

from __future__ import annotations

import struct

LENGTH_BYTES = 4
SEAL_BYTES = 8 + 16
"""Behind the length, and not counted in it."""
ORIGIN_BYTES = 16
API_ENDS_AT = LENGTH_BYTES + SEAL_BYTES + ORIGIN_BYTES + 2
"""Of a sealed request."""

DIALER_MESSAGES = 2
LISTENER_MESSAGES = 1

HELLO = struct.Struct(">8s32si16siBB")
"""Magic, nonce, node id, directory id, wanted node id, lengths of service and of cluster id; the
two names follow."""
KAFKA = b"kafka"
"""The service that carries Kafka frames; others carry what is the quorum's."""


def service_of(hello: bytes) -> bytes:
    """What the connection is for; `hello` without its length."""
    size = HELLO.unpack_from(hello)[5]
    return hello[HELLO.size : HELLO.size + size]


def dialing_node(hello: bytes) -> int:
    return int(HELLO.unpack_from(hello)[2])


def api_of(sealed: bytes) -> int:
    """Of a sealed request, by its first API_ENDS_AT bytes."""
    return int.from_bytes(sealed[API_ENDS_AT - 2 : API_ENDS_AT], "big")
