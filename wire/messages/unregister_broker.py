"""API key 64: UnregisterBroker."""

from __future__ import annotations

from ..schema import Message, int16, int32, string


class UnregisterBrokerRequest(Message, versions="0", flexible="0+"):
    """Forget a broker."""

    broker_id: int = int32()


class UnregisterBrokerResponse(Message, versions="0", flexible="0+"):
    """Whether it was forgotten."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
