"""API key 80: AddRaftVoter."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, boolean, int16, int32, string, uint16, uuid


class AddRaftVoterRequest(Message, versions="0-1", flexible="0+"):
    """Add a voter to the metadata quorum."""

    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: UUID = uuid()

    class Listener(Struct):
        name: str = string()
        host: str = string()
        port: int = uint16()

    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = boolean(default=True, versions="1+")


class AddRaftVoterResponse(Message, versions="0-1", flexible="0+"):
    """Whether it was added."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)
