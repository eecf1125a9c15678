"""What can be wrong with a record batch, each with the error code that a produce answers."""

from __future__ import annotations

from typing import ClassVar

from ..errors import ErrorCode
from ..exceptions import WireError


class RecordsError(WireError):
    """The bytes are no valid record batch."""

    error_code: ClassVar[ErrorCode] = ErrorCode.CORRUPT_MESSAGE


class TruncatedBatch(RecordsError):
    """The buffer ends inside the batch, or the length in its header is impossible."""


class BadCrc(RecordsError):
    """The checksum does not match."""


class BadMagic(RecordsError):
    """An old message format (0 or 1), or none at all."""

    error_code = ErrorCode.INVALID_RECORD


class InvalidBatch(RecordsError):
    """Intact, but its fields contradict each other or its sender may not write them."""

    error_code = ErrorCode.INVALID_RECORD
