"""Sets of partitions against Python's own sets."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from logboat.groups.consumer.partition_sets import (
    common,
    overlap,
    pairs,
    partition_set,
    size,
    united,
    without,
)

some_pairs = st.sets(st.tuples(st.integers(1, 4).map(lambda n: UUID(int=n)), st.integers(0, 6)))


@given(one=some_pairs, other=some_pairs)
def test_they_are_what_sets_are(one: set[tuple[UUID, int]], other: set[tuple[UUID, int]]) -> None:
    left, right = partition_set(one), partition_set(other)
    for ours, theirs in (
        (united(left, right), one | other),
        (common(left, right), one & other),
        (without(left, right), one - other),
    ):
        assert pairs(ours) == sorted(theirs, key=lambda pair: (pair[0].int, pair[1]))
        assert ours == partition_set(theirs)
        assert size(ours) == len(theirs)
    assert overlap(left, right) == bool(one & other)
