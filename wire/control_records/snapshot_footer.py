"""The control record that closes a metadata snapshot."""

from __future__ import annotations

from ..schema import Message, int16


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    """The last record of a metadata snapshot."""

    version: int = int16()
