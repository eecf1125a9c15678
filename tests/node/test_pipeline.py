"""Properties of the pipeline, without sockets: any requests, finished in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.node.caller import Caller
from logboat.node.dispatch import Dispatcher
from logboat.node.handlers import CLIENT_APIS
from logboat.node.pipeline import Pipeline
from logboat.node.served import Call, Reply, Served
from logboat.seam import Buffer, TaskScope
from logboat.wire import ApiKey, Message, RequestHeader, Steps
from logboat.wire.messages.heartbeat import HeartbeatResponse
from tests.node.listening import fail

KEYS = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.OFFSET_COMMIT)


class FakeDispatcher:
    """A frame is the request's number in one byte; the test says when each is finished, and in how
    many steps it is decoded and its answer encoded."""

    def __init__(self, keys: list[ApiKey], pauses: list[int] | None = None) -> None:
        self.keys = keys
        self.pauses = pauses or [0] * len(keys)
        self.started: list[int] = []
        self.gates: dict[int, asyncio.Future[None]] = {}
        self.unanswered_at_start: dict[int, list[int]] = {}
        self.answered: list[int] = []
        self.on_start: dict[int, Callable[[Call], None]] = {}

    def decode(
        self, frame: memoryview, caller: Caller
    ) -> Steps[tuple[Served, Call, Message | None]]:
        number = frame[0]
        for _ in range(self.pauses[number]):
            yield
        key = self.keys[number]
        header = RequestHeader(api_key=key, correlation_id=number)
        return CLIENT_APIS[key], Call(header, caller), None

    def handle(self, served: Served, call: Call, request: Any) -> Awaitable[Reply]:
        number = call.header.correlation_id
        self.unanswered_at_start[number] = [n for n in self.started if n not in self.answered]
        self.started.append(number)
        self.gates[number] = asyncio.get_running_loop().create_future()
        if number in self.on_start:
            self.on_start[number](call)
        return self._finish(number)

    async def _finish(self, number: int) -> HeartbeatResponse:
        await self.gates[number]
        return HeartbeatResponse(throttle_time_ms=number)

    def encode(self, call: Call, reply: Reply) -> Steps[list[Buffer]]:
        for _ in range(self.pauses[-1 - reply.throttle_time_ms]):
            yield
        return [bytes([reply.throttle_time_ms])]


async def play(keys: list[ApiKey], picks: list[int], pauses: list[int]) -> FakeDispatcher:
    """Receive all requests, then finish started ones in the order that `picks` says."""
    dispatcher = FakeDispatcher(keys, pauses)
    tasks = TaskScope(fail)
    released = 0

    def on_progress(size: int) -> None:
        nonlocal released
        released += size

    pipeline = Pipeline(
        cast(Dispatcher, dispatcher),
        Caller("test", 1),
        encode=dispatcher.encode,
        send=lambda parts: dispatcher.answered.append(bytes(parts[0])[0]),
        fail=lambda reason: fail(AssertionError(reason)),
        on_progress=on_progress,
        tasks=tasks,
        on_fatal=fail,
    )
    for number in range(len(keys)):
        pipeline.receive(memoryview(bytes([number])))
    for pick in picks:
        for _ in range(40):  # Decoded one behind the other, all of them.
            await asyncio.sleep(0)
        open_gates = [n for n, gate in dispatcher.gates.items() if not gate.done()]
        if not open_gates:
            break
        dispatcher.gates[open_gates[pick % len(open_gates)]].set_result(None)
        for _ in range(6):
            await asyncio.sleep(0)
    assert pipeline.count == len(keys) - len(dispatcher.answered)
    assert released == len(dispatcher.answered)
    await tasks.close()
    return dispatcher


requests = st.lists(st.sampled_from(KEYS), min_size=1, max_size=12)
orders = st.lists(st.integers(0, 11), min_size=12, max_size=12)
few_or_none = st.lists(st.sampled_from([0, 0, 1, 2]), min_size=12, max_size=12)


@settings(deadline=None, max_examples=150)
@given(keys=requests, picks=orders, pauses=few_or_none)
def test_every_request_is_answered_once_and_in_the_order_of_arrival(
    keys: list[ApiKey], picks: list[int], pauses: list[int]
) -> None:
    dispatcher = asyncio.run(play(keys, picks, pauses))
    assert dispatcher.answered == list(range(len(keys)))
    assert dispatcher.started == list(range(len(keys)))


@settings(deadline=None, max_examples=150)
@given(keys=requests, picks=orders, pauses=few_or_none)
def test_no_request_starts_behind_one_that_its_api_may_not_overtake(
    keys: list[ApiKey], picks: list[int], pauses: list[int]
) -> None:
    dispatcher = asyncio.run(play(keys, picks, pauses))
    for number, unanswered in dispatcher.unanswered_at_start.items():
        allowed = CLIENT_APIS[keys[number]].may_start_behind
        assert {keys[earlier] for earlier in unanswered} <= allowed


async def test_a_held_pipeline_starts_nothing_until_it_is_released() -> None:
    dispatcher = FakeDispatcher([ApiKey.PRODUCE, ApiKey.PRODUCE])
    tasks = TaskScope(fail)
    pipeline = Pipeline(
        cast(Dispatcher, dispatcher),
        Caller("test", 1),
        encode=dispatcher.encode,
        send=lambda parts: dispatcher.answered.append(parts[0][0]),
        fail=lambda reason: fail(AssertionError(reason)),
        on_progress=lambda size: None,
        tasks=tasks,
        on_fatal=fail,
    )
    pipeline.receive(memoryview(b"\x00"))
    pipeline.hold()
    pipeline.receive(memoryview(b"\x01"))
    assert dispatcher.started == [0]
    pipeline.release()
    assert dispatcher.started == [0, 1]
    await tasks.close()


async def test_after_the_client_is_gone_fetches_end_and_the_rest_runs_on_unanswered() -> None:
    dispatcher = FakeDispatcher([ApiKey.PRODUCE, ApiKey.FETCH])
    told: list[int] = []
    dispatcher.on_start[0] = lambda call: call.when_gone(lambda: told.append(0))
    tasks = TaskScope(fail)
    pipeline = Pipeline(
        cast(Dispatcher, dispatcher),
        Caller("test", 1),
        encode=dispatcher.encode,
        send=lambda parts: dispatcher.answered.append(parts[0][0]),
        fail=lambda reason: fail(AssertionError(reason)),
        on_progress=lambda size: None,
        tasks=tasks,
        on_fatal=fail,
    )
    pipeline.receive(memoryview(b"\x00"))
    pipeline.receive(memoryview(b"\x01"))
    await asyncio.sleep(0)
    pipeline.abandon()
    await asyncio.sleep(0)
    assert told == [0], "the one that asked for it"
    assert dispatcher.gates[1].cancelled()
    assert not dispatcher.gates[0].done()
    dispatcher.gates[0].set_result(None)
    await asyncio.sleep(0.01)
    assert dispatcher.answered == []
    await tasks.close()
