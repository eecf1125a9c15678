"""API key 17: SaslHandshake."""

from __future__ import annotations

from ..schema import Message, array, int16, string


class SaslHandshakeRequest(Message, versions="0-1"):
    """Choose a SASL mechanism."""

    mechanism: str = string()


class SaslHandshakeResponse(Message, versions="0-1"):
    """The mechanisms that are offered."""

    error_code: int = int16()
    mechanisms: list[str] = array(string)
