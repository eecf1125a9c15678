"""The port of the nodes and the channels to it (RULES A5, A6, B4, B5)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from random import Random
from typing import Any, cast
from uuid import UUID

import pytest

from logboat.metadata.commands import Origin
from logboat.metadata.controller import ControllerAnswer
from logboat.metadata.image import ClusterImage
from logboat.metadata.snapshot import empty_image
from logboat.node.addresses import Address
from logboat.node.caller import Caller
from logboat.node.dispatch import Dispatcher
from logboat.node.internode import InternodeListener
from logboat.node.peers import Peers
from logboat.node.served import Call, Served
from logboat.node.services import Services
from logboat.partitions import PeerLost
from logboat.raftlog import Channel, Credential, dial
from logboat.wire import ApiKey, Message
from logboat.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from tests.node.listening import ServedBy, fail, table
from tests.waiting import until

SECRET = b"of this cluster"


def credential(node_id: int, secret: bytes = SECRET) -> Credential:
    return Credential(secret, node_id, UUID(int=node_id), "test-cluster")


def in_time(seconds: float = 30.0) -> float:
    return asyncio.get_running_loop().time() + seconds


class Side:
    """Node 1 listens; `peers` are node 2's way to it."""

    def __init__(self, port: int, listener: InternodeListener) -> None:
        self.port = port
        self.listener = listener
        self.refused: list[int] = []
        self.peers = self.peers_of(credential(2))

    def peers_of(self, own: Credential, *, port: int | None = None) -> Peers:
        image: ClusterImage = empty_image("test-cluster")
        return Peers(
            credential=own,
            voters={1: Address("127.0.0.1", port or self.port)},
            image=lambda: image,
            rng=Random(2),
            on_refused=self.refused.append,
        )


@contextlib.asynccontextmanager
async def node_listening(
    rows: Mapping[ApiKey, Served],
    *,
    raft: list[Channel] | None = None,
    gone: list[int] | None = None,
) -> AsyncIterator[Side]:
    channels = [] if raft is None else raft
    closed = [] if gone is None else gone
    listener = InternodeListener(
        Address("127.0.0.1", 0),
        adopt_raft=channels.append,
        on_channel_closed=closed.append,
        on_fatal=fail,
    )
    port = await listener.bind()
    await listener.serve(credential(1), Random(1), Dispatcher(cast(Services, None), rows))
    try:
        yield Side(port, listener)
    finally:
        await listener.close()


def answering(seen: list[tuple[Caller, Origin | None]], index: int = 0) -> Mapping[ApiKey, Served]:
    async def heartbeat(
        services: Any, request: BrokerHeartbeatRequest, call: Call
    ) -> ControllerAnswer[Message]:
        seen.append((call.caller, call.origin))
        response = BrokerHeartbeatResponse(throttle_time_ms=request.broker_id)
        return ControllerAnswer(response, index)

    return table(ServedBy(ApiKey.BROKER_HEARTBEAT, 0, 2, handler=heartbeat))


async def test_an_answer_brings_the_index_it_depends_on() -> None:
    seen: list[tuple[Caller, Origin | None]] = []
    async with node_listening(answering(seen, index=42)) as side:
        peer = await side.peers.connect(1, in_time())
        request = BrokerHeartbeatRequest(broker_id=7)
        answer = await peer.ask(ApiKey.BROKER_HEARTBEAT, 1, request, in_time())
        assert isinstance(answer.response, BrokerHeartbeatResponse)
        assert (answer.response.throttle_time_ms, answer.index) == (7, 42)
        peer.close()


async def test_the_asker_is_who_the_handshake_proved_and_its_origin_travels() -> None:
    seen: list[tuple[Caller, Origin | None]] = []
    async with node_listening(answering(seen)) as side:
        peer = await side.peers.connect(1, in_time())
        # The origin claims to be node 9; the channel knows better.
        for origin in (None, Origin(9, 100, 5)):
            await peer.ask(ApiKey.BROKER_HEARTBEAT, 1, BrokerHeartbeatRequest(), in_time(), origin)
        peer.close()
    assert [caller.node_id for caller, _ in seen] == [2, 2]
    assert [origin for _, origin in seen] == [None, Origin(2, 100, 5)]


async def test_many_requests_at_once_get_their_own_answers() -> None:
    async with node_listening(answering([])) as side:
        peer = await side.peers.connect(1, in_time())
        requests = [BrokerHeartbeatRequest(broker_id=number) for number in range(200)]
        answers = await asyncio.gather(
            *(peer.request(ApiKey.BROKER_HEARTBEAT, 1, one, in_time()) for one in requests)
        )
        assert [
            answer.throttle_time_ms
            for answer in answers
            if isinstance(answer, BrokerHeartbeatResponse)
        ] == list(range(200))
        peer.close()


async def test_f1_a_long_request_is_let_pass_by_a_short_one() -> None:
    """It is encoded over several turns; each gets its own answer all the same."""
    asked: list[int] = []

    async def fetch(services: Any, request: FetchRequest, call: Call) -> FetchResponse:
        asked.append(len(request.topics))
        Data = FetchResponse.PartitionData
        told = [Data(partition_index=number, records=b"") for number in range(len(request.topics))]
        topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=told)
        return FetchResponse(responses=[topic])

    async with node_listening(table(ServedBy(ApiKey.FETCH, 4, 18, handler=fetch))) as side:
        peer = await side.peers.connect(1, in_time())
        counts = [10_000, 1, 3_000, 0]
        requests = [
            FetchRequest(topics=[FetchRequest.FetchTopic(topic=f"t{n}") for n in range(count)])
            for count in counts
        ]
        answers = await asyncio.gather(
            *(peer.request(ApiKey.FETCH, 12, request, in_time()) for request in requests)
        )
        assert [
            len(answer.responses[0].partitions)
            for answer in answers
            if isinstance(answer, FetchResponse)
        ] == counts
        assert asked == [1, 0, 3_000, 10_000]
        peer.close()


async def test_a_channel_that_ends_while_a_request_is_encoded_is_told() -> None:
    async with node_listening(answering([])) as side:
        peer = await side.peers.connect(1, in_time())
        request = FetchRequest(topics=[FetchRequest.FetchTopic(topic="t")] * 10_000)
        asking = asyncio.create_task(peer.request(ApiKey.FETCH, 12, request, in_time()))
        await asyncio.sleep(0)
        peer.close()
        with pytest.raises(PeerLost, match="closed here"):
            await asking


async def test_records_of_any_size_pass() -> None:
    size = 5 << 20

    async def fetch(services: Any, request: FetchRequest, call: Call) -> FetchResponse:
        partition = FetchResponse.PartitionData(records=[b"x" * size, b"y" * 10])
        topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
        return FetchResponse(responses=[topic])

    async with node_listening(table(ServedBy(ApiKey.FETCH, 4, 18, handler=fetch))) as side:
        peer = await side.peers.connect(1, in_time())
        answer = await peer.request(ApiKey.FETCH, 12, FetchRequest(), in_time())
        assert isinstance(answer, FetchResponse)
        records = answer.responses[0].partitions[0].records
        assert isinstance(records, memoryview)
        assert (len(records), bytes(records[-11:])) == (size + 10, b"x" + b"y" * 10)
        peer.close()


async def test_an_answer_that_does_not_come_ends_the_channel() -> None:
    """Answers come in order: nothing behind a lost one could be told apart."""
    gate = asyncio.Event()

    async def slow(services: Any, request: Message, call: Call) -> BrokerHeartbeatResponse:
        await gate.wait()
        return BrokerHeartbeatResponse()

    rows = table(ServedBy(ApiKey.BROKER_HEARTBEAT, 0, 2, handler=slow))
    gone: list[int] = []
    async with node_listening(rows, gone=gone) as side:
        peer = await side.peers.connect(1, in_time())
        waiting = asyncio.ensure_future(
            peer.request(ApiKey.BROKER_HEARTBEAT, 1, BrokerHeartbeatRequest(), in_time())
        )
        await asyncio.sleep(0)
        with pytest.raises(PeerLost, match="in time"):
            await peer.request(ApiKey.BROKER_HEARTBEAT, 1, BrokerHeartbeatRequest(), in_time(0.05))
        with pytest.raises(PeerLost):
            await waiting
        assert peer.closed
        with pytest.raises(PeerLost):
            await peer.request(ApiKey.BROKER_HEARTBEAT, 1, BrokerHeartbeatRequest(), in_time())
        gate.set()
        await until(lambda: gone)
        assert gone == [2]


async def test_a_wrong_secret_or_another_node_is_no_peer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with node_listening(answering([])) as side:
        strangers = side.peers_of(credential(2, b"of another cluster"))
        with pytest.raises(PeerLost):
            await strangers.connect(1, in_time())
        impostor = side.peers_of(Credential(SECRET, 2, UUID(int=2), "another-cluster"))
        with pytest.raises(PeerLost):
            await impostor.connect(1, in_time())
    assert side.refused == []
    assert caplog.text.count("refused") == 2


async def test_nobody_listening_is_told_as_proof_of_death() -> None:
    """RULES B4."""
    async with node_listening(answering([])) as side:
        port = side.port
    with pytest.raises(PeerLost):
        await side.peers_of(credential(2), port=port).connect(1, in_time())
    assert side.refused == [1]
    with pytest.raises(PeerLost, match="not known"):
        await side.peers.connect(5, in_time())


async def test_the_quorum_gets_its_channels_and_unknown_services_are_dropped() -> None:
    raft: list[Channel] = []
    async with node_listening(answering([]), raft=raft) as side:
        for service in ("raft", "none-such"):
            channel = await dial(
                "127.0.0.1",
                side.port,
                credential=credential(2),
                service=service,
                expected_node_id=1,
                rng=Random(3),
                deadline=in_time(),
            )
            ended = asyncio.Event()
            channel.set_receiver(lambda _: None, ended.set)
            if service == "raft":
                await until(lambda: raft)
                assert not ended.is_set()
                channel.close()
                raft[0].close()
            await asyncio.wait_for(ended.wait(), 30)
    assert [channel.peer.node_id for channel in raft] == [2]
