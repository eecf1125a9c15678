"""The key of every control record."""

from __future__ import annotations

from ..schema import Message, int16


class ControlRecordTypeSchema(Message, versions="0"):
    """The key of a control record: what kind of control it is."""

    type: int = int16()
