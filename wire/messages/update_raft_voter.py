"""API key 82: UpdateRaftVoter."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, nested, string, uint16, uuid


class UpdateRaftVoterRequest(Message, versions="0", flexible="0+"):
    """A voter tells its address and supported versions."""

    cluster_id: str | None = string(nullable="0+")
    current_leader_epoch: int = int32()
    voter_id: int = int32()
    voter_directory_id: UUID = uuid()

    class Listener(Struct):
        name: str = string()
        host: str = string()
        port: int = uint16()

    listeners: list[Listener] = array(Listener)

    class KRaftVersionFeature(Struct):
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    kraft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature)


class UpdateRaftVoterResponse(Message, versions="0", flexible="0+"):
    """Whether that was taken."""

    throttle_time_ms: int = int32()
    error_code: int = int16()

    class CurrentLeader(Struct):
        leader_id: int = int32(default=-1)
        leader_epoch: int = int32(default=-1)
        host: str = string()
        port: int = int32()

    current_leader: CurrentLeader | None = nested(CurrentLeader, tag=0, tagged="0+")
