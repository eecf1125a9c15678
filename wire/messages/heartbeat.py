"""API key 12: Heartbeat."""

from __future__ import annotations

from ..schema import Message, int16, int32, string


class HeartbeatRequest(Message, versions="0-4", flexible="4+"):
    """A classic group member is alive."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(default=None, versions="3+", nullable="3+")


class HeartbeatResponse(Message, versions="0-4", flexible="4+"):
    """Whether the member still belongs to the generation."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
