"""Record type 0 of `__transaction_state`: TransactionLog."""

from __future__ import annotations

from ..schema import Struct, array, int8, int16, int32, int64, string
from ..versioned import CoordinatorKey, Versioned


class TransactionLogKey(CoordinatorKey, versions="0", record_type=0):
    """A transactional id."""

    transactional_id: str = string()


class TransactionLogValue(Versioned, versions="0-1", flexible="1+"):
    """State of a transaction."""

    producer_id: int = int64()
    previous_producer_id: int = int64(default=-1, tag=0, tagged="1+")
    next_producer_id: int = int64(default=-1, tag=1, tagged="1+")
    producer_epoch: int = int16()
    next_producer_epoch: int = int16(default=-1, tag=3, tagged="1+")
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()

    class PartitionsSchema(Struct):
        topic: str = string()
        partition_ids: list[int] = array(int32)

    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16(tag=2, tagged="1+")
