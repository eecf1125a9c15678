"""API key 51: AlterUserScramCredentials."""

from __future__ import annotations

from ..schema import Message, Struct, array, binary, int8, int16, int32, string


class AlterUserScramCredentialsRequest(Message, versions="0", flexible="0+"):
    """Set or remove SCRAM credentials."""

    class ScramCredentialDeletion(Struct):
        name: str = string()
        mechanism: int = int8()

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)

    class ScramCredentialUpsertion(Struct):
        name: str = string()
        mechanism: int = int8()
        iterations: int = int32()
        salt: bytes = binary()
        salted_password: bytes = binary()

    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResponse(Message, versions="0", flexible="0+"):
    """An error code for each user."""

    throttle_time_ms: int = int32()

    class AlterUserScramCredentialsResult(Struct):
        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")

    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
