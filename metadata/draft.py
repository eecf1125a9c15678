"""An image under construction: what one command changes, sharing all the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any
from uuid import UUID

from .elections import Alike, ElectionRules, change_partition
from .image import NO_LEADER, BrokerImage, ClusterImage, PartitionImage, TopicImage
from .steps import TOPIC, Steps, slices


class ImageDraft:
    """Starts as a copy of `image`; `finish` freezes it. Lives for one command."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._brokers: dict[int, BrokerImage] | None = None
        self._topics: dict[str, TopicImage] | None = None
        self._topic_names: dict[UUID, str] | None = None
        self._edited: dict[str, list[PartitionImage]] = {}
        """By topic: its partitions, where single ones were put; `finish` hands them over. A copy of
        thousands for each single one would be quadratic."""
        self._fields: dict[str, Any] = {}
        self._active: frozenset[int] | None = None

    # --- reading ---

    @property
    def brokers(self) -> Mapping[int, BrokerImage]:
        return self._image.brokers if self._brokers is None else self._brokers

    @property
    def topics(self) -> Mapping[str, TopicImage]:
        return self._image.topics if self._topics is None else self._topics

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        """Its partitions are those before any `put_partition`."""
        names = self._image.topic_names if self._topic_names is None else self._topic_names
        name = names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, topic: TopicImage, number: int) -> PartitionImage | None:
        """As it is now."""
        partitions = self._edited.get(topic.name, topic.partitions)
        return partitions[number] if 0 <= number < len(partitions) else None

    def acceptable(self, broker_id: int) -> bool:
        """May this broker lead and join an ISR (RULES D3)?"""
        return broker_id in self._active_brokers()

    def rules(self, topic: TopicImage) -> ElectionRules:
        return ElectionRules(
            acceptable=self._active_brokers().__contains__,
            min_insync_replicas=topic.min_insync_replicas,
            unclean_allowed=topic.unclean_leader_election,
        )

    # --- writing ---

    def put_broker(self, broker: BrokerImage) -> None:
        self._own_brokers()[broker.node_id] = broker

    def remove_broker(self, node_id: int) -> None:
        del self._own_brokers()[node_id]

    def put_topic(self, topic: TopicImage) -> None:
        topics = self._own_topics()
        known = topics.get(topic.name)
        topics[topic.name] = topic
        if known is None or known.topic_id != topic.topic_id:
            self._own_topic_names()[topic.topic_id] = topic.name

    def remove_topic(self, topic: TopicImage) -> None:
        del self._own_topics()[topic.name]
        del self._own_topic_names()[topic.topic_id]

    def put_partition(self, topic: TopicImage, partition: PartitionImage) -> None:
        number = partition.partition
        if self.partition(topic, number) is partition:
            return
        if topic.name not in self._edited:
            self._edited[topic.name] = list(topic.partitions)
        self._edited[topic.name][number] = partition

    def set(self, field: str, value: Any) -> None:
        """Any other field of the image; maps are frozen here."""
        self._fields[field] = MappingProxyType(value) if isinstance(value, dict) else value

    def finish(self) -> ClusterImage:
        for name, partitions in self._edited.items():
            self.put_topic(replace(self.topics[name], partitions=tuple(partitions)))
        changes = dict(self._fields)
        if self._brokers is not None:
            # Sorted, so that whoever walks the map sees the same order after a snapshot.
            changes["brokers"] = MappingProxyType(dict(sorted(self._brokers.items())))
        if self._topics is not None:
            changes["topics"] = MappingProxyType(self._topics)
        if self._topic_names is not None:
            changes["topic_names"] = MappingProxyType(self._topic_names)
        return replace(self._image, **changes) if changes else self._image

    def _own_brokers(self) -> dict[int, BrokerImage]:
        self._active = None
        if self._brokers is None:
            self._brokers = dict(self._image.brokers)
        return self._brokers

    def _active_brokers(self) -> frozenset[int]:
        """Only ever asked for members, never walked through (RULES A1)."""
        if self._active is None:
            self._active = frozenset(id for id, broker in self.brokers.items() if broker.active)
        return self._active

    def _own_topics(self) -> dict[str, TopicImage]:
        if self._topics is None:
            self._topics = dict(self._image.topics)
        return self._topics

    def _own_topic_names(self) -> dict[UUID, str]:
        if self._topic_names is None:
            self._topic_names = dict(self._image.topic_names)
        return self._topic_names

    # --- what follows from a broker's change ---

    def take_away(
        self,
        node_id: int,
        *,
        unclean: bool = False,
        distrusted: bool = False,
        lost_disk: bool = False,
    ) -> Steps[None]:
        """The broker leaves every ISR and leads nothing any more.

        Its image must already say that it is not acceptable. `unclean`: it may have lost what was
        not synced, which concerns page-cache topics only; `distrusted`: a sync has failed, which
        concerns all (RULES C1), as does `lost_disk` (B3).
        """
        events: dict[tuple[bool, int, bool], Alike] = {}
        """By all in which topics differ here."""
        for topic in list(self.topics.values()):
            lossy = lost_disk or distrusted or (unclean and not topic.synced)
            event = lossy, topic.min_insync_replicas, topic.unclean_leader_election
            if event not in events:
                lost_data = node_id if lossy else None
                leave = partial(_leave, node_id, self.rules(topic), lost_data, lost_disk)
                events[event] = Alike(leave)
            yield from self._change_partitions(
                topic, events[event], lambda p: node_id in p.replicas
            )

    def elect_where_leaderless(self, *, among: int) -> Steps[None]:
        """Elections that were impossible may be possible now that broker `among` has come."""
        events: dict[tuple[int, bool], Alike] = {}
        """By all in which topics differ here."""
        for topic in list(self.topics.values()):
            event = topic.min_insync_replicas, topic.unclean_leader_election
            if event not in events:
                events[event] = Alike(partial(change_partition, rules=self.rules(topic)))
            yield from self._change_partitions(
                topic, events[event], lambda p: p.leader == NO_LEADER and among in p.replicas
            )

    def decide_anew(self, topic: TopicImage) -> Steps[None]:
        """Put a topic whose own settings have changed, with what follows for its partitions."""
        event = Alike(partial(change_partition, rules=self.rules(topic)))
        if topic != self.topics[topic.name]:
            self.put_topic(topic)
        yield from self._change_partitions(topic, event, lambda p: True)

    def _change_partitions(
        self, topic: TopicImage, event: Alike, concerns: Callable[[PartitionImage], bool]
    ) -> Steps[None]:
        partitions: list[PartitionImage] = []
        for piece in slices(topic.partitions):
            partitions += [event.change(p) if concerns(p) else p for p in piece]
            yield len(piece)
        if any(new is not old for new, old in zip(partitions, topic.partitions, strict=True)):
            self.put_topic(replace(topic, partitions=tuple(partitions)))
            yield TOPIC


def _leave(
    node_id: int,
    rules: ElectionRules,
    lost_data: int | None,
    lost_disk: bool,
    partition: PartitionImage,
) -> PartitionImage:
    isr = tuple([member for member in partition.isr if member != node_id])
    return change_partition(partition, rules, isr=isr, lost_data=lost_data, lost_disk=lost_disk)
