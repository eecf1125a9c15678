"""S19: error codes of producers and transactions, by API and version."""

from __future__ import annotations

import pytest

from logboat.partitions.transaction_errors import bumps_epochs, error_for, error_of_coordinator
from logboat.wire import ApiKey, ErrorCode

EVERY = (
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ErrorCode.TRANSACTION_ABORTABLE,
)


def test_s19_the_codes_are_kafkas() -> None:
    assert [int(code) for code in EVERY] == [19, *range(45, 54), 55, 59, 88, 90, 105, 120]


@pytest.mark.parametrize(
    ("key", "first"),
    [
        (ApiKey.INIT_PRODUCER_ID, 4),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 2),
        (ApiKey.ADD_OFFSETS_TO_TXN, 2),
        (ApiKey.END_TXN, 2),
        (ApiKey.PRODUCE, None),
        (ApiKey.TXN_OFFSET_COMMIT, None),
    ],
)
def test_s19_a_fenced_producer_is_told_so_where_its_version_knows_the_word(
    key: ApiKey, first: int | None
) -> None:
    for version in range(15):
        known = first is not None and version >= first
        expected = ErrorCode.PRODUCER_FENCED if known else ErrorCode.INVALID_PRODUCER_EPOCH
        assert error_for(key, version, ErrorCode.PRODUCER_FENCED) is expected


@pytest.mark.parametrize(
    ("key", "first"),
    [
        (ApiKey.PRODUCE, 11),
        (ApiKey.TXN_OFFSET_COMMIT, 4),
        (ApiKey.INIT_PRODUCER_ID, 5),
        (ApiKey.END_TXN, 4),
    ],
)
def test_s19_only_new_versions_can_abort_and_go_on(key: ApiKey, first: int) -> None:
    for version in range(15):
        known = version >= first
        expected = ErrorCode.TRANSACTION_ABORTABLE if known else ErrorCode.INVALID_TXN_STATE
        assert error_for(key, version, ErrorCode.TRANSACTION_ABORTABLE) is expected


def test_s19_old_offset_commits_know_no_loading_coordinator() -> None:
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    key = ApiKey.TXN_OFFSET_COMMIT
    assert error_for(key, 1, loading) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error_for(key, 2, loading) is loading
    assert error_for(ApiKey.END_TXN, 1, loading) is loading


@pytest.mark.parametrize(("key", "first"), [(ApiKey.PRODUCE, 12), (ApiKey.TXN_OFFSET_COMMIT, 5)])
def test_s19_a_partition_tells_what_its_producer_can_act_on(key: ApiKey, first: int) -> None:
    for version in (first - 1, first):
        new = version >= first
        assert bumps_epochs(key, version) is new
        told = {code: error_of_coordinator(key, version, code) for code in ErrorCode}
        for passing in (
            ErrorCode.NETWORK_EXCEPTION,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_COORDINATOR,
        ):
            assert told.pop(passing) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert told.pop(ErrorCode.PRODUCER_FENCED) is ErrorCode.INVALID_PRODUCER_EPOCH
        busy = ErrorCode.CONCURRENT_TRANSACTIONS
        assert told.pop(busy) is (busy if new else ErrorCode.NOT_ENOUGH_REPLICAS)
        assert all(code is told_code for code, told_code in told.items())
