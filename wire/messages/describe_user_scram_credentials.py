"""API key 50: DescribeUserScramCredentials."""

from __future__ import annotations

from ..schema import Message, Struct, array, int8, int16, int32, string


class DescribeUserScramCredentialsRequest(Message, versions="0", flexible="0+"):
    """Which SCRAM credentials users have."""

    class UserName(Struct):
        name: str = string()

    users: list[UserName] | None = array(UserName, nullable="0+")


class DescribeUserScramCredentialsResponse(Message, versions="0", flexible="0+"):
    """Mechanisms and iteration counts, no secrets."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")

    class DescribeUserScramCredentialsResult(Struct):
        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")

        class CredentialInfo(Struct):
            mechanism: int = int8()
            iterations: int = int32()

        credential_infos: list[CredentialInfo] = array(CredentialInfo)

    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)

    CredentialInfo = DescribeUserScramCredentialsResult.CredentialInfo
