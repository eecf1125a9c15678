"""API key 24: AddPartitionsToTxn."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, int16, int32, int64, string


class _AddPartitionsToTxnTopic(Struct):
    name: str = string()
    partitions: list[int] = array(int32)


class AddPartitionsToTxnRequest(Message, versions="0-5", flexible="3+"):
    """Add partitions to a transaction.

    Up to v3 from a client; from v4 a batch of transactions, from brokers that verify.
    """

    AddPartitionsToTxnTopic = _AddPartitionsToTxnTopic

    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: str = string()
        producer_id: int = int64()
        producer_epoch: int = int16()
        verify_only: bool = boolean()
        topics: list[_AddPartitionsToTxnTopic] = array(_AddPartitionsToTxnTopic)

    transactions: list[AddPartitionsToTxnTransaction] = array(
        AddPartitionsToTxnTransaction, versions="4+"
    )
    v3_and_below_transactional_id: str = string(versions="0-3")
    v3_and_below_producer_id: int = int64(versions="0-3")
    v3_and_below_producer_epoch: int = int16(versions="0-3")
    v3_and_below_topics: list[_AddPartitionsToTxnTopic] = array(
        _AddPartitionsToTxnTopic, versions="0-3"
    )


class _AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = int32()
    partition_error_code: int = int16()


class _AddPartitionsToTxnTopicResult(Struct):
    name: str = string()
    results_by_partition: list[_AddPartitionsToTxnPartitionResult] = array(
        _AddPartitionsToTxnPartitionResult
    )


class AddPartitionsToTxnResponse(Message, versions="0-5", flexible="3+"):
    """An error code for each partition."""

    AddPartitionsToTxnPartitionResult = _AddPartitionsToTxnPartitionResult
    AddPartitionsToTxnTopicResult = _AddPartitionsToTxnTopicResult

    throttle_time_ms: int = int32()
    error_code: int = int16(versions="4+", ignorable=True)

    class AddPartitionsToTxnResult(Struct):
        transactional_id: str = string()
        topic_results: list[_AddPartitionsToTxnTopicResult] = array(_AddPartitionsToTxnTopicResult)

    results_by_transaction: list[AddPartitionsToTxnResult] = array(
        AddPartitionsToTxnResult, versions="4+"
    )
    results_by_topic_v3_and_below: list[_AddPartitionsToTxnTopicResult] = array(
        _AddPartitionsToTxnTopicResult, versions="0-3"
    )
