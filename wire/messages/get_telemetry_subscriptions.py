"""API key 71: GetTelemetrySubscriptions."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, array, boolean, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Message, versions="0", flexible="0+"):
    """Which metrics a client shall push."""

    client_instance_id: UUID = uuid()


class GetTelemetrySubscriptionsResponse(Message, versions="0", flexible="0+"):
    """The metrics, and how often."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: UUID = uuid()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(int8)
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    requested_metrics: list[str] = array(string)
