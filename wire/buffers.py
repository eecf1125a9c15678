"""The byte containers that go in and out of this part."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
"""Contiguous bytes, `len()` in bytes."""

Records = Buffer | list[Buffer] | None
"""Record batches of one partition. Decoding gives a `memoryview` into the frame, never a copy;
encoding passes a buffer, or a list of buffers taken as one, into the output list untouched."""
