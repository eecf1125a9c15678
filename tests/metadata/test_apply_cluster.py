"""Controller epochs, producer ids, pins, levels (RULES A2, A4, B3)."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from logboat.metadata.commands import (
    AllocateProducerIds,
    FeatureLevel,
    FenceBroker,
    NewController,
    PinVoterDirectory,
)
from logboat.metadata.levels import TRANSACTION_FEATURE, VERSION_FEATURE
from logboat.metadata.snapshot import decode_snapshot, encode_snapshot
from logboat.wire import ErrorCode
from tests.metadata.cluster_builder import Cluster

A, B = UUID(int=1), UUID(int=2)


def test_a4_controller_epoch_is_the_index_of_new_controller() -> None:
    cluster = Cluster()
    assert cluster.must(NewController(2, 7)).value == cluster.index
    image = cluster.image
    assert (image.controller_id, image.controller_epoch) == (2, cluster.index)
    assert image.controller_term == 7


def test_a4_new_controller_needs_a_larger_term() -> None:
    cluster = Cluster()
    cluster.must(NewController(2, 7))
    for term in (7, 6):
        assert cluster.apply(NewController(3, term)).error == ErrorCode.NOT_CONTROLLER
    assert cluster.image.controller_id == 2


def test_a4_command_of_another_controller_epoch_changes_nothing() -> None:
    cluster = Cluster()
    stale = cluster.epoch
    cluster.must(NewController(2, 7))
    before = cluster.image
    command = FenceBroker(stale, 1, cluster.broker(1).broker_epoch)
    assert cluster.apply(command).error == ErrorCode.NOT_CONTROLLER
    assert cluster.image == replace(before, index=cluster.index)
    ahead = FenceBroker(cluster.epoch + 1, 1, cluster.broker(1).broker_epoch)
    assert cluster.apply(ahead).error == ErrorCode.NOT_CONTROLLER


def test_s15_producer_id_blocks_never_overlap() -> None:
    cluster = Cluster()
    epoch = cluster.broker(1).broker_epoch
    ask = AllocateProducerIds(cluster.epoch, 1, epoch, 1000)
    assert [cluster.must(ask).value for _ in range(3)] == [0, 1000, 2000]
    stale = AllocateProducerIds(cluster.epoch, 1, epoch - 1, 1000)
    assert cluster.apply(stale).error == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.image.next_producer_id == 3000


def test_producer_ids_run_out_without_wrapping() -> None:
    cluster = Cluster()
    cluster.image = replace(cluster.image, next_producer_id=2**63 - 1000)
    ask = AllocateProducerIds(cluster.epoch, 1, cluster.broker(1).broker_epoch, 1000)
    assert cluster.apply(ask).refused
    assert cluster.image.next_producer_id == 2**63 - 1000


def test_b3_pin_moves_only_from_the_directory_it_names() -> None:
    cluster = Cluster()
    cluster.must(PinVoterDirectory(cluster.epoch, 1, A, None))
    cluster.must(PinVoterDirectory(cluster.epoch, 1, A, None))
    other = PinVoterDirectory(cluster.epoch, 1, B, None)
    assert cluster.apply(other).error == ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.image.voter_directories[1] == A
    cluster.must(PinVoterDirectory(cluster.epoch, 1, B, A))
    assert cluster.image.voter_directories[1] == B


def test_a2_level_rises_only_as_far_as_this_release_knows_it() -> None:
    cluster = Cluster()
    cluster.must(FeatureLevel(cluster.epoch, VERSION_FEATURE, 1))
    for name, level in ((VERSION_FEATURE, 2), (VERSION_FEATURE, 0), ("other", 1)):
        assert cluster.apply(FeatureLevel(cluster.epoch, name, level)).refused
    assert cluster.image.features[VERSION_FEATURE] == 1


def test_s16_the_level_of_transactions_is_a_feature_of_the_image() -> None:
    """Absent at level 0, kept by snapshots, and every change is told by a larger epoch."""
    cluster = Cluster()
    epochs = [cluster.image.index]
    for level in (1, 2, 1):
        cluster.must(FeatureLevel(cluster.epoch, TRANSACTION_FEATURE, level))
        epochs.append(cluster.image.index)
        again = decode_snapshot(encode_snapshot(cluster.image))
        assert again.features[TRANSACTION_FEATURE] == level
        assert again.features[VERSION_FEATURE] == 1
    assert epochs == sorted(set(epochs))
    for level in (-1, 3):
        assert cluster.apply(FeatureLevel(cluster.epoch, TRANSACTION_FEATURE, level)).refused
    cluster.must(FeatureLevel(cluster.epoch, TRANSACTION_FEATURE, 0))
    assert TRANSACTION_FEATURE not in cluster.image.features
