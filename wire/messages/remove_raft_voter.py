"""API key 81: RemoveRaftVoter."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, int16, int32, string, uuid


class RemoveRaftVoterRequest(Message, versions="0", flexible="0+"):
    """Remove a voter from the metadata quorum."""

    cluster_id: str | None = string(nullable="0+")
    voter_id: int = int32()
    voter_directory_id: UUID = uuid()


class RemoveRaftVoterResponse(Message, versions="0", flexible="0+"):
    """Whether it was removed."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)
