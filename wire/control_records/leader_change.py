"""The control record that begins a quorum epoch."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, uuid


class _Voter(Struct):
    voter_id: int = int32()
    voter_directory_id: UUID = uuid(versions="1+")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """A new leader of the metadata quorum and who voted."""

    Voter = _Voter

    version: int = int16()
    leader_id: int = int32()
    voters: list[_Voter] = array(_Voter)
    granting_voters: list[_Voter] = array(_Voter)
