"""What a client is told of producers and transactions: by API and version, and nowhere else.

Newer clients know more exact codes; an older one is told the nearest that it knows. A producer is
told by its partition what the coordinator said about its transaction, and must be able to act on
it: codes that would send it looking for another coordinator come to it as NOT_ENOUGH_REPLICAS,
which every version sends the same batch again for (KIP-890).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..wire import ApiKey, ErrorCode

FIRST_WITH_PRODUCER_FENCED: Mapping[ApiKey, int] = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}
"""KIP-588. Below, and in all other APIs, a fenced producer is told INVALID_PRODUCER_EPOCH."""

FIRST_WITH_TRANSACTION_ABORTABLE: Mapping[ApiKey, int] = {
    ApiKey.PRODUCE: 11,
    ApiKey.INIT_PRODUCER_ID: 5,
    ApiKey.ADD_PARTITIONS_TO_TXN: 5,
    ApiKey.ADD_OFFSETS_TO_TXN: 4,
    ApiKey.END_TXN: 4,
    ApiKey.TXN_OFFSET_COMMIT: 4,
}
"""KIP-890. Below it is INVALID_TXN_STATE, which ends the producer instead of the transaction."""

FIRST_WITH_EPOCH_BUMP: Mapping[ApiKey, int] = {ApiKey.PRODUCE: 12, ApiKey.TXN_OFFSET_COMMIT: 5}
"""The second protocol: the partition's leader adds the partition to the transaction; below, it
only asks whether it is there."""

FIRST_OFFSET_COMMIT_WITH_LOADING = 2
"""TxnOffsetCommit below it knows no COORDINATOR_LOAD_IN_PROGRESS."""

NEVER = 1 << 15

_AGAIN = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def error_for(key: ApiKey, version: int, error: ErrorCode) -> ErrorCode:
    """`error`, as a client knows it that speaks this version."""
    if error is ErrorCode.PRODUCER_FENCED:
        known = version >= FIRST_WITH_PRODUCER_FENCED.get(key, NEVER)
        return error if known else ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE:
        known = version >= FIRST_WITH_TRANSACTION_ABORTABLE.get(key, NEVER)
        return error if known else ErrorCode.INVALID_TXN_STATE
    if (
        error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        and key is ApiKey.TXN_OFFSET_COMMIT
        and version < FIRST_OFFSET_COMMIT_WITH_LOADING
    ):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error


def bumps_epochs(key: ApiKey, version: int) -> bool:
    """Whether the client speaks the second protocol."""
    return version >= FIRST_WITH_EPOCH_BUMP.get(key, NEVER)


def error_of_coordinator(key: ApiKey, version: int, error: ErrorCode) -> ErrorCode:
    """What a producer (Produce or TxnOffsetCommit) is told, when the coordinator of its transaction
    answered `error` to the leader's question."""
    if error in _AGAIN:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.CONCURRENT_TRANSACTIONS and not bumps_epochs(key, version):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return error_for(key, version, error)
