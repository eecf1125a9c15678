"""API key 63: BrokerHeartbeat."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, array, boolean, int16, int32, int64, uuid


class BrokerHeartbeatRequest(Message, versions="0-2", flexible="0+"):
    """A broker is alive, and which state it wants.

    v1 tells of failed directories, v2 of cordoned ones.
    """

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[UUID] = array(uuid, tag=0, tagged="1+")
    cordoned_log_dirs: list[UUID] | None = array(
        uuid, default=None, nullable="2+", tag=1, tagged="2+"
    )


class BrokerHeartbeatResponse(Message, versions="0-2", flexible="0+"):
    """Which state it is in."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()
