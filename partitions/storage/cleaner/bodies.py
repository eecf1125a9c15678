"""The unpacked records of a batch, and back: beside the loop where it takes long.

The codecs let go of the interpreter while they work, so a thread really takes nothing from the loop
(RULES F1). Small batches are not worth the way there.
"""

from __future__ import annotations

from ....seam import offload
from ....wire.compression import Compression, compress, decompress
from ....wire.records import HEADER_SIZE, BatchHeader
from .pace import Pace

INLINE_BYTES = 32 << 10
"""Takes well under a millisecond in every codec."""

MAX_UNPACKED_BYTES = 1 << 28
"""As for a leader that looks into a batch."""


async def unpacked(header: BatchHeader, batch: memoryview, pace: Pace) -> bytes:
    """Raises DecompressionFailed."""
    codec = header.compression
    body = bytes(batch[HEADER_SIZE:])
    if codec is Compression.NONE:
        return body
    if len(body) <= INLINE_BYTES:
        return decompress(codec, body, max_bytes=MAX_UNPACKED_BYTES)
    return await pace.beside(offload(lambda: decompress(codec, body, max_bytes=MAX_UNPACKED_BYTES)))


async def packed(header: BatchHeader, records: bytearray, pace: Pace) -> bytes | bytearray:
    codec = header.compression
    if codec is Compression.NONE:
        return records
    if len(records) <= INLINE_BYTES:
        return compress(codec, records)
    return await pace.beside(offload(lambda: compress(codec, records)))
