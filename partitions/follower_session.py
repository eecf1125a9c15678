"""The follower's end of an incremental fetch session (KIP-227). Pure.

A request names only partitions whose position changed since they were last named, and forgets those
no longer wanted. The known watermark alone is no change: the leader remembers what it told.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from uuid import UUID

from ..wire import ErrorCode
from ..wire.messages.fetch import FetchRequest, FetchResponse
from .fetch_session import INITIAL_EPOCH, MAX_EPOCH, NO_SESSION
from .follower import FetchPosition

VERSION = 18
"""Broker epochs, topic ids and known watermarks are all needed here."""

LOOKED_AT_ONCE = 250
"""Partitions between two turns of the loop (RULES F1)."""

PartitionId = tuple[UUID, int]

_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class FollowerSession:
    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._named: dict[PartitionId, FetchPosition] = {}

    def reset(self) -> None:
        """The connection is another one, or the leader has forgotten: begin with a full request."""
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._named = {}

    def request(
        self,
        positions: Mapping[PartitionId, FetchPosition],
        *,
        replica_id: int,
        broker_epoch: int,
        max_bytes: int,
        partition_max_bytes: int,
    ) -> Generator[None, None, FetchRequest]:
        """The next request but for its `max_wait_ms`, in steps; afterwards the leader's memory is
        taken to be `positions`, which do not change meanwhile."""
        changed = []
        known = 0
        for number, (key, position) in enumerate(positions.items(), start=1):
            named = self._named.get(key)
            known += named is not None
            if named is not position and _differs(named, position):
                changed.append((key, position))
            if number % LOOKED_AT_ONCE == 0:
                yield
        topics = yield from _topics(changed, partition_max_bytes)
        forgotten = []
        if known < len(self._named):
            forgotten = [key for key in self._named if key not in positions]
        self._named = dict(positions)
        return FetchRequest(
            replica_state=FetchRequest.ReplicaState(
                replica_id=replica_id, replica_epoch=broker_epoch
            ),
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=topics,
            forgotten_topics_data=list(_forgotten(forgotten)),
        )

    def on_response(self, response: FetchResponse) -> bool:
        """False when the session is gone and the request must be made anew."""
        if response.error_code in _SESSION_ERRORS:
            self.reset()
            return False
        if response.session_id == NO_SESSION:
            # No room for a session: full requests, then.
            self.reset()
        else:
            self._session_id = response.session_id
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1
        return True


def _differs(named: FetchPosition | None, position: FetchPosition) -> bool:
    return named is None or (
        named.fetch_offset,
        named.leader_epoch,
        named.last_fetched_epoch,
        named.log_start_offset,
    ) != (
        position.fetch_offset,
        position.leader_epoch,
        position.last_fetched_epoch,
        position.log_start_offset,
    )


def _topics(
    changed: list[tuple[PartitionId, FetchPosition]], partition_max_bytes: int
) -> Generator[None, None, list[FetchRequest.FetchTopic]]:
    topics: dict[UUID, FetchRequest.FetchTopic] = {}
    for number, ((topic_id, partition), position) in enumerate(changed, start=1):
        if number % LOOKED_AT_ONCE == 0:
            yield
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = FetchRequest.FetchTopic(topic_id=topic_id)
        topic.partitions.append(
            FetchRequest.FetchPartition(
                partition=partition,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.fetch_offset,
                last_fetched_epoch=position.last_fetched_epoch,
                log_start_offset=position.log_start_offset,
                partition_max_bytes=partition_max_bytes,
                high_watermark=position.high_watermark,
            )
        )
    return list(topics.values())


def _forgotten(keys: list[PartitionId]) -> Iterator[FetchRequest.ForgottenTopic]:
    topics: dict[UUID, FetchRequest.ForgottenTopic] = {}
    for topic_id, partition in keys:
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = FetchRequest.ForgottenTopic(topic_id=topic_id)
        topic.partitions.append(partition)
    yield from topics.values()
