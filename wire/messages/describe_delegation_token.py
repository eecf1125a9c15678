"""API key 41: DescribeDelegationToken."""

from __future__ import annotations

from ..schema import Message, Struct, array, binary, int16, int32, int64, string


class DescribeDelegationTokenRequest(Message, versions="1-3", flexible="2+"):
    """List delegation tokens."""

    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = string()
        principal_name: str = string()

    owners: list[DescribeDelegationTokenOwner] | None = array(
        DescribeDelegationTokenOwner, nullable="0+"
    )


class DescribeDelegationTokenResponse(Message, versions="1-3", flexible="2+"):
    """The tokens that may be seen."""

    error_code: int = int16()

    class DescribedDelegationToken(Struct):
        principal_type: str = string()
        principal_name: str = string()
        token_requester_principal_type: str = string(versions="3+")
        token_requester_principal_name: str = string(versions="3+")
        issue_timestamp: int = int64()
        expiry_timestamp: int = int64()
        max_timestamp: int = int64()
        token_id: str = string()
        hmac: bytes = binary()

        class DescribedDelegationTokenRenewer(Struct):
            principal_type: str = string()
            principal_name: str = string()

        renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)

    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()

    DescribedDelegationTokenRenewer = DescribedDelegationToken.DescribedDelegationTokenRenewer
