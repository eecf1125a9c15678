"""Every message in every version: what was encoded comes back, whatever the buffer is made of."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from logboat.seam import all_at_once
from logboat.wire import (
    ZERO_UUID,
    CoordinatorKey,
    DecodeError,
    EncodeError,
    Message,
    Versioned,
    all_apis,
    control_records,
)
from logboat.wire.__main__ import main
from logboat.wire.compiler import ITEMS_AT_ONCE
from logboat.wire.frame import RequestHeader
from logboat.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from logboat.wire.messages.default_principal import DefaultPrincipalData
from logboat.wire.messages.delete_groups import DeleteGroupsResponse
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.messages.find_coordinator import FindCoordinatorRequest
from logboat.wire.messages.join_group import JoinGroupRequest
from logboat.wire.messages.metadata import MetadataRequest, MetadataResponse
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.wire.message_samples import coordinator_records, declared_in, sample, versions_of

PAYLOADS: list[type[Message]] = [
    message for api in all_apis() for message in (api.request, api.response)
]
RECORDS: list[type[Message]] = [
    *declared_in(control_records).values(),
    *coordinator_records().values(),
    DefaultPrincipalData,
]
EVERYTHING = [*PAYLOADS, *RECORDS]


def by_name(message: type[Message]) -> str:
    return message.__name__


@pytest.mark.parametrize("message", EVERYTHING, ids=by_name)
def test_what_was_encoded_is_decoded(message: type[Message]) -> None:
    for version in versions_of(message):
        for seed in range(2):
            rng = random.Random(f"{message.__name__} {version} {seed}")
            original = sample(message, version, rng)
            encoded = b"".join(original.encode(version))
            assert message.decode(encoded, version) == original, version
            assert message.decode(bytearray(encoded), version) == original
            behind = memoryview(b"??" + encoded)
            decoded = original, len(encoded) + 2
            assert message.decode_from(behind, 2, version) == decoded
            assert all_at_once(message.decode_in_steps(behind, 2, version)) == decoded
            parts = all_at_once(original.encode_in_steps(bytearray(b"??"), version))
            assert b"".join(parts) == behind


@pytest.mark.parametrize("message", EVERYTHING, ids=by_name)
def test_defaults_survive_in_every_version(message: type[Message]) -> None:
    for version in versions_of(message):
        encoded = b"".join(message().encode(version))
        assert message.decode(encoded, version) == message()


@pytest.mark.parametrize(
    "record", [record for record in RECORDS if issubclass(record, CoordinatorKey)], ids=by_name
)
def test_a_coordinator_key_carries_its_record_type(record: type[CoordinatorKey]) -> None:
    key = sample(record, 0, random.Random(1))
    encoded = key.encode_versioned()
    assert int.from_bytes(encoded[:2], "big") == record.record_type
    assert record.decode_versioned(encoded) == key
    with pytest.raises(DecodeError, match="type"):
        record.decode_versioned(b"\x03\xe8" + encoded[2:])
    with pytest.raises(DecodeError):
        record.decode_versioned(b"\0")


@pytest.mark.parametrize(
    "record", [record for record in RECORDS if issubclass(record, Versioned)], ids=by_name
)
def test_a_versioned_value_carries_its_version(record: type[Versioned]) -> None:
    for version in versions_of(record):
        value = sample(record, version, random.Random(1))
        encoded = value.encode_versioned(version)
        assert int.from_bytes(encoded[:2], "big") == version
        assert record.decode_versioned(memoryview(encoded)) == value


def test_null_and_empty_stay_apart() -> None:
    for version in range(1, 14):
        everything = MetadataRequest(topics=None)
        nothing = MetadataRequest(topics=[])
        assert b"".join(everything.encode(version)) != b"".join(nothing.encode(version))
        for request in (everything, nothing):
            encoded = b"".join(request.encode(version))
            assert MetadataRequest.decode(encoded, version) == request


def test_null_is_refused_where_the_version_has_no_null() -> None:
    with pytest.raises(EncodeError, match="topics must not be null"):
        MetadataRequest(topics=None).encode(0)
    with pytest.raises(DecodeError, match="topics must not be null"):
        MetadataRequest.decode(b"\xff\xff\xff\xff", 0)


def test_a_set_field_that_the_version_cannot_carry_is_refused() -> None:
    with pytest.raises(EncodeError, match="coordinator_keys is set"):
        FindCoordinatorRequest(coordinator_keys=["a", "b"]).encode(3)
    with pytest.raises(EncodeError, match="group_instance_id is set"):
        JoinGroupRequest(group_instance_id="static-1").encode(4)
    with pytest.raises(EncodeError, match="replica_state is set"):
        FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=1)).encode(14)


def test_an_ignorable_field_is_dropped_silently() -> None:
    request = FetchRequest(rack_id="r1", session_id=7)
    assert FetchRequest.decode(b"".join(request.encode(4)), 4) == FetchRequest()
    assert FetchRequest.decode(b"".join(request.encode(11)), 11) == request


def test_a_tagged_struct_that_is_absent_is_none_and_defaults_are_not_sent() -> None:
    partition = FetchResponse.PartitionData(records=b"")
    response = FetchResponse(
        responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])]
    )
    plain = b"".join(response.encode(16))
    partition.current_leader = FetchResponse.LeaderIdAndEpoch()
    assert b"".join(response.encode(16)) == plain
    partition.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=3, leader_epoch=9)
    decoded = FetchResponse.decode(b"".join(response.encode(16)), 16)
    assert decoded.responses[0].partitions[0].current_leader == partition.current_leader
    assert decoded.responses[0].partitions[0].diverging_epoch is None


def test_unknown_tagged_fields_are_skipped() -> None:
    encoded = b"".join(MetadataRequest(topics=[]).encode(12))
    assert encoded[-1:] == b"\0"
    # Tag 77 with three bytes and tag 9000 with none.
    strange = encoded[:-1] + b"\x02" + b"\x4d\x03abc" + b"\xa8\x46\x00"
    assert MetadataRequest.decode(strange, 12) == MetadataRequest(topics=[])


def test_a_tagged_field_must_fill_its_tag() -> None:
    request = FetchRequest(cluster_id="abc")
    encoded = b"".join(request.encode(12))
    assert encoded.endswith(b"\x01\x00\x04\x04abc")
    with pytest.raises(DecodeError, match="cluster_id does not fill"):
        FetchRequest.decode(encoded[:-6] + b"\x00\x05\x04abc!", 12)


def test_records_are_neither_copied_on_the_way_in_nor_out() -> None:
    batch = bytearray(b"r" * 1000)
    partition = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    buffers = ProduceRequest(topic_data=[topic]).encode(9)
    assert any(buffer is batch for buffer in buffers)

    frame = bytearray(b"".join(buffers))
    records = ProduceRequest.decode(frame, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == batch
    frame[frame.index(b"rrr")] = ord("R")
    assert records[0] == ord("R")


def test_records_may_come_in_pieces() -> None:
    partition = FetchResponse.PartitionData(records=[b"one", memoryview(b"two"), bytearray(b"3")])
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    encoded = b"".join(FetchResponse(responses=[topic]).encode(12))
    decoded = FetchResponse.decode(encoded, 12).responses[0].partitions[0]
    assert decoded.records == b"onetwo3"


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(EncodeError):
        RequestHeader(api_key=40_000).encode(1)
    with pytest.raises(EncodeError):
        DeleteGroupsResponse(throttle_time_ms=2**31).encode(0)
    with pytest.raises(EncodeError):
        RequestHeader(client_id="x" * 32768).encode(1)
    with pytest.raises(EncodeError, match="too long"):
        MetadataResponse(cluster_id="x" * 32768).encode(9)
    with pytest.raises(EncodeError):
        RequestHeader(client_id="\ud800").encode(1)
    with pytest.raises(EncodeError):
        MetadataResponse(controller_id=None).encode(9)  # type: ignore[arg-type]


def test_an_unknown_version_is_refused() -> None:
    for version in (-1, 2, 14):
        with pytest.raises(EncodeError, match="no version"):
            ProduceRequest().encode(version)
        with pytest.raises(DecodeError, match="no version"):
            ProduceRequest.decode(b"", version)


def test_structs_are_slotted_values() -> None:
    one = ProduceResponse.PartitionProduceResponse(index=1)
    assert one == ProduceResponse.PartitionProduceResponse(index=1)
    assert one != ProduceResponse.PartitionProduceResponse(index=2)
    assert one != ProduceRequest.PartitionProduceData(index=1)
    assert "index=1" in repr(one)
    assert not hasattr(one, "__dict__")
    with pytest.raises(TypeError):
        ProduceResponse.PartitionProduceResponse(indx=1)  # type: ignore[call-arg]
    fresh = ProduceRequest().topic_data
    fresh.append(ProduceRequest.TopicProduceData())
    assert ProduceRequest().topic_data == []
    assert ProduceRequest.TopicProduceData().topic_id is ZERO_UUID
    assert UUID(int=0) == ZERO_UUID


def fetch_of(topics: int, partitions: int) -> FetchRequest:
    Topic = FetchRequest.FetchTopic
    return FetchRequest(
        topics=[
            Topic(topic_id=UUID(int=t + 1), partitions=[Topic.FetchPartition()] * partitions)
            for t in range(topics)
        ]
    )


@pytest.mark.parametrize(("topics", "partitions"), [(1, 10_000), (5_000, 1), (100, 100)])
def test_f1_thousands_of_items_take_many_steps(topics: int, partitions: int) -> None:
    request = fetch_of(topics, partitions)
    assert request.holds_more_than(9_999)
    assert not request.holds_more_than(topics + topics * partitions)
    (encoded,) = request.encode(13)
    pauses = (topics + topics * partitions) // ITEMS_AT_ONCE
    assert len(list(request.encode_in_steps(bytearray(), 13))) == pauses
    assert len(list(FetchRequest.decode_in_steps(encoded, 0, 13))) == pauses


def test_names_count_as_items_and_numbers_do_not() -> None:
    subscribed = ConsumerGroupHeartbeatRequest(subscribed_topic_names=["t"] * 1_000)
    assert subscribed.holds_more_than(999)
    partitions = ConsumerGroupHeartbeatRequest.TopicPartitions(partitions=[0] * 1_000)
    assert not ConsumerGroupHeartbeatRequest(topic_partitions=[partitions]).holds_more_than(1)


@pytest.mark.parametrize("tenths", range(10))
def test_what_is_cut_off_is_refused_in_steps_too(tenths: int) -> None:
    (encoded,) = fetch_of(2, 1_000).encode(13)
    with pytest.raises(DecodeError):
        all_at_once(FetchRequest.decode_in_steps(encoded[: len(encoded) * tenths // 10], 0, 13))


def test_the_generated_code_can_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ProduceRequest", "9"]) == 0
    shown = capsys.readouterr().out
    assert "def decode(b, p):" in shown
    assert "def encode(o, w):" in shown
    assert main(["ProduceRequest"]) == 2
    assert main(["Unheard", "9"]) == 2
