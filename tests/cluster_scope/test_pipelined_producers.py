"""Idempotent producers with five batches in flight: each record once, in order, at its offset."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from io import BytesIO

import orjson
import pytest

from logboat.jepsen_style.clients.cluster import NoAnswer
from logboat.jepsen_style.clients.pipeline import Pipeline
from logboat.jepsen_style.clients.primitives import Malformed, Reader, Writer
from logboat.jepsen_style.clients.requests import Api
from logboat.jepsen_style.cluster_scope.run import run_schedule
from logboat.jepsen_style.history import Recorder
from logboat.jepsen_style.history.reading import parse_history
from logboat.jepsen_style.judge import judge_run
from logboat.jepsen_style.schedule import (
    Consumers,
    Fault,
    Producers,
    Schedule,
    ScheduleError,
    Target,
    Topic,
)
from logboat.jepsen_style.schedule.schedule import RESENDS

TOPIC = Topic("orders", 1, 3, {"min.insync.replicas": "2"})
LEADER = Target("leader", TOPIC.name)


def schedule(*resends: str, faults: tuple[Fault, ...] = ()) -> Schedule:
    return Schedule(
        seed=1,
        nodes=3,
        topics=(TOPIC,),
        producers=tuple(
            Producers(TOPIC.name, interval_ms=60, in_flight=5, resend=resend, patience_ms=600)
            for resend in resends
        ),
        consumers=(Consumers(TOPIC.name),),
        faults=faults,
        settings={"min.insync.replicas": "2", "replica.lag.time.max.ms": "1500"},
        hurt_ms=3_500,
    )


def test_each_record_stands_once_in_order_whatever_becomes_of_the_answers() -> None:
    faults = (
        # Answers are lost, then those who ask turn to a paused leader again and to another one.
        Fault(600, "lost-responses", LEADER, 500, {"api": 0, "silently": False}),
        Fault(1_300, "pause", LEADER, 1_800),
        Fault(2_200, "reset", LEADER, 300),
    )
    written = BytesIO()
    hurt = schedule(*RESENDS, faults=faults)
    result = run_schedule(hurt, floors=False, recorder=Recorder(written))
    assert result.violations == []
    assert result.stuck == []
    events = [orjson.loads(line) for line in written.getvalue().splitlines()]
    (seen,) = [event["value"] for event in events if event["f"] == "batches"]
    assert seen["log_start"] == 0
    # One (producer id, epoch) for each: nobody had to begin anew.
    assert len({(batch[1], batch[2]) for batch in seen["batches"]}) == len(RESENDS)
    under_way = most = 0
    for event in events:
        if event["f"] == "send":
            under_way += 1 if event["type"] == "invoke" else -1
            most = max(most, under_way)
    assert most >= 2 * 5
    judgement = judge_run(parse_history(written.getvalue()))
    assert judgement.holds, judgement.verdict.reason


def test_only_idempotent_producers_may_have_several_batches_in_flight() -> None:
    made = schedule("all")
    assert Schedule.from_json(made.to_json()) == made
    for wrong in ({"idempotent": False}, {"in_flight": 6}, {"in_flight": 0}, {"resend": "none"}):
        producers = (replace(made.producers[0], **wrong),)
        with pytest.raises(ScheduleError):
            replace(made, producers=producers).check()


class Wire(asyncio.Transport):
    """Where a client's requests go to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True


def frame(correlation_id: int, body: bytes) -> bytes:
    payload = correlation_id.to_bytes(4, "big") + body
    return len(payload).to_bytes(4, "big") + payload


def told(asked: asyncio.Future[Reader]) -> int:
    return asked.result().int32()


async def asked_twice(
    *, within: float = 60.0
) -> tuple[Pipeline, Wire, asyncio.Future[Reader], asyncio.Future[Reader]]:
    pipeline, wire = Pipeline(), Wire()
    pipeline.connection_made(wire)
    first, second = (pipeline.ask(Api.METADATA, Writer(), within=within) for _ in range(2))
    assert wire.written.count(b"jepsen-style") == 2
    return pipeline, wire, first, second


def test_answers_come_in_the_order_of_what_was_asked() -> None:
    async def play() -> None:
        pipeline, _, first, second = await asked_twice()
        answers = frame(1, b"\0\0\0\7") + frame(2, b"\0\0\0\10")
        for byte in answers:
            pipeline.data_received(bytes([byte]))
        assert (told(first), told(second)) == (7, 8)
        pipeline.close()

    asyncio.run(play())


def test_an_answer_to_another_request_ends_the_connection() -> None:
    async def play() -> None:
        pipeline, wire, first, second = await asked_twice()
        pipeline.data_received(frame(2, b"\0\0\0\7"))
        for asked in (first, second):
            with pytest.raises(Malformed):
                asked.result()
        assert wire.closed
        assert pipeline.closed

    asyncio.run(play())


def test_one_answer_that_is_late_ends_the_connection_with_all_that_is_under_way() -> None:
    async def play() -> None:
        pipeline, wire, first, second = await asked_twice(within=0.01)
        for asked in (first, second):
            with pytest.raises(NoAnswer):
                await asked
        assert wire.closed
        with pytest.raises(NoAnswer):
            await pipeline.ask(Api.METADATA, Writer(), within=60.0)

    asyncio.run(play())
