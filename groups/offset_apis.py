"""OffsetCommit, OffsetFetch and OffsetDelete on wire objects."""

from __future__ import annotations

from ..wire import ErrorCode
from ..wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ..wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ..wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from .consumer.group import ConsumerGroup
from .consumer.seen_topics import SeenTopics
from .coordinator_core import CoordinatorCore, Held, now_ms
from .expiry import read_by
from .log_records import LogRecord, OffsetRecord
from .offsets import CommittedOffset, GroupOffsets
from .offsets_partition import OffsetsPartition
from .states import GroupState
from .subscriptions import speaks_consumer_protocol, subscribed_topics

CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
CommitPartition = CommitTopic.OffsetCommitRequestPartition
CommitTopicAnswer = OffsetCommitResponse.OffsetCommitResponseTopic
CommitAnswer = CommitTopicAnswer.OffsetCommitResponsePartition
FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup
FetchTopic = FetchGroup.OffsetFetchRequestTopics
FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup
FetchedTopic = FetchedGroup.OffsetFetchResponseTopics
FetchedPartition = FetchedTopic.OffsetFetchResponsePartitions
DeleteTopic = OffsetDeleteRequest.OffsetDeleteRequestTopic
DeletedTopic = OffsetDeleteResponse.OffsetDeleteResponseTopic
DeletedPartition = DeletedTopic.OffsetDeleteResponsePartition

NO_OFFSET = -1
"""OffsetFetch: the group has not committed for this partition."""

FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCHS = 9
FIRST_COMMIT_VERSION_WITH_TOPIC_IDS = 10
FIRST_FETCH_VERSION_WITH_GROUPS = 8
FIRST_FETCH_VERSION_WITH_TOPIC_IDS = 10


class OffsetApis(CoordinatorCore):
    async def offset_commit(
        self, request: OffsetCommitRequest, version: int
    ) -> OffsetCommitResponse:
        """OffsetCommit 2-10; names topics by id from version 10. Answered when replicated."""
        found = self._find(request.group_id)
        group: ConsumerGroup | None = None
        if isinstance(found, Held):
            error = self._check_commit(found, request, version)
            group = found.state.consumer_groups.get(request.group_id)
        else:
            error = found
        answers: list[CommitTopicAnswer] = []
        records: list[LogRecord] = []
        written: list[CommitAnswer] = []
        for topic in request.topics:
            name, unknown = self._topic_name(request_topic=topic, version=version)
            answer = CommitTopicAnswer(name=topic.name, topic_id=topic.topic_id)
            for part in topic.partitions:
                verdict = error
                if verdict is ErrorCode.NONE:
                    verdict = unknown or self._check_partition(name, part)
                if group is not None and verdict is ErrorCode.NONE:
                    topic_id = self._image().topics[name].topic_id
                    if group.held_by_another(request.member_id, (topic_id, part.partition_index)):
                        verdict = ErrorCode.STALE_MEMBER_EPOCH
                response = CommitAnswer(partition_index=part.partition_index, error_code=verdict)
                answer.partitions.append(response)
                if verdict is ErrorCode.NONE:
                    written.append(response)
                    records.append(self._offset_record(request, name, part))
            answers.append(answer)
        if isinstance(found, Held) and records:
            outcome = await self._write(found, records)
            for response in written:
                response.error_code = outcome
        return OffsetCommitResponse(topics=answers)

    def _check_commit(self, found: Held, request: OffsetCommitRequest, version: int) -> ErrorCode:
        generation_id = request.generation_id_or_member_epoch
        consumer_group = found.state.consumer_groups.get(request.group_id)
        if consumer_group is not None:
            knows_epochs = version >= FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCHS
            return consumer_group.check_commit(
                request.member_id, generation_id, knows_epochs=knows_epochs
            )
        group = found.state.groups.get(request.group_id)
        if group is None:
            if generation_id < 0:
                self._group(found, request.group_id)  # offsets without members
                return ErrorCode.NONE
            return ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
        error = group.may_commit(
            request.member_id, request.group_instance_id, generation_id, now_ms()
        )
        self._arm_timer(found, group)
        return error

    def _topic_name(
        self, *, request_topic: CommitTopic, version: int
    ) -> tuple[str, ErrorCode | None]:
        if version < FIRST_COMMIT_VERSION_WITH_TOPIC_IDS:
            return request_topic.name, None
        topic = self._image().topic_by_id(request_topic.topic_id)
        return ("", ErrorCode.UNKNOWN_TOPIC_ID) if topic is None else (topic.name, None)

    def _check_partition(self, name: str, part: CommitPartition) -> ErrorCode:
        if len((part.committed_metadata or "").encode()) > self._settings.max_metadata_bytes:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        if self._image().partition(name, part.partition_index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    def _offset_record(
        self, request: OffsetCommitRequest, topic: str, part: CommitPartition
    ) -> OffsetRecord:
        wall_ms = self._clock.now_ms()
        keep_ms = request.retention_time_ms
        committed = CommittedOffset(
            offset=part.committed_offset,
            leader_epoch=part.committed_leader_epoch,
            metadata=part.committed_metadata or "",
            commit_timestamp_ms=wall_ms,
            expire_timestamp_ms=wall_ms + keep_ms if keep_ms >= 0 else -1,
        )
        return OffsetRecord(request.group_id, topic, part.partition_index, committed)

    async def offset_fetch(self, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
        """OffsetFetch 1-10: one group before version 8, several from then on (KIP-709).

        Version 7 added `require_stable`: where a transaction is open nobody knows the offset yet
        (KIP-447)."""
        if version >= FIRST_FETCH_VERSION_WITH_GROUPS:
            return OffsetFetchResponse(
                groups=[
                    self._fetch_group(group, version, request.require_stable)
                    for group in request.groups
                ]
            )
        found = self._find(request.group_id)
        if not isinstance(found, Held):
            return self._failed_fetch(request, version, found)
        offsets = found.state.offsets_of(request.group_id)
        wanted: dict[str, list[int]] = (
            offsets.by_topic()
            if request.topics is None
            else {topic.name: topic.partition_indexes for topic in request.topics}
        )
        topics = []
        for name, partitions in wanted.items():
            answer = OffsetFetchResponse.OffsetFetchResponseTopic(name=name)
            for partition in partitions:
                error, offset, epoch, metadata = _committed(
                    offsets, name, partition, stable=request.require_stable
                )
                answer.partitions.append(
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=epoch,
                        metadata=metadata,
                        error_code=error,
                    )
                )
            topics.append(answer)
        return OffsetFetchResponse(topics=topics)

    def _failed_fetch(
        self, request: OffsetFetchRequest, version: int, error: ErrorCode
    ) -> OffsetFetchResponse:
        if version >= 2:
            return OffsetFetchResponse(error_code=error)
        # Version 1 has no place for an error but the partitions.
        topics = [
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        partition_index=partition,
                        committed_offset=NO_OFFSET,
                        metadata="",
                        error_code=error,
                    )
                    for partition in topic.partition_indexes
                ],
            )
            for topic in request.topics or []
        ]
        return OffsetFetchResponse(topics=topics)

    def _fetch_group(self, group: FetchGroup, version: int, stable: bool) -> FetchedGroup:
        answer = FetchedGroup(group_id=group.group_id)
        found = self._find(group.group_id)
        if not isinstance(found, Held):
            answer.error_code = found
            return answer
        consumer_group = found.state.consumer_groups.get(group.group_id)
        if consumer_group is not None:
            error = consumer_group.check_fetch(group.member_id, group.member_epoch)
            if error is not ErrorCode.NONE:
                answer.error_code = error
                return answer
        offsets = found.state.offsets_of(group.group_id)
        if group.topics is None:
            for name, partitions in offsets.by_topic().items():
                answer.topics.append(self._fetch_topic(offsets, name, partitions, stable))
            return answer
        for topic in group.topics:
            name = topic.name
            if version >= FIRST_FETCH_VERSION_WITH_TOPIC_IDS:
                known = self._image().topic_by_id(topic.topic_id)
                if known is None:
                    answer.topics.append(_unknown_topic(topic))
                    continue
                name = known.name
            partitions = topic.partition_indexes
            answer.topics.append(self._fetch_topic(offsets, name, partitions, stable))
        return answer

    def _fetch_topic(
        self, offsets: GroupOffsets, name: str, partitions: list[int], stable: bool
    ) -> FetchedTopic:
        known = self._image().topics.get(name)
        answer = FetchedTopic(name=name)
        if known is not None:
            answer.topic_id = known.topic_id
        for partition in partitions:
            error, offset, epoch, metadata = _committed(offsets, name, partition, stable=stable)
            answer.partitions.append(
                FetchedPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    metadata=metadata,
                    error_code=error,
                )
            )
        return answer

    async def offset_delete(
        self, request: OffsetDeleteRequest, version: int
    ) -> OffsetDeleteResponse:
        """OffsetDelete 0: not of topics that the group is reading (KIP-496)."""
        found = self._find(request.group_id)
        if not isinstance(found, Held):
            return OffsetDeleteResponse(error_code=found)
        if not found.state.knows(request.group_id):
            return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
        matches = await self._matches_of(found.state, request.group_id)
        reads = _topics_in_use(found.state, request.group_id, SeenTopics(self._image(), matches))
        if isinstance(reads, ErrorCode):
            return OffsetDeleteResponse(error_code=reads)
        free = [t for t in request.topics if reads is not None and t.name not in reads]
        offsets = found.state.offsets_of(request.group_id)
        records: list[LogRecord] = [
            OffsetRecord(request.group_id, topic.name, part.partition_index, None)
            for topic in free
            for part in topic.partitions
            if offsets.get(topic.name, part.partition_index) is not None
        ]
        outcome = await self._write(found, records) if records else ErrorCode.NONE
        return OffsetDeleteResponse(
            topics=[
                _deleted(t, outcome if t in free else ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                for t in request.topics
            ]
        )


def _topics_in_use(
    state: OffsetsPartition, group_id: str, seen: SeenTopics
) -> frozenset[str] | ErrorCode | None:
    """What the group's members read; None when they do not say."""
    consumer_group = state.consumer_groups.get(group_id)
    if consumer_group is not None:
        return read_by(consumer_group, seen)
    group = state.groups.get(group_id)
    if group is None or group.state is GroupState.EMPTY:
        return frozenset()
    if not speaks_consumer_protocol(group):
        return ErrorCode.NON_EMPTY_GROUP
    return subscribed_topics(group)


def _deleted(topic: DeleteTopic, error: ErrorCode) -> DeletedTopic:
    return DeletedTopic(
        name=topic.name,
        partitions=[
            DeletedPartition(partition_index=part.partition_index, error_code=error)
            for part in topic.partitions
        ],
    )


def _committed(
    offsets: GroupOffsets, topic: str, partition: int, *, stable: bool
) -> tuple[ErrorCode, int, int, str]:
    """(error, offset, leader epoch, metadata), with Kafka's values for "never committed"."""
    if stable and offsets.is_pending(topic, partition):
        return ErrorCode.UNSTABLE_OFFSET_COMMIT, NO_OFFSET, -1, ""
    committed = offsets.get(topic, partition)
    if committed is None:
        return ErrorCode.NONE, NO_OFFSET, -1, ""
    return ErrorCode.NONE, committed.offset, committed.leader_epoch, committed.metadata


def _unknown_topic(
    topic: FetchTopic,
) -> FetchedTopic:
    return FetchedTopic(
        topic_id=topic.topic_id,
        partitions=[
            FetchedPartition(
                partition_index=partition,
                committed_offset=NO_OFFSET,
                metadata="",
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            )
            for partition in topic.partition_indexes
        ],
    )
