"""The port of the clients: frames, limits and bad input (cases P01, P03 and P05)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from logboat.metadata.snapshot import empty_image
from logboat.node.handlers import CLIENT_APIS
from logboat.node.listener import ClientListener
from logboat.node.served import Call, Served
from logboat.wire import ApiKey, ErrorCode, RequestHeader, decode_response
from logboat.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from logboat.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from logboat.wire.messages.metadata import MetadataRequest, MetadataResponse
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.node.listening import ServedBy, config, listening, table
from tests.node.wire_client import WireClient, framed
from tests.waiting import until

SOFTWARE = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def answer_metadata(services: Any, request: MetadataRequest, call: Call) -> MetadataResponse:
    return MetadataResponse(cluster_id=call.client_id)


def answer_heartbeat(services: Any, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time_ms=request.generation_id)


MANY = 120
"""More than the 50 of Kafka's default, fewer than any system's bound on such queues."""

APIS = table(
    CLIENT_APIS[ApiKey.API_VERSIONS],
    ServedBy(ApiKey.METADATA, 0, 13, handler=answer_metadata),
    ServedBy(ApiKey.HEARTBEAT, 0, 4, handler=answer_heartbeat),
)


def services() -> Any:
    return SimpleNamespace(config=config(), image=empty_image("test-cluster"))


def received(listener: ClientListener) -> int:
    return sum(connection._received for connection in listener._connections)


def unanswered(listener: ClientListener) -> int:
    return sum(connection._pipeline.count for connection in listener._connections)


def header_bytes(key: int, version: int, correlation_id: int = 77) -> bytes:
    return (
        key.to_bytes(2, "big")
        + version.to_bytes(2, "big")
        + correlation_id.to_bytes(4, "big")
        + b"\x00\x04test"
    )


@pytest.mark.parametrize("version", [6, 32767])
async def test_p01_an_unknown_version_of_api_versions_is_answered_in_version_0(
    version: int,
) -> None:
    async with listening(APIS, services()) as (port, _), await WireClient.connect(port) as client:
        client.write(framed(header_bytes(18, version) + b"\x00\x02x\x02y\x00"))
        answer = await client.read_frame()
        response = decode_response(
            RequestHeader(api_key=18, api_version=0, correlation_id=77), answer
        )
        assert isinstance(response, ApiVersionsResponse)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(row.api_key, row.min_version, row.max_version) for row in response.api_keys] == [
            (18, 0, 5)
        ]
        # The connection goes on.
        again = await client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        assert again.error_code == ErrorCode.NONE
        metadata = await client.ask(MetadataRequest(), 1, MetadataResponse)
        assert metadata.topics == []


async def test_api_versions_shows_what_is_served_and_produce_from_0() -> None:
    async with listening(APIS, services()) as (port, _), await WireClient.connect(port) as client:
        response = await client.ask(SOFTWARE, 4, ApiVersionsResponse)
    shown = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
    served = {
        int(key): (row.min_version, row.max_version)
        for key, row in CLIENT_APIS.items()
        if row.advertised
    }
    served[ApiKey.PRODUCE] = (0, 13)
    assert shown == served


@pytest.mark.parametrize("level", [0, 2])
async def test_s16_api_versions_shows_the_level_of_transactions_and_the_images_epoch(
    level: int,
) -> None:
    around = services()
    features = {} if level == 0 else {"transaction.version": level}
    around.image = replace(around.image, features=features, index=41)
    async with listening(APIS, around) as (port, _), await WireClient.connect(port) as client:
        response = await client.ask(SOFTWARE, 4, ApiVersionsResponse)
    assert response.finalized_features_epoch == 41
    shown = {row.name: row.max_version_level for row in response.finalized_features}
    assert shown.get("transaction.version", 0) == level


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ApiVersionsRequest(), ErrorCode.INVALID_REQUEST),
        (
            ApiVersionsRequest(
                client_software_name="test", client_software_version="1", cluster_id="another"
            ),
            ErrorCode.REBOOTSTRAP_REQUIRED,
        ),
        (
            ApiVersionsRequest(client_software_name="test", client_software_version="1", node_id=9),
            ErrorCode.REBOOTSTRAP_REQUIRED,
        ),
    ],
)
async def test_api_versions_refuses(request_: ApiVersionsRequest, error: ErrorCode) -> None:
    async with listening(APIS, services()) as (port, _), await WireClient.connect(port) as client:
        assert (await client.ask(request_, 5, ApiVersionsResponse)).error_code == error


@pytest.mark.parametrize("client_id", [None, "", "naïve-客户" * 30])
async def test_p03_any_client_id_is_taken_in_a_flexible_header(client_id: str | None) -> None:
    async with listening(APIS, services()) as (port, _), await WireClient.connect(port) as client:
        header = client.send(SOFTWARE, 3, client_id=client_id)
        assert (await client.receive(header, ApiVersionsResponse)).error_code == ErrorCode.NONE
        header = client.send(MetadataRequest(topics=[]), 9, client_id=client_id)
        answer = await client.receive(header, MetadataResponse)
        assert answer.cluster_id == (client_id or "")


async def test_p03_unknown_tags_in_the_header_are_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tags = b"\x02" + b"\x4d\x03abc" + b"\xa8\x46\x00"  # Tag 77 of 3 bytes, tag 9000 of none.
    async with listening(APIS, services()) as (port, _), await WireClient.connect(port) as client:
        client.write(framed(header_bytes(18, 3) + tags + b"\x02x\x02y\x00"))
        header = RequestHeader(api_key=18, api_version=3, correlation_id=77)
        assert (await client.receive(header, ApiVersionsResponse)).error_code == ErrorCode.NONE
        client.write(framed(header_bytes(3, 9) + tags + b"\x01\x00\x00\x00\x00"))
        header = RequestHeader(api_key=3, api_version=9, correlation_id=77)
        await client.receive(header, MetadataResponse)
    assert caplog.records == []


HOSTILE = [
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "1195725856"),
    (b"POST / HTTP/1.1\r\n\r\n", "1347375956"),
    (b"\x16\x03\x01\x02\x00\x01\x00", "369295618"),
    (b"\xff\xff\xff\xff", "4294967295"),
    (b"\x7f\xff\xff\xff", "2147483647"),
    ((104857601).to_bytes(4, "big"), "104857601"),
    (b"\x00\x00\x00\x00", "0 bytes"),
    (b"\x00\x00\x00\x03abc", "3 bytes"),
]


@pytest.mark.parametrize(("data", "size"), HOSTILE)
async def test_p05_a_frame_that_is_none_closes_the_connection_with_one_line(
    data: bytes, size: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        listening(APIS, services()) as (port, _),
        await WireClient.connect(port) as good,
        await WireClient.connect(port) as bad,
    ):
        bad.write(data)
        assert await bad.is_closed()
        await good.ask(MetadataRequest(), 1, MetadataResponse)
        lines = [record.getMessage() for record in caplog.records]
        assert len(lines) == 1
        assert size in lines[0]
        assert "127.0.0.1" in lines[0]


async def test_p05_three_hundred_of_them_at_once_do_not_disturb_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)

    async def attack(port: int, data: bytes) -> bool:
        async with await WireClient.connect(port) as client:
            client.write(data)
            return await client.is_closed()

    async with (
        listening(APIS, services()) as (port, listener),
        await WireClient.connect(port) as good,
    ):
        attacks = [attack(port, HOSTILE[n % len(HOSTILE)][0]) for n in range(300)]
        gathered = asyncio.gather(*attacks)
        for generation in range(50):
            beat = await good.ask(HeartbeatRequest(generation_id=generation), 3, HeartbeatResponse)
            assert beat.throttle_time_ms == generation
        assert all(await gathered)
        assert listener.connection_count == 1


async def test_p05_a_declared_length_reserves_nothing() -> None:
    """90 MB promised, 100 bytes sent: the buffer follows what arrives."""
    async with (
        listening(APIS, services()) as (port, listener),
        await WireClient.connect(port) as slow,
    ):
        slow.write((90 << 20).to_bytes(4, "big") + bytes(100))
        await until(lambda: received(listener) == 104)
        (connection,) = listener._connections
        large = connection._buffer._large
        assert large is not None
        assert len(large.buffer) < 1 << 20


async def test_p05_a_request_that_stops_arriving_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = {"connections_partial_request_timeout_ms": "50"}
    async with (
        listening(APIS, services(), **settings) as (port, _),
        await WireClient.connect(port) as slow,
    ):
        slow.write((90 << 20).to_bytes(4, "big") + bytes(100))
        for _ in range(3):
            slow.write(b"x")
            await asyncio.sleep(0.02)
        assert await slow.is_closed()
    assert "stopped arriving" in caplog.text


async def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    settings = {"connections_max_idle_ms": "1000"}
    async with (
        listening(APIS, services(), **settings) as (port, _),
        await WireClient.connect(port) as idle,
        await WireClient.connect(port) as busy,
    ):
        closed = asyncio.create_task(idle.is_closed())
        while not closed.done():
            await busy.ask(HeartbeatRequest(), 3, HeartbeatResponse)
            await asyncio.sleep(0.01)
        assert await closed
        await busy.ask(HeartbeatRequest(), 3, HeartbeatResponse)


@pytest.mark.parametrize(
    "data",
    [
        framed(header_bytes(999, 0)),  # There is no such API.
        framed(header_bytes(11, 0)),  # Not served here.
        framed(header_bytes(3, 99)),  # Not in this version.
        framed(header_bytes(12, 0) + b"\x00\x05ab"),  # The body is cut short.
        framed(header_bytes(12, 0)[:9]),  # The header is.
    ],
)
async def test_what_cannot_be_answered_closes_the_connection(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        listening(APIS, services()) as (port, listener),
        await WireClient.connect(port) as client,
    ):
        client.write(data)
        assert await client.is_closed()
        await until(lambda: not listener.connection_count)
        # It takes no room from others when it is gone.
        assert listener.budget.used == 0
    assert len(caplog.records) == 1


async def test_a_failing_handler_is_an_unknown_server_error_and_the_end_of_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(services: Any, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        raise RuntimeError("broken")

    rows = table(ServedBy(ApiKey.HEARTBEAT, 0, 4, handler=fails))
    async with listening(rows) as (port, _), await WireClient.connect(port) as client:
        answer = await client.ask(HeartbeatRequest(), 0, HeartbeatResponse)
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert await client.is_closed()
    assert "RuntimeError: broken" in caplog.text


async def test_answers_leave_in_the_order_of_the_requests() -> None:
    """A slow request holds back what follows it, and nothing overtakes."""
    gate = asyncio.Event()

    async def slow(services: Any, request: MetadataRequest, call: Call) -> MetadataResponse:
        await gate.wait()
        return MetadataResponse()

    rows = table(
        ServedBy(ApiKey.METADATA, 0, 13, handler=slow),
        ServedBy(ApiKey.HEARTBEAT, 0, 4, handler=answer_heartbeat),
    )
    async with listening(rows) as (port, listener), await WireClient.connect(port) as client:
        first = client.send(MetadataRequest(), 1)
        beats = [client.send(HeartbeatRequest(generation_id=n), 3) for n in range(20)]
        await until(lambda: unanswered(listener) == 21)
        gate.set()
        await client.receive(first, MetadataResponse)
        for number, header in enumerate(beats):
            answer = await client.receive(header, HeartbeatResponse)
            assert answer.throttle_time_ms == number


async def test_produce_requests_are_started_side_by_side_and_others_one_by_one() -> None:
    started: list[str] = []
    gate = asyncio.Event()

    async def produce(services: Any, request: ProduceRequest, call: Call) -> ProduceResponse:
        started.append("produce")
        await gate.wait()
        return ProduceResponse()

    def heartbeat(services: Any, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        started.append("heartbeat")
        return HeartbeatResponse()

    rows = table(
        ServedBy(
            ApiKey.PRODUCE,
            3,
            13,
            may_start_behind=frozenset({ApiKey.PRODUCE}),
            handler=produce,
        ),
        ServedBy(ApiKey.HEARTBEAT, 0, 4, handler=heartbeat),
    )
    async with listening(rows) as (port, listener), await WireClient.connect(port) as client:
        for _ in range(3):
            client.send(ProduceRequest(acks=1), 7)
        beat = client.send(HeartbeatRequest(), 0)
        client.send(ProduceRequest(acks=1), 7)
        await until(lambda: unanswered(listener) == 5)
        assert started == ["produce"] * 3
        gate.set()
        for _ in range(3):
            await client.read_frame()
        await client.receive(beat, HeartbeatResponse)
        assert started == ["produce"] * 3 + ["heartbeat", "produce"]


async def test_no_more_is_read_than_may_wait_unanswered() -> None:
    gate = asyncio.Event()
    seen = 0

    async def slow(services: Any, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        nonlocal seen
        seen += 1
        await gate.wait()
        return HeartbeatResponse(throttle_time_ms=request.generation_id)

    rows = table(
        ServedBy(
            ApiKey.HEARTBEAT,
            0,
            4,
            may_start_behind=frozenset({ApiKey.HEARTBEAT}),
            handler=slow,
        )
    )
    async with listening(rows) as (port, listener), await WireClient.connect(port) as client:
        headers = [client.send(HeartbeatRequest(generation_id=n), 3) for n in range(500)]
        await client.drain()
        await until(lambda: seen >= listener.limits.max_requests)
        await asyncio.sleep(0.02)  # Further ones would have come by now.
        assert seen == listener.limits.max_requests
        gate.set()
        for number, header in enumerate(headers):
            answer = await client.receive(header, HeartbeatResponse)
            assert answer.throttle_time_ms == number


async def test_a_full_node_reads_no_further_request_until_one_is_answered() -> None:
    gates = {0: asyncio.Event(), 1: asyncio.Event()}

    async def slow(services: Any, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        await gates[request.generation_id].wait()
        return HeartbeatResponse()

    rows = table(ServedBy(ApiKey.HEARTBEAT, 0, 4, handler=slow))
    async with (
        listening(rows, queued_max_request_bytes="1") as (port, listener),
        await WireClient.connect(port) as one,
        await WireClient.connect(port) as other,
    ):
        first = one.send(HeartbeatRequest(generation_id=0), 3)
        await until(lambda: listener.budget.exhausted)
        second = other.send(HeartbeatRequest(generation_id=1), 3)
        await until(lambda: all(each._received for each in listener._connections))
        assert unanswered(listener) == 1
        gates[1].set()
        gates[0].set()
        await one.receive(first, HeartbeatResponse)
        await other.receive(second, HeartbeatResponse)
        assert listener.budget.used == 0


async def test_f1_a_long_request_and_those_behind_it_keep_their_order() -> None:
    """It is decoded over several turns of the loop, and its answer encoded over several."""
    started: list[str] = []

    def metadata(services: Any, request: MetadataRequest, call: Call) -> MetadataResponse:
        started.append("metadata")
        Topic = MetadataResponse.MetadataResponseTopic
        return MetadataResponse(topics=[Topic(name=each.name) for each in request.topics or ()])

    def heartbeat(services: Any, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        started.append("heartbeat")
        return HeartbeatResponse()

    rows = table(
        ServedBy(ApiKey.METADATA, 0, 13, handler=metadata),
        ServedBy(ApiKey.HEARTBEAT, 0, 4, handler=heartbeat),
    )
    names = [f"topic-{number}" for number in range(5_000)]
    asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=n) for n in names])
    async with (
        listening(rows) as (port, listener),
        await WireClient.connect(port) as client,
    ):
        headers = [client.send(asked, 9), client.send(HeartbeatRequest(), 3)]
        headers += [client.send(asked, 9), client.send(HeartbeatRequest(), 3)]
        for header in headers[::2]:
            answer = await client.receive(header, MetadataResponse)
            assert [topic.name for topic in answer.topics] == names
            await client.receive(headers[headers.index(header) + 1], HeartbeatResponse)
        assert started == ["metadata", "heartbeat"] * 2
        assert listener.budget.used == 0


async def test_a_client_that_goes_while_its_request_is_decoded_is_forgotten() -> None:
    started: list[int] = []

    def metadata(services: Any, request: MetadataRequest, call: Call) -> MetadataResponse:
        started.append(1)
        return MetadataResponse()

    rows = table(ServedBy(ApiKey.METADATA, 0, 13, handler=metadata))
    Topic = MetadataRequest.MetadataRequestTopic
    asked = MetadataRequest(topics=[Topic(name="t") for _ in range(20_000)])
    async with (
        listening(rows) as (port, listener),
        await WireClient.connect(port) as client,
    ):
        client.send(asked, 9)
        await until(lambda: any(each._pipeline._decoding for each in listener._connections))
        for connection in list(listener._connections):
            connection.close()
        await until(lambda: not listener.connection_count)
        assert listener.budget.used == 0
        assert not started


async def test_a_reader_that_takes_nothing_gets_no_further_answer_prepared() -> None:
    started = 0
    megabyte = "x" * (1 << 20)

    def large(services: Any, request: MetadataRequest, call: Call) -> MetadataResponse:
        nonlocal started
        started += 1
        return MetadataResponse(
            topics=[MetadataResponse.MetadataResponseTopic(name=megabyte[:30_000])] * 35
        )

    rows: dict[ApiKey, Served] = dict(
        table(ServedBy(ApiKey.METADATA, 0, 13, handler=large)).items()
    )
    async with listening(rows) as (port, _), await WireClient.connect(port) as client:
        headers = [client.send(MetadataRequest(), 1) for _ in range(90)]
        await client.drain()
        await asyncio.sleep(0.2)
        assert started < 60  # The kernel's buffers take a few; the node does not add to them.
        for header in headers:
            await client.receive(header, MetadataResponse)
        assert started == 90


async def test_connections_above_the_limit_are_closed_at_once() -> None:
    async with (
        listening(APIS, services(), max_connections="2") as (port, listener),
        await WireClient.connect(port) as one,
        await WireClient.connect(port) as two,
    ):
        await one.ask(MetadataRequest(), 1, MetadataResponse)
        await two.ask(MetadataRequest(), 1, MetadataResponse)
        async with await WireClient.connect(port) as three:
            assert await three.is_closed()
        await two.ask(MetadataRequest(), 1, MetadataResponse)
        assert listener.connection_count == 2


async def test_a_large_request_arrives_whole() -> None:
    sizes: list[int] = []

    def measure(services: Any, request: ProduceRequest, call: Call) -> ProduceResponse:
        records = request.topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview)
        assert records[-1] == 7
        sizes.append(len(records))
        return ProduceResponse()

    rows = table(ServedBy(ApiKey.PRODUCE, 3, 13, handler=measure))
    Topic = ProduceRequest.TopicProduceData
    async with listening(rows) as (port, _), await WireClient.connect(port) as client:
        for size in (10, 16_000, 70_000, 3 << 20):
            request = ProduceRequest(
                acks=1,
                topic_data=[
                    Topic(
                        name="t",
                        partition_data=[
                            Topic.PartitionProduceData(
                                index=0, records=memoryview(bytes(size - 1) + b"\x07")
                            )
                        ],
                    )
                ],
            )
            await client.ask(request, 9, ProduceResponse)
    assert sizes == [10, 16_000, 70_000, 3 << 20]


async def test_many_who_come_while_the_loop_is_busy_find_a_place_in_the_queue() -> None:
    """Who finds none is dropped, and comes again after a second: 500 members joined for seconds."""
    async with listening(APIS, services()) as (port, listener):
        with contextlib.ExitStack() as opened:
            clients = [opened.enter_context(socket.socket()) for _ in range(MANY)]
            for client in clients:
                client.settimeout(5)
                client.connect(("127.0.0.1", port))  # the loop does not run meanwhile
            await until(lambda: listener.connection_count == MANY)
