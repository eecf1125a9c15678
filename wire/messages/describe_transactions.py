"""API key 65: DescribeTransactions."""

from __future__ import annotations

from ..schema import Message, Struct, array, int16, int32, int64, string


class DescribeTransactionsRequest(Message, versions="0", flexible="0+"):
    """State of transactional ids."""

    transactional_ids: list[str] = array(string)


class DescribeTransactionsResponse(Message, versions="0", flexible="0+"):
    """What is known of each."""

    throttle_time_ms: int = int32()

    class TransactionState(Struct):
        error_code: int = int16()
        transactional_id: str = string()
        transaction_state: str = string()
        transaction_timeout_ms: int = int32()
        transaction_start_time_ms: int = int64()
        producer_id: int = int64()
        producer_epoch: int = int16()

        class TopicData(Struct):
            topic: str = string()
            partitions: list[int] = array(int32)

        topics: list[TopicData] = array(TopicData)

    transaction_states: list[TransactionState] = array(TransactionState)

    TopicData = TransactionState.TopicData
