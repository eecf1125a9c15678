"""Where replicas go."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.metadata.image import BrokerImage
from logboat.metadata.placement import PlacementError, check_assignment, place_replicas
from logboat.seam import all_at_once
from logboat.wire import ErrorCode
from tests.metadata.cluster_builder import Cluster


def brokers(racks: dict[int, str | None], fenced: set[int] | None = None) -> dict[int, BrokerImage]:
    model = Cluster(brokers=1).broker(1)
    return {
        node_id: replace(model, node_id=node_id, rack=rack, fenced=node_id in (fenced or set()))
        for node_id, rack in racks.items()
    }


def place(
    known: dict[int, BrokerImage], *, partitions: int, replication_factor: int, rng: Random
) -> tuple[tuple[int, ...], ...]:
    return all_at_once(
        place_replicas(known, partitions=partitions, replication_factor=replication_factor, rng=rng)
    )


@given(
    racks=st.lists(st.sampled_from((None, "a", "b", "c")), min_size=1, max_size=8),
    fenced=st.sets(st.integers(2, 8)),
    partitions=st.integers(1, 40),
    seed=st.integers(0, 1000),
    data=st.data(),
)
@settings(deadline=None)
def test_placement_keeps_its_promises(
    racks: list[str | None], fenced: set[int], partitions: int, seed: int, data: st.DataObject
) -> None:
    known = brokers(dict(enumerate(racks, start=1)), fenced)
    living = [node_id for node_id, broker in known.items() if not broker.fenced]
    factor = data.draw(st.integers(1, len(known)))
    placed = place(known, partitions=partitions, replication_factor=factor, rng=Random(seed))
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[0] in living
        alive = [replica for replica in replicas if replica in living]
        assert len(alive) == min(factor, len(living))
        if not fenced & known.keys():
            spread = {known[replica].rack for replica in replicas}
            assert len(spread) == min(factor, len(set(racks)))
    leads = Counter(replicas[0] for replicas in placed)
    assert max(leads.values()) - min(leads[node_id] for node_id in living) <= 1


def test_same_chance_gives_the_same_placement() -> None:
    known = brokers({1: "a", 2: "a", 3: "b"})
    first, second = (
        place(known, partitions=20, replication_factor=2, rng=Random(5)) for _ in range(2)
    )
    assert first == second


def test_followers_are_spread_over_the_brokers() -> None:
    known = brokers(dict.fromkeys(range(1, 6)))
    placed = place(known, partitions=100, replication_factor=3, rng=Random(5))
    load = Counter(replica for replicas in placed for replica in replicas)
    assert max(load.values()) - min(load.values()) <= 20


def test_impossible_factors_are_refused_with_kafkas_sentences() -> None:
    known = brokers({1: None, 2: None})
    with pytest.raises(PlacementError, match=r"only 2 broker\(s\) are registered") as raised:
        place(known, partitions=1, replication_factor=3, rng=Random(0))
    assert raised.value.error == ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(PlacementError, match="All brokers are currently fenced"):
        place(brokers({1: None}, {1}), partitions=1, replication_factor=1, rng=Random(0))


def test_brokers_that_are_shutting_down_get_no_replicas() -> None:
    known = brokers({1: None, 2: None})
    known[2] = replace(known[2], in_controlled_shutdown=True)
    placed = place(known, partitions=5, replication_factor=1, rng=Random(0))
    assert set(placed) == {(1,)}


@pytest.mark.parametrize("bad", [[[]], [[1, 1]], [[7]], [[1, 2], [1]]])
def test_illegal_manual_assignments_are_refused(bad: list[list[int]]) -> None:
    with pytest.raises(PlacementError) as raised:
        check_assignment(bad, brokers({1: None, 2: None}))
    assert raised.value.error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
