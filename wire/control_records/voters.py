"""The control record that names the quorum's voters."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, nested, string, uint16, uuid


class VotersRecord(Message, versions="0", flexible="0+"):
    """The voters of the metadata quorum."""

    version: int = int16()

    class Voter(Struct):
        voter_id: int = int32()
        voter_directory_id: UUID = uuid()

        class Endpoint(Struct):
            name: str = string()
            host: str = string()
            port: int = uint16()

        endpoints: list[Endpoint] = array(Endpoint)

        class KRaftVersionFeature(Struct):
            min_supported_version: int = int16()
            max_supported_version: int = int16()

        kraft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature)

    voters: list[Voter] = array(Voter)

    Endpoint = Voter.Endpoint
    KRaftVersionFeature = Voter.KRaftVersionFeature
