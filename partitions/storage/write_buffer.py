"""Batches that have their offsets but not yet their place in the file.

All appends of one turn of the loop leave as one vectored write (DESIGN 5: twice the small requests
per second). Nothing of it is acknowledged, synced or read before `write` has returned, so a write
that fails (full disk) takes back batches that nobody has seen: the file is cut to where it was, and
segment, producers and epochs return to the state noted at the first batch held.
"""

from __future__ import annotations

from ...seam import Buffer
from .producer_states import Undo
from .segment import Segment, SegmentMark

MAX_HELD_BYTES = 1 << 20
"""More is written at once: it bounds the memory, and larger writes gain nothing."""


class WriteBuffer:
    """Batches of one segment, oldest first."""

    __slots__ = ("_parts", "held_bytes", "mark", "segment", "undos")

    def __init__(self) -> None:
        self._parts: list[Buffer] = []
        self.held_bytes = 0
        self.segment: Segment | None = None
        self.mark: SegmentMark | None = None
        """Of `segment`, before the oldest batch held."""
        self.undos: list[Undo] = []
        """What the held batches did to the producers' states, oldest first."""

    def __bool__(self) -> bool:
        return bool(self._parts)

    def hold(self, segment: Segment, parts: tuple[Buffer, ...], size: int) -> None:
        """Call before `segment.note`."""
        if self.mark is None:
            self.segment = segment
            self.mark = segment.mark()
        self._parts.extend(parts)
        self.held_bytes += size

    @property
    def full(self) -> bool:
        return self.held_bytes >= MAX_HELD_BYTES

    def write(self) -> None:
        """Write what is held, in one call. Raises OSError; then `take_back`."""
        assert self.segment is not None
        self.segment.file().append(self._parts)
        self._forget()

    def take_back(self) -> tuple[Segment, SegmentMark, list[Undo]]:
        """Cut the file to where it was before the oldest batch held and forget the batches.

        Returns what the caller's states must return to. Raises OSError when the file cannot be
        cut: then its end is unknown and the process must end.
        """
        segment, mark, undos = self.segment, self.mark, self.undos
        assert segment is not None
        assert mark is not None
        self._forget()
        segment.file().truncate(mark.size)
        segment.return_to(mark)
        return segment, mark, undos

    def _forget(self) -> None:
        self._parts = []
        self.held_bytes = 0
        self.segment = None
        self.mark = None
        self.undos = []
