"""An idempotent producer with `acks=all` and several batches on their way to each partition, as
librdkafka and Java's client have them (KIP-98, KIP-360); `sequences` has the rules.

Exactly once holds for all but what it gives up. When sequences lead nowhere any more, nothing new
is sent, answers to what is under way are awaited, and what is *in doubt* then, since some attempt
at it may have been carried out, is told as unknown and never sent again: under another epoch no
broker could know it again. Only then the epoch is bumped, or another producer id asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

from ..history import Outcome
from . import requests
from .batches import encode_batch, padded
from .cluster import ASK_S, ClusterClient, NoAnswer, NotAsked
from .journal import Journal
from .pipeline import Pipeline
from .primitives import Malformed, Reader
from .producer import ACKS_ALL, GIVE_UP_S
from .requests import Api, TopicPartition, error_name
from .sequences import Resend, Sending, Verdict, Window

LAST_EPOCH = 32_767

SPREAD_S = 0.008
"""Up to so long after each other the batches of a burst leave, or at once: a broker may change its
mind about the partition in between, and take the second when it has refused the first."""


class Lane:
    """One partition's batches, and who sends them."""

    def __init__(self, partition: TopicPartition, window: Window) -> None:
        self.partition = partition
        self.window = window
        self.woken = asyncio.Event()
        self.looks_again = False
        """Before it sends: whoever answered last was of no help."""


class PipelinedProducer:
    """Values are `<name>:<number>`, unique in the run when names are; rising by partition."""

    def __init__(
        self,
        name: str,
        client: ClusterClient,
        journal: Journal,
        partitions: Sequence[TopicPartition],
        *,
        in_flight: int,
        resend: Resend,
        patience_s: float,
        batch_records: int,
        record_bytes: int,
        interval_s: float,
        wall_ms: Callable[[], int],
        dice: Random,
    ) -> None:
        """`in_flight`: batches for each partition. `patience_s`: for an answer; then the connection
        is dropped. `interval_s`: between two bursts of batches, each for one partition."""
        self._name = name
        self._client = client
        self._journal = journal
        self._lanes = [Lane(partition, Window(in_flight, resend)) for partition in partitions]
        self._patience_s = patience_s
        self._batch_records = batch_records
        self._record_bytes = record_bytes
        self._interval_s = interval_s
        self._wall_ms = wall_ms
        self._dice = dice
        self._number = 0
        self._processes: list[int] = []
        """Of the history, idle: each has one operation at a time."""
        self._identity: tuple[int, int] | None = None
        """Producer id and epoch."""
        self._identifying = asyncio.Lock()
        self._broken = False
        """Some sequences lead nowhere: nothing is sent until nothing is under way."""
        self._pipelines: dict[int, Pipeline] = {}
        self.renewals = 0
        """Of the epoch or the producer id."""
        self.stopping = False

    async def run(self) -> None:
        """Until `stopping` is set, and all that is on its way then is decided."""
        serving = [asyncio.create_task(self._serve(lane)) for lane in self._lanes]
        turn = 0
        while not self.stopping:
            self._make(self._lanes[turn % len(self._lanes)])
            turn += 1
            await asyncio.sleep(self._interval_s * (0.5 + self._dice.random()))
        for lane in self._lanes:
            lane.woken.set()
        for task in serving:
            await task
        for pipeline in self._pipelines.values():
            pipeline.close()

    def _make(self, lane: Lane) -> None:
        """Some batches at once: they are on their way together also where answers are fast."""
        for _ in range(min(lane.window.room, 1 + self._dice.randrange(lane.window.size))):
            names = [f"{self._name}:{self._number + n}" for n in range(self._batch_records)]
            self._number += self._batch_records
            process = self._processes.pop() if self._processes else self._journal.process()
            self._journal.sending(process, lane.partition, names)
            deadline = asyncio.get_running_loop().time() + GIVE_UP_S
            lane.window.add(names, process=process, deadline=deadline, timestamp_ms=self._wall_ms())
        lane.woken.set()

    # Sending

    async def _serve(self, lane: Lane) -> None:
        while not self.stopping or lane.window.sendings:
            lane.woken.clear()
            await self._send_waiting(lane)
            await lane.woken.wait()

    async def _send_waiting(self, lane: Lane) -> None:
        while not self._broken and (sending := lane.window.next_to_send()) is not None:
            if asyncio.get_running_loop().time() > sending.deadline:
                self._give_up(lane, sending)
                return
            try:
                if lane.looks_again:
                    lane.looks_again = False
                    await self._client.look_again(lane.partition)
                identity = await self._identified()
                leader = (await self._client.leader(lane.partition)).leader
                pipeline = await self._pipeline_to(leader)
            except NotAsked:
                lane.looks_again = True
                continue
            # Time has passed.
            if not self._broken and lane.window.next_to_send() is sending:
                assert identity == self._identity
                self._send(lane, sending, pipeline, leader)
                await asyncio.sleep(max(0.0, self._dice.uniform(-SPREAD_S, SPREAD_S)))

    async def _identified(self) -> tuple[int, int]:
        """Raises NotAsked."""
        async with self._identifying:
            if self._identity is None:
                try:
                    self._identity = await self._client.producer_id()
                except NoAnswer as error:
                    raise NotAsked(str(error)) from error
            return self._identity

    async def _pipeline_to(self, node_id: int) -> Pipeline:
        """Raises NotAsked."""
        known = self._pipelines.get(node_id)
        if known is not None and not known.closed:
            return known
        try:
            async with asyncio.timeout(self._patience_s):
                opened = await Pipeline.open(*self._client.address(node_id))
        except (OSError, TimeoutError) as error:
            raise NotAsked(str(error)) from error
        known = self._pipelines.get(node_id)
        if known is not None and not known.closed:
            opened.close()
            return known
        self._pipelines[node_id] = opened
        return opened

    def _send(self, lane: Lane, sending: Sending, pipeline: Pipeline, node_id: int) -> None:
        sending.data = sending.data or self._encode(sending)
        body = requests.produce_request(
            lane.partition, sending.data, acks=ACKS_ALL, timeout_ms=int(ASK_S * 750)
        )
        lane.window.on_sent(sending)
        leads = self._journal.witness.leads_in(lane.partition, node_id)
        answer = pipeline.ask(Api.PRODUCE, body, within=self._patience_s)
        answer.add_done_callback(partial(self._on_answer, lane, sending, node_id, leads))

    def _encode(self, sending: Sending) -> bytes:
        assert self._identity is not None
        producer_id, producer_epoch = self._identity
        return encode_batch(
            [padded(name, self._record_bytes) for name in sending.names],
            timestamp_ms=sending.timestamp_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sending.base_sequence,
        )

    # Answers

    def _on_answer(
        self,
        lane: Lane,
        sending: Sending,
        node_id: int,
        leads: int | None,
        answer: asyncio.Future[Reader],
    ) -> None:
        error, base_offset = self._read(answer)
        verdict = lane.window.on_answer(sending, error, in_doubt=True)
        if verdict is Verdict.ACKNOWLEDGED:
            self._journal.sent(sending.process, lane.partition, sending.names, base_offset)
            self._processes.append(sending.process)
        elif verdict is Verdict.BROKEN:
            self._broken = True
        if verdict in (Verdict.DISAGREED, Verdict.BROKEN) and leads is not None:
            self._accuse(lane, sending, node_id, leads, error)
        lane.looks_again |= error not in ("NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER")
        lane.looks_again |= verdict is Verdict.DISAGREED
        lane.woken.set()
        self._maybe_begin_anew()

    def _read(self, answer: asyncio.Future[Reader]) -> tuple[str, int]:
        """Kafka's name of the error and the base offset; or a sentence in small letters."""
        if answer.cancelled():
            return "no answer: cancelled", -1
        failed = answer.exception()
        if isinstance(failed, Malformed):
            self._journal.witness.violation(f"answers: {self._name} got them in disorder: {failed}")
        if failed is not None:
            return f"no answer: {failed}", -1
        code, base_offset = requests.produce_response(answer.result())
        return error_name(code), base_offset

    def _accuse(self, lane: Lane, sending: Sending, node_id: int, leads: int, error: str) -> None:
        """Whoever leads knows all that was acknowledged. Who was deposed without hearing of it does
        not; so only the leader of the newest image is told of, if it was so all the time."""
        if leads == self._journal.witness.leads_in(lane.partition, node_id):
            self._journal.witness.violation(
                f"sequence: node {node_id}, leader of {lane.partition.key}, answers {error} to "
                f"sequence {sending.base_sequence} of producer {self._identity}, before which all "
                "was acknowledged"
            )

    # When sequences lead nowhere

    def _give_up(self, lane: Lane, sending: Sending) -> None:
        """It has lasted too long; what follows cannot take its place while it is in doubt."""
        if not sending.in_doubt:
            lane.window.sendings.remove(sending)
            self._tell([sending], lane, "NOT_ENOUGH_REPLICAS")
        self._broken = True
        self._maybe_begin_anew()

    def _maybe_begin_anew(self) -> None:
        if not self._broken or any(lane.window.flying for lane in self._lanes):
            return
        in_doubt = 0
        for lane in self._lanes:
            given_up = lane.window.begin_anew()
            self._tell(given_up, lane, "REQUEST_TIMED_OUT")
            in_doubt += len(given_up)
            lane.woken.set()
        self.renewals += 1
        bumps = not in_doubt or self._dice.random() < 0.5
        if self._identity is not None:
            producer_id, producer_epoch = self._identity
            bumps = bumps and producer_epoch < LAST_EPOCH
            self._identity = (producer_id, producer_epoch + 1) if bumps else None
        self._broken = False

    def _tell(self, given_up: Iterable[Sending], lane: Lane, error: str) -> None:
        for sending in given_up:
            outcome = self._journal.not_sent(
                sending.process,
                lane.partition,
                sending.names,
                error,
                earlier_unknown=sending.in_doubt,
            )
            if outcome is not Outcome.INFO:
                self._processes.append(sending.process)
