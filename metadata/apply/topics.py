"""Topics and partitions come and go."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ...wire import ErrorCode
from ..commands import CreatePartitions, CreateTopics, DeleteTopics, MorePartitions, NewTopic
from ..draft import ImageDraft
from ..image import ClusterImage, PartitionImage, TopicImage
from ..results import Item, Result
from ..steps import TOPIC, Steps, slices
from ..topic_names import colliding_form

Applied = tuple[ClusterImage, Result]


def create_topics(image: ClusterImage, index: int, command: CreateTopics) -> Steps[Applied]:
    draft = ImageDraft(image)
    # Built once per command: with many topics a search per new topic would be quadratic.
    taken = {colliding_form(name): name for name in image.topics}
    items = []
    for new in command.topics:
        item = yield from _create_topic(draft, taken, new)
        items.append(replace(item, topic=new.name))
    return draft.finish(), Result(items=tuple(items))


def _create_topic(draft: ImageDraft, taken: dict[str, str], new: NewTopic) -> Steps[Item]:
    yield TOPIC
    if new.name in draft.topics:
        return Item(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
    form = colliding_form(new.name)
    if form in taken:
        return Item(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{new.name}' collides with existing topic: {taken[form]}",
        )
    if draft.topic_by_id(new.topic_id) is not None:
        return Item(ErrorCode.UNKNOWN_SERVER_ERROR, f"topic id {new.topic_id} is in use")
    partitions = yield from _fresh_partitions(draft, 0, new.assignments)
    if isinstance(partitions, Item):
        return partitions
    taken[form] = new.name
    draft.put_topic(
        TopicImage(
            name=new.name,
            topic_id=new.topic_id,
            partitions=partitions,
            min_insync_replicas=new.min_insync_replicas,
            flush_messages=new.flush_messages,
            configs=MappingProxyType(dict(new.configs)),
            unclean_leader_election=new.unclean_leader_election,
        )
    )
    return Item(topic_id=new.topic_id)


def _fresh_partitions(
    draft: ImageDraft, first: int, assignments: tuple[tuple[int, ...], ...]
) -> Steps[tuple[PartitionImage, ...] | Item]:
    """Or why there cannot be one of them."""
    partitions: list[PartitionImage] = []
    for piece in slices(assignments):
        for replicas in piece:
            fresh = _fresh_partition(draft, first + len(partitions), replicas)
            if isinstance(fresh, Item):
                return fresh
            partitions.append(fresh)
        yield len(piece)
    return tuple(partitions)


def _fresh_partition(
    draft: ImageDraft, number: int, replicas: tuple[int, ...]
) -> PartitionImage | Item:
    """An empty log is in sync with itself: every living replica starts in the ISR."""
    for replica in replicas:
        if replica not in draft.brokers:
            return Item(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes broker {replica}, but no such broker "
                f"is registered.",
            )
    isr = tuple(replica for replica in replicas if draft.acceptable(replica))
    if not isr:
        return Item(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the partition assignment for partition {number} are fenced "
            f"or in controlled shutdown.",
        )
    return PartitionImage(
        partition=number,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
    )


def delete_topics(image: ClusterImage, index: int, command: DeleteTopics) -> Steps[Applied]:
    draft = ImageDraft(image)
    items = []
    for topic_id in command.topic_ids:
        yield TOPIC
        topic = draft.topic_by_id(topic_id)
        if topic is None:
            message = f"there is no topic {topic_id}"
            items.append(Item(ErrorCode.UNKNOWN_TOPIC_ID, message, topic_id=topic_id))
        else:
            draft.remove_topic(topic)
            items.append(Item(topic=topic.name, topic_id=topic_id))
    return draft.finish(), Result(items=tuple(items))


def create_partitions(image: ClusterImage, index: int, command: CreatePartitions) -> Steps[Applied]:
    draft = ImageDraft(image)
    items = []
    for more in command.topics:
        items.append((yield from _add_partitions(draft, more)))
    return draft.finish(), Result(items=tuple(items))


def _add_partitions(draft: ImageDraft, more: MorePartitions) -> Steps[Item]:
    yield TOPIC
    topic = draft.topic_by_id(more.topic_id)
    if topic is None:
        return Item(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    if len(topic.partitions) != more.first_partition:
        return Item(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {len(topic.partitions)} partitions, not {more.first_partition} "
            f"as when the change was computed.",
        )
    added = yield from _fresh_partitions(draft, more.first_partition, more.assignments)
    if isinstance(added, Item):
        return added
    draft.put_topic(replace(topic, partitions=(*topic.partitions, *added)))
    return Item()
