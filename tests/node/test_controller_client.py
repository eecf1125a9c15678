"""The way to the active controller: what is tried again, what is not, and when an answer counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from logboat.metadata.commands import Origin
from logboat.metadata.controller import ControllerAnswer
from logboat.metadata.machine import MetadataMachine
from logboat.node.controller_client import ControllerClient, ControllerUnavailable, Origins
from logboat.node.peers import InternodePeer, Peers
from logboat.partitions import PeerLost
from logboat.wire import ApiKey, ErrorCode, Message
from logboat.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from logboat.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from logboat.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

SELF = 1
OTHER = 2

Answer = ControllerAnswer[Message] | Exception


class Scene:
    """Nodes 1 (this one) and 2; what each would answer next, and what was asked of whom."""

    def __init__(self) -> None:
        self.leader: int | None = OTHER
        self.index = 0
        self.answers: list[Answer] = []
        self.asked: list[tuple[int, ApiKey, Origin | None]] = []
        self.unreachable = 0
        self.origins = Origins()
        self.client = ControllerClient(
            node_id=SELF,
            peers=cast(Peers, self),
            local=self._local,
            leader=lambda: self.leader,
            machine=cast(MetadataMachine, self),
            attempt_s=10.0,
            origins=self.origins,
        )

    # As the controller of this node.

    async def _local(
        self,
        api_key: ApiKey,
        request: Message,
        version: int,
        deadline: float,
        origin: Origin | None,
    ) -> ControllerAnswer[Message]:
        return self._next(SELF, api_key, origin)

    # As `Peers` and as the one peer.

    closed = False

    def close(self) -> None: ...

    async def connect(self, node_id: int, deadline: float) -> InternodePeer:
        if self.unreachable:
            self.unreachable -= 1
            raise PeerLost("refused")
        return cast(InternodePeer, self)

    async def ask(
        self,
        api_key: ApiKey,
        version: int,
        request: Message,
        deadline: float,
        origin: Origin | None = None,
    ) -> ControllerAnswer[Message]:
        return self._next(OTHER, api_key, origin)

    # As the machine.

    @property
    def image(self) -> Scene:
        return self

    @property
    def brokers(self) -> dict[int, Scene]:
        return {SELF: self}

    broker_epoch = 77

    async def wait_for(self, index: int, deadline: float) -> bool:
        await asyncio.sleep(0)
        return self.index >= index

    def _next(
        self, node_id: int, api_key: ApiKey, origin: Origin | None
    ) -> ControllerAnswer[Message]:
        self.asked.append((node_id, api_key, origin))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def heartbeat(error: ErrorCode = ErrorCode.NONE, index: int = 0) -> Answer:
    return ControllerAnswer(BrokerHeartbeatResponse(error_code=error), index)


def created(error: ErrorCode = ErrorCode.NONE, index: int = 0) -> Answer:
    topic = CreateTopicsResponse.CreatableTopicResult(name="t", error_code=error)
    return ControllerAnswer(CreateTopicsResponse(topics=[topic]), index)


def in_time(seconds: float = 30.0) -> float:
    return asyncio.get_running_loop().time() + seconds


async def beat(scene: Scene, deadline: float) -> Message:
    return await scene.client.ask(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatRequest(), deadline)


async def test_the_controller_may_be_this_node_or_another() -> None:
    scene = Scene()
    scene.answers = [heartbeat(), heartbeat()]
    await beat(scene, in_time())
    scene.leader = SELF
    await beat(scene, in_time())
    assert [node_id for node_id, _, _ in scene.asked] == [OTHER, SELF]


async def test_who_is_not_the_controller_is_asked_again_until_one_is() -> None:
    scene = Scene()
    scene.answers = [heartbeat(ErrorCode.NOT_CONTROLLER)] * 3 + [heartbeat()]
    answer = await beat(scene, in_time())
    assert isinstance(answer, BrokerHeartbeatResponse)
    assert answer.error_code == ErrorCode.NONE


async def test_not_controller_hides_in_the_items_of_other_answers() -> None:
    scene = Scene()
    scene.answers = [created(ErrorCode.NOT_CONTROLLER), created()]
    await scene.client.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(), in_time())
    assert len(scene.asked) == 2


async def test_without_a_leader_nothing_happens_and_that_is_said() -> None:
    scene = Scene()
    scene.leader = None
    with pytest.raises(ControllerUnavailable) as raised:
        await beat(scene, in_time(0.1))
    assert not raised.value.may_have_happened
    assert scene.asked == []


async def test_an_election_ends_the_pause_between_two_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("logboat.node.controller_client.RETRY_PAUSE_S", 60.0)
    scene = Scene()
    scene.leader = None
    scene.answers = [heartbeat()]
    asking = asyncio.create_task(beat(scene, in_time(30.0)))
    await asyncio.sleep(0)
    scene.leader = 1
    scene.client.on_leader(1)
    async with asyncio.timeout(30.0):
        await asking


async def test_a_controller_that_cannot_be_reached_did_nothing() -> None:
    scene = Scene()
    scene.unreachable = 1_000
    with pytest.raises(ControllerUnavailable) as raised:
        await beat(scene, in_time(0.1))
    assert not raised.value.may_have_happened
    scene.unreachable = 2
    scene.answers = [heartbeat()]
    await beat(scene, in_time())


async def test_a_lost_answer_is_asked_for_again_under_the_same_origin() -> None:
    """RULES A5: the controller recognises the repeated request."""
    scene = Scene()
    scene.answers = [PeerLost("gone"), PeerLost("gone"), created()]
    await scene.client.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(), in_time())
    origins = [origin for _, _, origin in scene.asked]
    assert origins == [Origin(SELF, 77, 1)] * 3
    scene.answers = [created()]
    await scene.client.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(), in_time())
    assert scene.asked[-1][2] == Origin(SELF, 77, 2)


async def test_what_may_not_be_repeated_is_unknown_after_a_lost_answer() -> None:
    scene = Scene()
    answered: Answer = ControllerAnswer(CreatePartitionsResponse(), 0)
    scene.answers = [PeerLost("gone"), answered]
    with pytest.raises(ControllerUnavailable) as raised:
        await scene.client.ask(ApiKey.CREATE_PARTITIONS, CreatePartitionsRequest(), in_time())
    assert raised.value.may_have_happened
    assert len(scene.asked) == 1


async def test_an_answer_counts_when_this_node_has_read_as_far() -> None:
    """RULES A6."""
    scene = Scene()
    scene.answers = [heartbeat(index=5)]
    with pytest.raises(ControllerUnavailable) as raised:
        await beat(scene, in_time())
    assert raised.value.may_have_happened
    scene.answers = [heartbeat(index=5)]
    scene.index = 5
    await beat(scene, in_time())


async def test_one_creation_is_in_flight_at_a_time() -> None:
    """The controller remembers only the last request of a kind (RULES A5)."""
    scene = Scene()
    gate = asyncio.Event()
    running = 0
    most = 0

    async def slow(
        api_key: ApiKey,
        request: Message,
        version: int,
        deadline: float,
        origin: Origin | None,
    ) -> ControllerAnswer[Message]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1
        answer = created()
        assert isinstance(answer, ControllerAnswer)
        return answer

    scene.leader = SELF
    client = _with_local(scene, slow)
    creations = [
        asyncio.ensure_future(client.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(), in_time()))
        for _ in range(5)
    ]
    await asyncio.sleep(0)  # The first of them holds the lock now.
    with pytest.raises(ControllerUnavailable) as raised:
        await client.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(), in_time(0.05))
    assert not raised.value.may_have_happened
    gate.set()
    await asyncio.gather(*creations)
    assert most == 1


async def test_two_clients_of_one_node_never_give_two_commands_the_same_number() -> None:
    """A5: the controller would answer the second with the result of the first."""
    scene = Scene()
    numbers: list[int] = []
    running = most = 0

    async def counted(
        api_key: ApiKey,
        request: Message,
        version: int,
        deadline: float,
        origin: Origin | None,
    ) -> ControllerAnswer[Message]:
        nonlocal running, most
        assert origin is not None
        numbers.append(origin.sequence)
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        answer = created()
        assert isinstance(answer, ControllerAnswer)
        return answer

    scene.leader = SELF
    clients = [_with_local(scene, counted) for _ in range(2)]
    asked = [
        client.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(), in_time()) for client in clients * 3
    ]
    await asyncio.gather(*asked)
    assert len(set(numbers)) == len(numbers) == 6
    assert most == 1


def _with_local(scene: Scene, local: Callable[..., object]) -> ControllerClient:
    return ControllerClient(
        node_id=SELF,
        peers=cast(Peers, scene),
        local=local,  # type: ignore[arg-type]
        leader=lambda: scene.leader,
        machine=cast(MetadataMachine, scene),
        attempt_s=30.0,
        origins=scene.origins,
    )
