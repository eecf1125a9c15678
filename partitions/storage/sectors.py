"""Reading around sectors that the device cannot read any more."""

from __future__ import annotations

from collections.abc import Callable
from errno import EIO

from ...seam import File

SECTOR = 512
"""The smallest that a device gives up; where its sectors are larger, neighbours go with it."""


class Sectors:
    """A file in which a sector that cannot be read reads as zeros. Then it is part of no batch, and
    the batches around it can be had."""

    def __init__(self, file: Callable[[], File]) -> None:
        """`file`: asked for each read, for in between it may be closed."""
        self._file = file
        self.failure: OSError | None = None
        """The first that was met."""

    def read_at(self, position: int, length: int) -> bytes:
        try:
            return self._file().read_at(position, length)
        except OSError as error:
            self._note(error)
        end = min(position + length, self._file().size())
        pieces = []
        while position < end:
            behind = min(end, (position // SECTOR + 1) * SECTOR)
            pieces.append(self._sector(position, behind - position))
            position = behind
        return b"".join(pieces)

    def _sector(self, position: int, length: int) -> bytes:
        try:
            return self._file().read_at(position, length)
        except OSError as error:
            self._note(error)
            return bytes(length)

    def _note(self, error: OSError) -> None:
        if error.errno != EIO:
            raise error
        self.failure = self.failure or error
