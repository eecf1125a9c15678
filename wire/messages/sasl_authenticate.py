"""API key 36: SaslAuthenticate."""

from __future__ import annotations

from ..schema import Message, binary, int16, int64, string


class SaslAuthenticateRequest(Message, versions="0-2", flexible="2+"):
    """One step of a SASL exchange."""

    auth_bytes: bytes = binary()


class SaslAuthenticateResponse(Message, versions="0-2", flexible="2+"):
    """The next step, or the end of the exchange."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64(versions="1+", ignorable=True)
