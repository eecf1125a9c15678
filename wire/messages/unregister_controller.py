"""API key 94: UnregisterController."""

from __future__ import annotations

from ..schema import Message, int16, int32, string


class UnregisterControllerRequest(Message, versions="0", flexible="0+"):
    """Forget a controller."""

    controller_id: int = int32()


class UnregisterControllerResponse(Message, versions="0", flexible="0+"):
    """Whether it was forgotten."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
