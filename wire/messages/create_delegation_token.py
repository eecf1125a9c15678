"""API key 38: CreateDelegationToken."""

from __future__ import annotations

from ..schema import Message, Struct, array, binary, int16, int32, int64, string


class CreateDelegationTokenRequest(Message, versions="1-3", flexible="2+"):
    """Issue a delegation token."""

    owner_principal_type: str | None = string(versions="3+", nullable="3+")
    owner_principal_name: str | None = string(versions="3+", nullable="3+")

    class CreatableRenewers(Struct):
        principal_type: str = string()
        principal_name: str = string()

    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


class CreateDelegationTokenResponse(Message, versions="1-3", flexible="2+"):
    """The token and its lifetime."""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(versions="3+")
    token_requester_principal_name: str = string(versions="3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = binary()
    throttle_time_ms: int = int32()
