"""The clients' own codec, against the product's: two that share no line must agree."""

from __future__ import annotations

from uuid import UUID

import pytest

from logboat.jepsen_style.clients import TopicPartition
from logboat.jepsen_style.clients import consumer_group_requests as requests
from logboat.jepsen_style.clients.batches import encode_batch, scan, values_of
from logboat.jepsen_style.clients.consumer_group_requests import (
    COMMIT_VERSION,
    FETCH_VERSION,
    Beat,
    Owned,
)
from logboat.jepsen_style.clients.primitives import Malformed, Reader
from logboat.jepsen_style.clients.requests import VERSIONS, Api
from logboat.wire import ErrorCode
from logboat.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from logboat.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from logboat.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from logboat.wire.records import Record, batches, decode_records
from logboat.wire.records import encode_batch as encode_by_wire

VALUES = [b"a", b"", b"x" * 300]


def test_wire_reads_what_the_clients_write() -> None:
    data = encode_batch(VALUES, timestamp_ms=77, producer_id=5, producer_epoch=1, base_sequence=9)
    (batch,) = batches(memoryview(data))
    assert [record.value for record in decode_records(batch.view)] == VALUES


def test_the_clients_read_what_wire_writes() -> None:
    data = bytes(encode_by_wire([Record(value=value, timestamp=1) for value in VALUES]))
    assert values_of(data) == list(enumerate(VALUES))


def test_a_batch_cut_off_at_the_end_is_left_out() -> None:
    whole = encode_batch(VALUES, timestamp_ms=1)
    assert values_of(whole + whole[:-1]) == list(enumerate(VALUES))


def test_a_damaged_batch_is_never_taken_for_one() -> None:
    damaged = bytearray(encode_batch(VALUES, timestamp_ms=1))
    damaged[70] ^= 1
    assert list(scan(damaged)) == []
    with pytest.raises(Malformed):
        values_of(bytes(damaged))


TOPIC_ID = bytes(range(16))
ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 7)
BEAT_VERSION = VERSIONS[Api.CONSUMER_GROUP_HEARTBEAT]


def test_wire_reads_the_heartbeats_of_the_consumer_protocol() -> None:
    owned = [Owned(TOPIC_ID, (0, 7))]
    full = requests.heartbeat_request(
        "g", "m", 3, topics=["t"], rebalance_timeout_ms=900, owned=owned
    )
    request = ConsumerGroupHeartbeatRequest.decode(bytes(full.data), BEAT_VERSION)
    partitions = ConsumerGroupHeartbeatRequest.TopicPartitions(
        topic_id=UUID(bytes=TOPIC_ID), partitions=[0, 7]
    )
    assert request == ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=3,
        rebalance_timeout_ms=900,
        subscribed_topic_names=["t"],
        topic_partitions=[partitions],
    )
    short = requests.heartbeat_request("g", "m", 3)
    assert ConsumerGroupHeartbeatRequest.decode(
        bytes(short.data), BEAT_VERSION
    ) == ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=3)


@pytest.mark.parametrize("assigned", [None, (), (Owned(TOPIC_ID, (0, 7)),)])
def test_the_clients_read_the_answers_to_heartbeats(assigned: tuple[Owned, ...] | None) -> None:
    assignment = None
    if assigned is not None:
        parts = [
            ConsumerGroupHeartbeatResponse.TopicPartitions(
                topic_id=UUID(bytes=owned.topic_id), partitions=list(owned.partitions)
            )
            for owned in assigned
        ]
        assignment = ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=parts)
    response = ConsumerGroupHeartbeatResponse(
        member_id="m", member_epoch=4, heartbeat_interval_ms=250, assignment=assignment
    )
    data = b"".join(response.encode(BEAT_VERSION))
    assert requests.heartbeat_response(Reader(data)) == Beat(0, 4, 250, assigned)


def test_commits_of_member_epochs_are_read_by_wire_and_their_answers_by_the_clients() -> None:
    body = requests.offset_commit_request("g", 5, "m", {ONE: 10, TWO: 20})
    request = OffsetCommitRequest.decode(bytes(body.data), COMMIT_VERSION)
    assert (request.group_id, request.generation_id_or_member_epoch) == ("g", 5)
    (topic,) = request.topics
    told = {part.partition_index: part.committed_offset for part in topic.partitions}
    assert (topic.name, told) == ("t", {0: 10, 7: 20})
    answer = OffsetCommitResponse.OffsetCommitResponseTopic(
        name="t",
        partitions=[
            OffsetCommitResponse.OffsetCommitResponseTopic.OffsetCommitResponsePartition(
                partition_index=number, error_code=error
            )
            for number, error in ((0, ErrorCode.NONE), (7, ErrorCode.STALE_MEMBER_EPOCH))
        ],
    )
    data = b"".join(OffsetCommitResponse(topics=[answer]).encode(COMMIT_VERSION))
    assert requests.offset_commit_response(Reader(data)) == {ONE: 0, TWO: 113}


def test_offsets_are_fetched_in_a_member_epoch() -> None:
    body = requests.offset_fetch_request("g", 5, "m", [ONE, TWO])
    request = OffsetFetchRequest.decode(bytes(body.data), FETCH_VERSION)
    (group,) = request.groups
    assert (group.group_id, group.member_id, group.member_epoch) == ("g", "m", 5)
    assert [(t.name, t.partition_indexes) for t in group.topics or ()] == [("t", [0, 7])]
    of_group = OffsetFetchResponse.OffsetFetchResponseGroup
    of_topic = of_group.OffsetFetchResponseTopics
    partitions = [
        of_topic.OffsetFetchResponsePartitions(partition_index=n, committed_offset=at, metadata="")
        for n, at in ((0, 10), (7, -1))
    ]
    found = of_group(group_id="g", topics=[of_topic(name="t", partitions=partitions)])
    data = b"".join(OffsetFetchResponse(groups=[found]).encode(FETCH_VERSION))
    assert requests.offset_fetch_response(Reader(data)) == (0, {ONE: 10, TWO: -1})
    found.error_code = ErrorCode.STALE_MEMBER_EPOCH
    data = b"".join(OffsetFetchResponse(groups=[found]).encode(FETCH_VERSION))
    assert requests.offset_fetch_response(Reader(data))[0] == 113
