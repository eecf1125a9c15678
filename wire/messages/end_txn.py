"""API key 26: EndTxn."""

from __future__ import annotations

from ..schema import Message, boolean, int16, int32, int64, string


class EndTxnRequest(Message, versions="0-5", flexible="3+"):
    """Commit or abort a transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


class EndTxnResponse(Message, versions="0-5", flexible="3+"):
    """Whether it will end so; from v5 with the producer epoch to go on with."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1, versions="5+", ignorable=True)
    producer_epoch: int = int16(default=-1, versions="5+", ignorable=True)
