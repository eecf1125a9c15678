"""Where a connection's bytes are received and cut into frames. No I/O here.

Small frames share one buffer and are copied out; a large one is received into a buffer of its own.
That buffer grows with the bytes that arrive: a length that merely claims to be large reserves
nothing, since the claim is believed only when the MAC at the end has been checked.
"""

from __future__ import annotations

SHARED_CAPACITY = 64 * 1024
"""Bytes of the shared buffer of an authenticated connection."""

_FIRST_LARGE = 256 * 1024
"""Bytes that a large frame's own buffer begins with; it then doubles. Where a sender has already
filled larger ones, it begins with twice what it has filled: growing costs a copy each time."""


class FrameTooLarge(Exception):
    """The declared length is beyond what this connection may send."""

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(f"frame of {length} bytes, at most {limit} are allowed")
        self.length = length


class FrameBuffer:
    """Receives `header | payload` frames whose header starts with a u32 payload length."""

    def __init__(self, capacity: int) -> None:
        self._shared = memoryview(bytearray(capacity))
        self._start = 0
        self._end = 0
        self._large: _LargeFrame | None = None
        self._largest_filled = 0

    def enlarge(self, capacity: int) -> None:
        """Give the shared buffer at least `capacity` bytes."""
        if capacity > len(self._shared):
            self._move_to(memoryview(bytearray(capacity)))

    def space(self) -> memoryview:
        """Where the next received bytes go; never empty."""
        if self._large is not None and not self._large.complete:
            return self._large.space()
        if self._end == len(self._shared):
            # Full of frames that a paused reader has not taken: only a transport that still
            # delivers after `pause_reading` gets here, and it must not lose bytes.
            room_left = self._start > 0
            self._move_to(
                self._shared if room_left else memoryview(bytearray(2 * len(self._shared)))
            )
        return self._shared[self._end :]

    def received(self, count: int) -> None:
        """`count` bytes have been written to the start of `space()`."""
        if self._large is not None and not self._large.complete:
            self._large.filled += count
        else:
            self._end += count

    def take(self, header_size: int, max_length: int) -> tuple[bytes, memoryview] | None:
        """The next whole frame as (header, payload), or None until more bytes have come.

        The payload belongs to the caller, who may keep it. Raises FrameTooLarge.
        """
        if self._large is not None:
            return self._take_large()
        available = self._end - self._start
        if available < header_size:
            return None
        header = bytes(self._shared[self._start : self._start + header_size])
        length = int.from_bytes(header[:4], "big")
        if length > max_length:
            raise FrameTooLarge(length, max_length)
        size = header_size + length
        if available < size:
            if size > len(self._shared):
                self._begin_large(header, length)
                return self._take_large()
            if self._start + size > len(self._shared):
                self._move_to(self._shared)
            return None
        payload = bytes(self._shared[self._start + header_size : self._start + size])
        self._start += size
        if self._start == self._end:
            self._start = self._end = 0
        return header, memoryview(payload)

    def _begin_large(self, header: bytes, length: int) -> None:
        first = max(_FIRST_LARGE, 2 * self._largest_filled)
        self._large = _LargeFrame(header, length, min(length, first))
        self._large.put(self._shared[self._start + len(header) : self._end])
        self._start = self._end = 0

    def _take_large(self) -> tuple[bytes, memoryview] | None:
        large = self._large
        if large is None or not large.complete:
            return None
        self._large = None
        self._largest_filled = max(self._largest_filled, large.length)
        return large.header, memoryview(large.buffer)

    def _move_to(self, target: memoryview) -> None:
        held = bytes(self._shared[self._start : self._end])
        target[: len(held)] = held
        self._shared = target
        self._start, self._end = 0, len(held)


class _LargeFrame:
    """One payload in a buffer of its own."""

    def __init__(self, header: bytes, length: int, first: int) -> None:
        self.header = header
        self.length = length
        self.filled = 0
        self.buffer = bytearray(first)

    @property
    def complete(self) -> bool:
        return self.filled == self.length

    def space(self) -> memoryview:
        if self.filled == len(self.buffer):
            self._grow(2 * self.filled)
        return memoryview(self.buffer)[self.filled :]

    def put(self, data: memoryview) -> None:
        if len(data) > len(self.buffer):
            self._grow(len(data))
        self.buffer[: len(data)] = data
        self.filled = len(data)

    def _grow(self, wanted: int) -> None:
        # A new object instead of a resize: the transport may still hold a view of the old one.
        grown = bytearray(min(self.length, wanted))
        grown[: self.filled] = memoryview(self.buffer)[: self.filled]
        self.buffer = grown
