"""API key 66: ListTransactions."""

from __future__ import annotations

from ..schema import Message, Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Message, versions="0-2", flexible="0+"):
    """The transactions that this broker coordinates, by filter."""

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64(default=-1, versions="1+")
    transactional_id_pattern: str | None = string(default=None, versions="2+", nullable="2+")


class ListTransactionsResponse(Message, versions="0-2", flexible="0+"):
    """The transactions that match."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)

    class TransactionState(Struct):
        transactional_id: str = string()
        producer_id: int = int64()
        transaction_state: str = string()

    transaction_states: list[TransactionState] = array(TransactionState)
