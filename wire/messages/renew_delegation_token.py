"""API key 39: RenewDelegationToken."""

from __future__ import annotations

from ..schema import Message, binary, int16, int32, int64


class RenewDelegationTokenRequest(Message, versions="1-2", flexible="2+"):
    """Prolong a delegation token."""

    hmac: bytes = binary()
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(Message, versions="1-2", flexible="2+"):
    """When the token now expires."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
