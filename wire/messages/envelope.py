"""API key 58: Envelope."""

from __future__ import annotations

from ..schema import Message, binary, int16


class EnvelopeRequest(Message, versions="0", flexible="0+"):
    """A request forwarded to the controller in a principal's name."""

    request_data: bytes = binary()
    request_principal: bytes | None = binary(nullable="0+")
    client_host_address: bytes = binary()


class EnvelopeResponse(Message, versions="0", flexible="0+"):
    """The response to the forwarded request."""

    response_data: bytes | None = binary(default=None, nullable="0+")
    error_code: int = int16()
