"""The MAC of a frame: HMAC-SHA256 cut to 16 bytes, over buffers that are never joined.

Chosen by measurement (x86 with SHA instructions, OpenSSL 3): keyed copies of the two SHA-256
states sign a 200-byte frame in 2.1 us and bulk at 1.25 GB/s. `hmac.digest` costs 4.7 us and wants
one buffer; keyed BLAKE2b costs 1.0 us, but moves only 0.55 GB/s, and replication is mostly bulk.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from ..seam import Buffer

MAC_SIZE = 16
KEY_SIZE = 32

_BLOCK_SIZE = 64
_INNER = bytes(0x36 ^ byte for byte in range(256))
_OUTER = bytes(0x5C ^ byte for byte in range(256))


class FrameMac:
    """Signs and checks with one key (RFC 2104)."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_SIZE:
            raise ValueError(f"key of {len(key)} bytes, expected {KEY_SIZE}")
        padded = key.ljust(_BLOCK_SIZE, b"\0")
        # Hashing the padded key once and copying the state halves the cost of small frames.
        self._inner = hashlib.sha256(padded.translate(_INNER))
        self._outer = hashlib.sha256(padded.translate(_OUTER))

    def sign(self, header: Buffer, parts: Sequence[Buffer]) -> bytes:
        """MAC of the header followed by all parts."""
        inner = self._inner.copy()
        inner.update(header)
        for part in parts:
            inner.update(part)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()[:MAC_SIZE]

    def matches(self, mac: Buffer, header: Buffer, payload: Buffer) -> bool:
        """Whether `mac` belongs to these bytes; takes the same time wherever they differ."""
        return hmac.compare_digest(bytes(mac), self.sign(header, (payload,)))
