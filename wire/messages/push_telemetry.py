"""API key 72: PushTelemetry."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, binary, boolean, int8, int16, int32, uuid


class PushTelemetryRequest(Message, versions="0", flexible="0+"):
    """Metrics of a client."""

    client_instance_id: UUID = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = binary()


class PushTelemetryResponse(Message, versions="0", flexible="0+"):
    """Whether they were taken."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
