"""A member of a consumer group, as the consumer protocol (KIP-848) has it. No I/O, no clock.

    subscribe -> beat (epoch 0: joins) -> heard: assignment -> beat -> ...
                      ^                                |
                      +-- fenced: all is given up -----+

Every beat says everything (subscription, what is owned), so that an answer that was lost on its way
is simply told again. What an answer takes away is given up when it is heard; the next beat says so,
which frees it for its next owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from uuid import UUID

from ....seam import frozen
from ....wire import ErrorCode
from ....wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

REBALANCE_TIMEOUT_MS = 60_000
"""How long the group waits for this member to give something up; the node does so at once."""

JOINING, LEAVING = 0, -1

Place = tuple[UUID, int]
"""(topic id, partition)."""

_FENCED = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID}
)
_LATER = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class Standing(Enum):
    OUTSIDE = "outside"
    """It has not asked for anything, or has left."""
    JOINING = "joining"
    """Its first beat is unanswered."""
    MEMBER = "member"
    REFUSED = "refused"
    """The group takes no such member; only another subscription makes it try again."""


@frozen
class Heard:
    """What an answer changed."""

    revoked: frozenset[Place] = frozenset()
    added: frozenset[Place] = frozenset()
    beat_again: bool = False
    """At once: the coordinator waits for it, or it must join anew."""


class Membership:
    def __init__(self, group_id: str, member_id: str) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = JOINING
        self.topics: tuple[str, ...] = ()
        self.pattern: str | None = None
        self.owned: frozenset[Place] = frozenset()
        self.standing = Standing.OUTSIDE
        self.refusal: tuple[ErrorCode, str | None] | None = None
        """Why it is REFUSED."""
        self._spoke = False
        """The coordinator may know it."""

    @property
    def subscribed(self) -> bool:
        return self.standing is not Standing.OUTSIDE

    def subscribe(self, topics: Iterable[str], pattern: str | None) -> None:
        """In force with the next beat; it replaces what was asked for before."""
        self.topics = tuple(sorted(set(topics)))
        self.pattern = pattern
        self.refusal = None
        if self.standing is not Standing.MEMBER:
            self.standing, self.epoch = Standing.JOINING, JOINING

    def beat(self) -> ConsumerGroupHeartbeatRequest:
        self._spoke = True
        by_topic: dict[UUID, list[int]] = {}
        for topic_id, partition in sorted(self.owned):
            by_topic.setdefault(topic_id, []).append(partition)
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=list(self.topics),
            # Empty: there is none any more.
            subscribed_topic_regex=self.pattern or "",
            topic_partitions=[
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic, partitions=numbers)
                for topic, numbers in by_topic.items()
            ],
        )

    def heard(self, answer: ConsumerGroupHeartbeatResponse) -> Heard:
        """To be called with the answers of `beat` in their order."""
        if not self.subscribed:
            return Heard()
        if answer.error_code != ErrorCode.NONE:
            return self._refused(answer)
        self.standing = Standing.MEMBER
        moved = self.epoch != answer.member_epoch and self.epoch != JOINING
        self.epoch = answer.member_epoch
        if answer.assignment is None:
            return Heard(beat_again=moved)
        now = frozenset(
            (topic.topic_id, partition)
            for topic in answer.assignment.topic_partitions
            for partition in topic.partitions
        )
        revoked, added = self.owned - now, now - self.owned
        self.owned = now
        return Heard(revoked, added, beat_again=moved or bool(revoked) or bool(added))

    def _refused(self, answer: ConsumerGroupHeartbeatResponse) -> Heard:
        try:
            error = ErrorCode(answer.error_code)
        except ValueError:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        if error in _LATER:
            return Heard()
        vanished = error is ErrorCode.GROUP_ID_NOT_FOUND and self.epoch != JOINING
        lost, self.owned, self.epoch = self.owned, frozenset(), JOINING
        if error in _FENCED or vanished:
            self.standing = Standing.JOINING
            return Heard(revoked=lost, beat_again=True)
        self.standing = Standing.REFUSED
        self.refusal = (error, answer.error_message)
        return Heard(revoked=lost)

    def leave(self) -> ConsumerGroupHeartbeatRequest | None:
        """What tells the coordinator; None when it cannot know of such a member."""
        known, self._spoke = self._spoke, False
        self.standing, self.owned, self.epoch = Standing.OUTSIDE, frozenset(), JOINING
        self.topics, self.pattern, self.refusal = (), None, None
        if not known:
            return None
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=LEAVING
        )
