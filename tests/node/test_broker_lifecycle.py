"""A node as a broker: registered, heard, unfenced, registered again, let go (RULES B)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from random import Random
from typing import cast
from uuid import UUID

import pytest

from logboat.metadata.machine import MetadataMachine
from logboat.node.addresses import Address
from logboat.node.broker_lifecycle import BrokerIdentity, BrokerLifecycle, BrokerState
from logboat.node.controller_client import ControllerClient, ControllerUnavailable
from logboat.seam import Fatal
from logboat.wire import ApiKey, ErrorCode, Message
from logboat.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from logboat.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from tests.waiting import until


@dataclass
class FakeController:
    """Answers as told; keeps what it was asked. Also this node's image: no brokers, index 10."""

    registration: Callable[[], ErrorCode] = lambda: ErrorCode.NONE
    heartbeat_error: Callable[[], ErrorCode] = lambda: ErrorCode.NONE
    leads: bool = False
    """The broker leads something: a controlled shutdown is not granted yet."""
    registrations: list[BrokerRegistrationRequest] = field(default_factory=list)
    heartbeats: list[BrokerHeartbeatRequest] = field(default_factory=list)
    index: int = 10
    brokers: dict[int, object] = field(default_factory=dict)
    voter_directories: dict[int, UUID] = field(default_factory=dict)

    @property
    def image(self) -> FakeController:
        return self

    async def ask(self, api_key: ApiKey, request: Message, deadline: float) -> Message:
        await asyncio.sleep(0)
        if isinstance(request, BrokerRegistrationRequest):
            self.registrations.append(request)
            error = self.registration()
            epoch = 100 + len(self.registrations) if error == ErrorCode.NONE else -1
            return BrokerRegistrationResponse(error_code=error, broker_epoch=epoch)
        assert isinstance(request, BrokerHeartbeatRequest)
        self.heartbeats.append(request)
        return BrokerHeartbeatResponse(
            error_code=self.heartbeat_error(),
            is_fenced=request.want_fence,
            should_shut_down=request.want_shut_down and not self.leads,
        )


@dataclass
class NewerSelf:
    broker_epoch: int


def lifecycle(
    controller: FakeController, epochs: list[int] | None = None, *, session_s: float = 60.0
) -> BrokerLifecycle:
    registered = [] if epochs is None else epochs
    return BrokerLifecycle(
        BrokerIdentity(
            node_id=1,
            cluster_id="c",
            directory_id=UUID(int=9),
            previous_broker_epoch=55,
            rack="r",
            kafka=Address("k", 1),
            internode=Address("i", 2),
            http=None,
        ),
        controller=cast(ControllerClient, controller),
        machine=cast(MetadataMachine, controller),
        heartbeat_s=0.01,
        session_s=session_s,
        rng=Random(1),
        on_registered=registered.append,
    )


@contextlib.asynccontextmanager
async def running(broker: BrokerLifecycle) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(broker.run())
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def state(broker: BrokerLifecycle) -> BrokerState:
    return broker.state


async def test_a_broker_registers_and_stays_fenced_until_its_logs_are_open() -> None:
    controller = FakeController()
    epochs: list[int] = []
    broker = lifecycle(controller, epochs)
    async with running(broker):
        await until(lambda: len(controller.heartbeats) >= 3)
        assert epochs == [101]
        assert state(broker) is BrokerState.FENCED
        assert all(beat.want_fence for beat in controller.heartbeats)
        broker.logs_are_open()
        await broker.running()
        assert state(broker) is BrokerState.RUNNING
        assert broker.in_session
        (request,) = controller.registrations
        assert [listener.name for listener in request.listeners] == ["PLAINTEXT", "INTERNODE"]
        assert request.log_dirs == [UUID(int=9)]
        assert request.previous_broker_epoch == 55


async def test_a_registration_that_must_wait_is_tried_again_as_the_same_incarnation() -> None:
    answers = [ErrorCode.DUPLICATE_BROKER_REGISTRATION, ErrorCode.NONE]
    controller = FakeController(registration=lambda: answers.pop(0))
    async with running(lifecycle(controller)):
        await until(lambda: bool(controller.heartbeats))
        first, second = controller.registrations
        assert first.incarnation_id == second.incarnation_id


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ErrorCode.INCONSISTENT_CLUSTER_ID, "INCONSISTENT_CLUSTER_ID"),
        # An emptied node knows nothing of the cluster yet, and names the command all the same.
        (ErrorCode.INVALID_REGISTRATION, "logboat quorum replace-voter 1 00000000-0000-0000"),
    ],
)
async def test_a_registration_that_can_never_be_is_the_end(error: ErrorCode, said: str) -> None:
    controller = FakeController(registration=lambda: error)
    with pytest.raises(Fatal, match=said):
        await lifecycle(controller).run()


async def test_another_disk_is_told_how_to_become_the_voter() -> None:
    """RULES B3."""
    controller = FakeController(registration=lambda: ErrorCode.INVALID_REGISTRATION)
    controller.voter_directories = {1: UUID(int=8)}
    with pytest.raises(Fatal, match="logboat quorum replace-voter"):
        await lifecycle(controller).run()


async def test_a_forgotten_broker_registers_as_a_new_incarnation() -> None:
    """RULES B1: what it led, it led under the old epoch. Nothing on its disk was lost meanwhile."""
    errors = [ErrorCode.NONE, ErrorCode.BROKER_ID_NOT_REGISTERED]
    controller = FakeController(heartbeat_error=lambda: errors.pop(0) if errors else ErrorCode.NONE)
    epochs: list[int] = []
    async with running(lifecycle(controller, epochs)):
        await until(lambda: len(epochs) == 2)
        first, second = controller.registrations
        assert first.incarnation_id != second.incarnation_id
        assert second.previous_broker_epoch == epochs[0]


async def test_a_broker_whose_place_is_taken_ends() -> None:
    """RULES B2: another process has the directory."""
    controller = FakeController(heartbeat_error=lambda: ErrorCode.STALE_BROKER_EPOCH)
    controller.brokers = {1: NewerSelf(broker_epoch=500)}
    with pytest.raises(Fatal, match="another process has registered"):
        await lifecycle(controller).run()


async def test_a_leaving_broker_waits_until_it_leads_nothing() -> None:
    controller = FakeController(leads=True)
    broker = lifecycle(controller)
    async with running(broker) as task:
        broker.logs_are_open()
        await broker.running()
        loop = asyncio.get_running_loop()
        assert not await broker.leave(loop.time() + 0.1)
        assert state(broker) is BrokerState.LEAVING
        controller.leads = False
        assert await broker.leave(loop.time() + 30)
        assert state(broker) is BrokerState.GONE
        await task  # It has nothing more to say.


async def test_a_controller_out_of_reach_ends_the_session_but_not_the_broker() -> None:
    controller = FakeController()
    broker = lifecycle(controller, session_s=0.2)
    async with running(broker) as task:
        broker.logs_are_open()
        await broker.running()

        async def unreachable(api_key: ApiKey, request: Message, deadline: float) -> Message:
            await asyncio.sleep(0.01)
            raise ControllerUnavailable("no leader", may_have_happened=False)

        reachable, controller.ask = controller.ask, unreachable  # type: ignore[method-assign]
        await until(lambda: not broker.in_session)
        controller.ask = reachable  # type: ignore[method-assign]
        await until(lambda: broker.in_session)
        assert not task.done()
