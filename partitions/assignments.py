"""What the image gives this node, taken up topic by topic, so many partitions in a turn (RULES F1).

The change of one topic may be news for thousands of replicas, as a broker's death is. Noted is only
that there are news; what they are follows from comparing the topic as it was taken up last with the
newest image (by topic id, RULES A7). So whatever came in between is one change, and nothing that
waits here grows with the length of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from uuid import UUID

from ..metadata.image import ClusterImage, ImageChange, TopicImage
from ..seam import frozen
from ..wire import ErrorCode

LOOKED_AT_ONCE = 250
"""Partitions in one turn of the loop, here or not."""


@frozen
class Assigned:
    """A replica of the partition belongs here from now on."""

    topic: str
    partition: int
    topic_id: UUID


@frozen
class Unassigned:
    """It no longer does; `error` is what those who wait for it are told."""

    topic: str
    partition: int
    topic_id: UUID
    error: ErrorCode


@frozen
class Changed:
    """It stays here, and the image tells something new of it."""

    topic: str
    partition: int
    settings: bool
    """Whether the topic's settings are other ones."""


@frozen
class TopicGone:
    topic: str


News = Assigned | Unassigned | Changed | TopicGone


class Assignments:
    """One node's. Pure: told of changes, asked for a turn's worth of news."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._known: dict[str, TopicImage] = {}
        """As taken up last; news of the one under way are part of the way to the next."""
        self._stale: dict[str, None] = {}
        """Topics of which there may be news; oldest first."""
        self._under_way: Iterator[News | None] | None = None
        """What is left of one topic's; None for a partition that has none."""

    @property
    def behind(self) -> bool:
        """Whether the image holds something that was not yet given out."""
        return self._under_way is not None or bool(self._stale)

    def on_first_image(self, image: ClusterImage) -> None:
        self._stale |= dict.fromkeys(image.topics)

    def on_change(self, change: ImageChange) -> None:
        for topics in (change.deleted_topics, change.changed_topics):
            self._stale |= dict.fromkeys(topic.name for topic in topics)

    def take_up(self, image: ClusterImage) -> list[News]:
        """The next news, in order of each partition. `image` is the newest."""
        news: list[News] = []
        left = LOOKED_AT_ONCE
        while left > 0 and self.behind:
            if self._under_way is None:
                name = next(iter(self._stale))
                del self._stale[name]
                self._under_way = self._compare(name, image.topics.get(name))
            looked_at = list(islice(self._under_way, left))
            left -= len(looked_at)
            news += [one for one in looked_at if one is not None]
            if left > 0:
                self._under_way = None
        return news

    def _compare(self, name: str, after: TopicImage | None) -> Iterator[News | None]:
        before = self._known.get(name)
        same = before is not None and after is not None and before.topic_id == after.topic_id
        if before is not None and not same:
            yield TopicGone(name)
        settings = before is None or after is None or before.configs != after.configs
        topic_wide = settings or _minimum(before) != _minimum(after)
        for number in range(max(_count(before), _count(after))):
            old, new = self._hosted(before, number), self._hosted(after, number)
            if before is not None and old is not None and old != new:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                yield Unassigned(
                    name, number, old, ErrorCode.NOT_LEADER_OR_FOLLOWER if same else error
                )
            if new is not None and old != new:
                yield Assigned(name, number, new)
            elif new is None or before is None or after is None:
                yield None
            elif topic_wide or before.partitions[number] is not after.partitions[number]:
                yield Changed(name, number, settings)
            else:
                yield None
        if after is None:
            self._known.pop(name, None)
        else:
            self._known[name] = after

    def _hosted(self, topic: TopicImage | None, number: int) -> UUID | None:
        """The topic's id when a replica of that partition belongs here."""
        if topic is None or number >= len(topic.partitions):
            return None
        return topic.topic_id if self._node_id in topic.partitions[number].replicas else None


def _count(topic: TopicImage | None) -> int:
    return 0 if topic is None else len(topic.partitions)


def _minimum(topic: TopicImage | None) -> int | None:
    return None if topic is None else topic.min_insync_replicas
