"""API key 22: InitProducerId."""

from __future__ import annotations

from ..schema import Message, boolean, int16, int32, int64, string


class InitProducerIdRequest(Message, versions="0-6", flexible="2+"):
    """Get a producer id and epoch, for idempotence or for a transactional id.

    v3 lets a producer raise its own epoch, v6 belongs to two-phase commit.
    """

    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(default=-1, versions="3+")
    producer_epoch: int = int16(default=-1, versions="3+")
    enable2_pc: bool = boolean(versions="6+")
    keep_prepared_txn: bool = boolean(versions="6+")


class InitProducerIdResponse(Message, versions="0-6", flexible="2+"):
    """The producer id and epoch."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64(default=-1, versions="6+")
    ongoing_txn_producer_epoch: int = int16(default=-1, versions="6+")
