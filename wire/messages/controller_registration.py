"""API key 70: ControllerRegistration."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, boolean, int16, int32, string, uint16, uuid


class ControllerRegistrationRequest(Message, versions="0", flexible="0+"):
    """A controller introduces itself."""

    controller_id: int = int32()
    incarnation_id: UUID = uuid()
    zk_migration_ready: bool = boolean()

    class Listener(Struct):
        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    listeners: list[Listener] = array(Listener)

    class Feature(Struct):
        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    features: list[Feature] = array(Feature)


class ControllerRegistrationResponse(Message, versions="0", flexible="0+"):
    """Whether it was registered."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
