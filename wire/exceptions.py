"""What can go wrong between bytes and messages."""

from __future__ import annotations


class WireError(ValueError):
    """The bytes or the message do not follow the protocol."""


class DecodeError(WireError):
    """The bytes are no valid encoding: truncated, a bad length, not UTF-8, an unknown version."""


class EncodeError(WireError):
    """The message cannot be said in that version, or a value does not fit its field."""
