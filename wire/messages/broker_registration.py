"""API key 62: BrokerRegistration."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, boolean, int16, int32, int64, string, uint16, uuid


class BrokerRegistrationRequest(Message, versions="0-4", flexible="0+"):
    """A starting broker introduces itself to the controller.

    v2 names its data directories, v3 allows them to be absent, v4 allows feature level 0.
    """

    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: UUID = uuid()

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
    rack: str | None = string(nullable="0+")
    is_migrating_zk_broker: bool = boolean(versions="1+")
    log_dirs: list[UUID] = array(uuid, versions="2+", ignorable=True)
    previous_broker_epoch: int = int64(default=-1, versions="3+", ignorable=True)


class BrokerRegistrationResponse(Message, versions="0-4", flexible="0+"):
    """The broker epoch that it got."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)
