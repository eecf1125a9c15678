"""The control record that sets the quorum protocol's version."""

from __future__ import annotations

from ..schema import Message, int16


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    """The version of the quorum protocol."""

    version: int = int16()
    kraft_version: int = int16()
