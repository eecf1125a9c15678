"""API key 10: FindCoordinator."""

from __future__ import annotations

from ..schema import Message, Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(Message, versions="0-6", flexible="3+"):
    """Which broker coordinates a group or a transactional id.

    v1 adds the kind of key, v4 takes many keys at once.
    """

    key: str = string(versions="0-3")
    key_type: int = int8(versions="1+")
    coordinator_keys: list[str] = array(string, versions="4+")


class FindCoordinatorResponse(Message, versions="0-6", flexible="3+"):
    """The coordinator for each key.

    Up to v3 one answer at the top, from v4 a list.
    """

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16(versions="0-3")
    error_message: str | None = string(versions="1-3", nullable="1-3", ignorable=True)
    node_id: int = int32(versions="0-3")
    host: str = string(versions="0-3")
    port: int = int32(versions="0-3")

    class Coordinator(Struct):
        key: str = string()
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", ignorable=True)

    coordinators: list[Coordinator] = array(Coordinator, versions="4+")
