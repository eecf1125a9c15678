"""Produce (API key 0, versions 3-13): append batches, answer when they are as safe as asked.

v5 log start offset, v8 error messages, v10 where the leader is, v13 topic ids.

Every partition is answered for itself (RULES D5): refused before anything is appended, or appended
and then waited for, until the request's time is up: REQUEST_TIMED_OUT, which says nothing about
what became of the records. `Partition.append` and `LeaderState.produce_answer` decide.
"""

from __future__ import annotations

import asyncio

from ..seam import Buffer
from ..wire import ErrorCode, Records
from ..wire.compression import Compression
from ..wire.messages.produce import ProduceRequest, ProduceResponse
from ..wire.records.batch_header import COMPRESSION_MASK
from .append_order import AppendOrder, Turn
from .fetch import PartitionFinder
from .leader_hints import LeaderHints
from .partition import ACKS_ALL, ACKS_LEADER, ACKS_NONE, Partition
from .refused_batches import Place, RefusedBatches
from .roles import Refused
from .storage import LeaderBatch, RecordsRejected, StorageFailed, VerificationGuard
from .traffic import TopicTraffic, is_failure
from .waiting_room import PendingAnswers

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_LEADER_HINTS = 10
FIRST_VERSION_WITH_TOPIC_IDS = 13

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Written by coordinators only."""

ATTRIBUTES_LOW_BYTE = 22
"""Of a batch: the one that names its codec."""

PATIENCE_S = 1.0
"""At least so long a batch waits for its turn, whatever the request's timeout."""

Answer = ProduceResponse.TopicProduceResponse.PartitionProduceResponse


async def produce(
    finder: PartitionFinder, request: ProduceRequest, version: int, order: AppendOrder
) -> ProduceResponse:
    """With `acks=0` nobody reads the response; it is there all the same."""
    response = ProduceResponse()
    pending = PendingAnswers()
    deadline = asyncio.get_running_loop().time() + max(request.timeout_ms, 0) / 1000
    later: list[_Later] = []
    counted: list[tuple[TopicTraffic, Answer]] = []
    valid_acks = request.acks in (ACKS_ALL, ACKS_LEADER, ACKS_NONE)
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    for topic in request.topic_data:
        answers: list[Answer] = []
        response.responses.append(
            ProduceResponse.TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=answers
            )
        )
        for asked in topic.partition_data:
            answer = Answer(index=asked.index, base_offset=-1)
            answers.append(answer)
            if not valid_acks:
                answer.error_code = ErrorCode.INVALID_REQUIRED_ACKS
                continue
            place = topic.topic_id if by_id else topic.name, asked.index
            batch = _Batch(place, one_buffer(asked.records), answer, order.refused)
            try:
                if by_id:
                    partition = finder.find_by_id(topic.topic_id, asked.index)
                else:
                    partition = finder.find(topic.name, asked.index)
                partition.traffic.produces += 1
                counted.append((partition.traffic, answer))
                _refuse_codec(batch.records, version)
                turn = order.enter(partition, batch.records, version)
                if turn is None:
                    _produce_to(partition, batch, request.acks, pending)
                else:
                    later.append(_Later(turn, partition, batch))
            except Refused as refused:
                batch.refuse(refused.error)
    if later:
        await _append_later(order, later, request.acks, pending, deadline)
    await pending.wait(deadline)
    for traffic, answer in counted:
        traffic.failed_produces += is_failure(answer.error_code)
    if version >= FIRST_VERSION_WITH_LEADER_HINTS:
        _add_leader_hints(finder, response)
    return response


class _Batch:
    """What came for one partition, and the answer to it."""

    __slots__ = ("_refused", "answer", "checked", "place", "records")

    def __init__(
        self, place: Place, records: Buffer, answer: Answer, refused: RefusedBatches
    ) -> None:
        self.place = place
        self.records = records
        self.answer = answer
        self.checked: LeaderBatch | None = None
        """Once it is, where that was done beside the loop."""
        self._refused = refused

    def require_not_behind_refused(self, partition: Partition) -> None:
        """Raises Refused."""
        if self._refused:
            records = self.checked or self.records
            self._refused.require_not_behind(self.place, records, partition.log)

    def refuse(self, error: ErrorCode) -> None:
        """Not appended, or nobody knows what became of it. What its producer has sent behind it
        must not pass it."""
        self.answer.error_code = error
        self._refused.note(self.place, self.records, error)

    def reject(self, rejected: RecordsRejected) -> None:
        """Something is wrong with the records themselves."""
        self.refuse(rejected.error)
        self.answer.error_message = rejected.message
        self.answer.record_errors = [
            Answer.BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=message)
            for number, message in rejected.record_errors
        ]


class _Later:
    """A batch that may not be appended yet."""

    __slots__ = ("batch", "partition", "turn")

    def __init__(self, turn: Turn, partition: Partition, batch: _Batch) -> None:
        self.turn = turn
        self.partition = partition
        self.batch = batch


async def _append_later(
    order: AppendOrder, later: list[_Later], acks: int, pending: PendingAnswers, deadline: float
) -> None:
    """Check them, one after the other, and append each when its turn has come. At the deadline the
    rest is given up: not appended, and answered REQUEST_TIMED_OUT."""
    loop = asyncio.get_running_loop()
    try:
        for item in list(later):
            await _check(order, item, acks)
            _append_ready(later, acks, pending)
        # The checks take what they take, here and in those ahead: clients to whom answers mean
        # nothing (acks=0) also say that they wait for none.
        deadline = max(deadline, loop.time() + PATIENCE_S)
        while later:
            waiting = [item.turn.ready for item in later]
            left = max(deadline - loop.time(), 0)
            done, _ = await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                break
            _append_ready(later, acks, pending)
    finally:
        for item in later:
            item.batch.refuse(ErrorCode.REQUEST_TIMED_OUT)
            item.turn.leave()


async def _check(order: AppendOrder, item: _Later, acks: int) -> None:
    """Leaves `checked` as it is when the answer says no."""
    try:
        item.partition.require_appendable(acks)
        item.batch.checked = await order.check(item.partition, item.batch.records)
    except Refused as refused:
        item.batch.refuse(refused.error)
    except RecordsRejected as rejected:
        item.batch.reject(rejected)


def _append_ready(later: list[_Later], acks: int, pending: PendingAnswers) -> None:
    """Those whose turn it is, and those that are refused without waiting for it."""
    for item in list(later):
        refused = item.batch.answer.error_code != ErrorCode.NONE
        if refused or (item.batch.checked is not None and item.turn.ready.done()):
            later.remove(item)
            _append_in_turn(item, acks, pending)


def _append_in_turn(item: _Later, acks: int, pending: PendingAnswers) -> None:
    try:
        if item.batch.checked is None:
            return
        error = item.turn.ready.result()
        if error is not ErrorCode.NONE:
            raise Refused(error)
        _produce_to(item.partition, item.batch, acks, pending, item.turn.guard)
    except Refused as refused:
        item.batch.refuse(refused.error)
    finally:
        item.turn.leave()


def _refuse_codec(records: Buffer, version: int) -> None:
    """Raises Refused: whoever speaks so old a version could not read zstd back (KIP-110)."""
    if (
        version < FIRST_VERSION_WITH_ZSTD
        and len(records) > ATTRIBUTES_LOW_BYTE
        and records[ATTRIBUTES_LOW_BYTE] & COMPRESSION_MASK == Compression.ZSTD
    ):
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


def _produce_to(
    partition: Partition,
    batch: _Batch,
    acks: int,
    pending: PendingAnswers,
    guard: VerificationGuard | None = None,
) -> None:
    """Raises Refused."""
    if partition.topic in INTERNAL_TOPICS:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION)
    batch.require_not_behind_refused(partition)
    answer = batch.answer
    try:
        appended = partition.append(batch.checked or batch.records, acks=acks, guard=guard)
    except RecordsRejected as rejected:
        batch.reject(rejected)
        return
    except StorageFailed as failed:
        batch.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
        answer.error_message = str(failed)
        return

    def on_answer(error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            batch.refuse(error)
            return
        answer.base_offset = appended.base_offset
        answer.log_append_time_ms = appended.log_append_time_ms
        answer.log_start_offset = appended.log_start_offset

    partition.await_answer(appended, acks=acks, pending=pending, on_answer=on_answer)


def one_buffer(records: Records) -> Buffer:
    """What a request carried; null counts as no records, which the log refuses."""
    if records is None:
        return b""
    return b"".join(records) if isinstance(records, list) else records


def _add_leader_hints(finder: PartitionFinder, response: ProduceResponse) -> None:
    hints = LeaderHints(finder.image, wanted=True)
    for topic in response.responses:
        for answer in topic.partition_responses:
            if not answer.error_code or not hints.wanted_for(ErrorCode(answer.error_code)):
                continue
            leader = hints.leader_of(topic.name, topic.topic_id, answer.index)
            if leader is not None:
                answer.current_leader = ProduceResponse.LeaderIdAndEpoch(
                    leader_id=leader[0], leader_epoch=leader[1]
                )
    response.node_endpoints = [
        ProduceResponse.NodeEndpoint(
            node_id=node.node_id, host=node.kafka.host, port=node.kafka.port, rack=node.rack
        )
        for node in hints.nodes()
    ]
