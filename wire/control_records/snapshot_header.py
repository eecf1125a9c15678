"""The control record that opens a metadata snapshot."""

from __future__ import annotations

from ..schema import Message, int16, int64


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    """The first record of a metadata snapshot."""

    version: int = int16()
    last_contained_log_timestamp: int = int64()
