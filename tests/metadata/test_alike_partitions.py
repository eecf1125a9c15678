"""What is decided once for all partitions that are alike is what each by itself would come to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logboat.metadata.elections import Alike, ElectionRules, change_partition
from logboat.metadata.image import NO_LEADER, PartitionImage

BROKERS = (1, 2, 3, 4)

members = st.lists(st.sampled_from(BROKERS), unique=True, max_size=3).map(tuple)
somebody = st.sampled_from((*BROKERS, NO_LEADER))
partitions = st.builds(
    PartitionImage,
    partition=st.integers(0, 99),
    replicas=st.permutations(BROKERS).map(lambda order: tuple(order[:3])),
    isr=members,
    leader=somebody,
    leader_epoch=st.integers(0, 9),
    partition_epoch=st.integers(0, 9),
    elr=members,
    last_known_elr=members,
    last_known_leader=somebody,
    adding_replicas=members,
    removing_replicas=members,
)


@given(
    st.lists(partitions, min_size=1, max_size=8),
    st.sets(st.sampled_from(BROKERS)),
    st.sampled_from((None, 1)),
    st.booleans(),
)
def test_each_partition_becomes_what_it_would_by_itself(
    found: list[PartitionImage], living: set[int], lost_data: int | None, unclean: bool
) -> None:
    rules = ElectionRules(living.__contains__, min_insync_replicas=2, unclean_allowed=unclean)

    def change(partition: PartitionImage) -> PartitionImage:
        return change_partition(partition, rules, lost_data=lost_data)

    alike = Alike(change)
    # Twice, with other epochs: the second time nothing is decided any more.
    again = [
        PartitionImage(
            partition.partition + 1,
            partition.replicas,
            partition.isr,
            partition.leader,
            partition.leader_epoch + 3,
            partition.partition_epoch + 5,
            partition.elr,
            partition.last_known_elr,
            partition.last_known_leader,
            partition.adding_replicas,
            partition.removing_replicas,
        )
        for partition in found
    ]
    for partition in (*found, *again):
        after = alike.change(partition)
        assert after == change(partition)
        assert (after is partition) == (change(partition) is partition)
