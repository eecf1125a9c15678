"""Changes of ISR and leader that somebody asks for (RULES C1, D2, D3, D8; KIP-497, 903, 460)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ...wire import ErrorCode
from ..commands import (
    AlterPartition,
    ElectionType,
    ElectLeaders,
    IsrChange,
    PartitionId,
    ReorderReplicas,
    ReplicaOrder,
    ReplicasLost,
)
from ..draft import ImageDraft
from ..elections import ElectionRules, change_partition
from ..image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from ..results import Item, Result
from ..steps import DECISION, Steps
from .incarnations import stale_incarnation

Applied = tuple[ClusterImage, Result]
Wanted = TypeVar("Wanted")


def alter_partition(image: ClusterImage, index: int, command: AlterPartition) -> Steps[Applied]:
    """Compare-and-set on the partition epoch; each partition stands for itself."""
    stale = stale_incarnation(image, command.broker_id, command.broker_epoch)
    if stale is not None:
        return image, stale
    draft = ImageDraft(image)
    decide = partial(_change_isr, draft, command.broker_id)
    return (yield from _one_by_one(draft, decide, command.changes))


def _change_isr(draft: ImageDraft, proposer: int, change: IsrChange) -> Item:
    topic = draft.topic_by_id(change.topic_id)
    if topic is None:
        return Item(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic {change.topic_id}")
    partition = draft.partition(topic, change.partition)
    if partition is None:
        return Item(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic.name} has no {change.partition}")
    error = _refusal(draft, proposer, partition, change)
    if error != ErrorCode.NONE:
        return Item(error, f"{topic.name}-{partition.partition}: {error.name}")
    after = change_partition(
        partition,
        draft.rules(topic),
        isr=tuple(member.broker_id for member in change.new_isr),
    )
    draft.put_partition(topic, after)
    if after.leader != partition.leader:
        return Item(ErrorCode.NEW_LEADER_ELECTED, partition=after)
    return Item(partition=after)


def _refusal(
    draft: ImageDraft, proposer: int, partition: PartitionImage, change: IsrChange
) -> ErrorCode:
    """Kafka's refusals in Kafka's order (facts of KRaft, AlterPartition)."""
    if (
        change.leader_epoch > partition.leader_epoch
        or change.partition_epoch > partition.partition_epoch
    ):
        # The asker has seen more than this image holds: it is this controller that is stale.
        return ErrorCode.NOT_CONTROLLER
    if change.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if proposer != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if change.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = [member.broker_id for member in change.new_isr]
    if proposer not in members or len(members) != len(set(members)):
        return ErrorCode.INVALID_REQUEST
    if any(member not in partition.replicas for member in members):
        return ErrorCode.INVALID_REQUEST
    for member in change.new_isr:
        broker = draft.brokers.get(member.broker_id)
        if broker is None or not broker.active:
            return ErrorCode.INELIGIBLE_REPLICA
        if member.broker_epoch not in (-1, broker.broker_epoch):
            # It restarted since the leader looked: what it fetched then says nothing (KIP-903).
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def elect_leaders(image: ClusterImage, index: int, command: ElectLeaders) -> Steps[Applied]:
    """Hand the lead to the preferred leader, or elect uncleanly where nobody leads (KIP-460)."""
    draft = ImageDraft(image)
    elect = _elect_preferred if command.election == ElectionType.PREFERRED else _elect_unclean

    def decide(wanted: PartitionId) -> Item:
        topic, partition = _find(draft, wanted)
        if topic is None or partition is None:
            return Item(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such partition")
        return elect(draft, topic, partition)

    return (yield from _one_by_one(draft, decide, command.partitions))


def _elect_preferred(draft: ImageDraft, topic: TopicImage, partition: PartitionImage) -> Item:
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        return Item(ErrorCode.ELECTION_NOT_NEEDED, "the preferred leader leads already")
    after = change_partition(partition, draft.rules(topic), prefer=True)
    if after.leader != preferred:
        return Item(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"the preferred leader {preferred} is not alive and in sync",
        )
    draft.put_partition(topic, after)
    return Item(partition=after)


def _elect_unclean(draft: ImageDraft, topic: TopicImage, partition: PartitionImage) -> Item:
    if partition.leader != NO_LEADER:
        return Item(ErrorCode.ELECTION_NOT_NEEDED, f"broker {partition.leader} leads")
    rules = ElectionRules(draft.acceptable, topic.min_insync_replicas, unclean_allowed=True)
    after = change_partition(partition, rules)
    if after.leader == NO_LEADER:
        return Item(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "no replica is alive")
    draft.put_partition(topic, after)
    return Item(partition=after)


def reorder_replicas(image: ClusterImage, index: int, command: ReorderReplicas) -> Steps[Applied]:
    """Another preferred leader, and another order of candidates in elections to come (KIP-455).

    Nobody's duties change: the leader leads on in its epoch, and who is in sync or eligible stays
    so. The new preferred leader takes over by an election of its own, as after any restart.
    """
    draft = ImageDraft(image)
    return (yield from _one_by_one(draft, partial(_reorder, draft), command.partitions))


def _reorder(draft: ImageDraft, wanted: ReplicaOrder) -> Item:
    topic, partition = _find(draft, PartitionId(wanted.topic_id, wanted.partition))
    if topic is None or partition is None:
        return Item(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such partition")
    if sorted(wanted.replicas) != sorted(partition.replicas):
        return Item(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"the replicas are {list(partition.replicas)}; their order can be changed, and nothing "
            "else",
        )
    if wanted.replicas == partition.replicas:
        return Item(partition=partition)

    def in_order(members: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([replica for replica in wanted.replicas if replica in members])

    after = replace(
        partition,
        replicas=wanted.replicas,
        isr=in_order(partition.isr),
        elr=in_order(partition.elr),
        last_known_elr=in_order(partition.last_known_elr),
        partition_epoch=partition.partition_epoch + 1,
    )
    draft.put_partition(topic, after)
    return Item(partition=after)


def replicas_lost(image: ClusterImage, index: int, command: ReplicasLost) -> Steps[Applied]:
    """The broker's logs lack what they once held: out of ISR and ELR in both modes (RULES C1).

    It comes back by fetching, like a replica that never had anything. Until then it is no last
    known leader either; where the topic allows unclean elections it leads only if nobody else can.

    A leader that stays leads in a new epoch: what the replica confirmed in the old one would let it
    into the ISR again at once, and a request of it may be under way.
    """
    stale = stale_incarnation(image, command.broker_id, command.broker_epoch)
    if stale is not None:
        return image, stale
    draft = ImageDraft(image)
    decide = partial(_lose, draft, command.broker_id)
    return (yield from _one_by_one(draft, decide, command.partitions))


def _lose(draft: ImageDraft, broker_id: int, lost: PartitionId) -> Item:
    topic, partition = _find(draft, lost)
    if topic is None:
        return Item(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic {lost.topic_id}")
    if partition is None or broker_id not in partition.replicas:
        return Item(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{broker_id} is no replica")
    rules = draft.rules(topic)
    others = replace(rules, acceptable=lambda node: node != broker_id and rules.acceptable(node))
    after = change_partition(
        partition,
        others,
        isr=tuple(member for member in partition.isr if member != broker_id),
        lost_data=broker_id,
        lost_disk=True,
    )
    if after.leader == NO_LEADER and after is not partition:
        elected = change_partition(after, rules)
        # One step for the outside, though it took two; and whoever leads, leads in a new epoch.
        leads = elected.leader != NO_LEADER or partition.leader != NO_LEADER
        after = replace(
            elected,
            leader_epoch=partition.leader_epoch + leads,
            partition_epoch=partition.partition_epoch + 1,
        )
    elif after.leader == partition.leader != NO_LEADER:
        after = replace(
            after,
            leader_epoch=partition.leader_epoch + 1,
            partition_epoch=partition.partition_epoch + 1,
        )
    draft.put_partition(topic, after)
    return Item(partition=after)


def _one_by_one(
    draft: ImageDraft, decide: Callable[[Wanted], Item], wanted: Iterable[Wanted]
) -> Steps[Applied]:
    items = []
    for one in wanted:
        items.append(decide(one))
        yield DECISION
    return draft.finish(), Result(items=tuple(items))


def _find(
    draft: ImageDraft, wanted: PartitionId
) -> tuple[TopicImage | None, PartitionImage | None]:
    topic = draft.topic_by_id(wanted.topic_id)
    return topic, None if topic is None else draft.partition(topic, wanted.partition)
