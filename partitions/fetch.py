"""Fetch (API key 1, versions 4-18): consumers read what is committed, followers copy the log.

v7 sessions, v9 the asker's leader epoch, v11 reading from followers, v12 the asker's last epoch and
divergence in the answer, v13 topic ids, v15 the follower's broker epoch, v16 where the leader is,
v18 the watermark that the asker knows.

The course of a request: its session says which partitions; each is checked, and a follower's
offset is confirmed, once, on arrival, also for partitions that an incremental request does not
name (RULES D8); then it is read, up to the watermark for consumers and up to the log's end for
followers. With too little to tell, it waits until a partition moves or its time is up, and goes on
reading where it stopped, so nothing is read twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from ..metadata.image import ClusterImage
from ..seam import Buffer
from ..wire import ErrorCode
from ..wire.messages.fetch import FetchRequest, FetchResponse
from .fetch_session import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    NEVER_ANSWERED,
    UNKNOWN_WATERMARK,
    FetchContext,
    FetchedPartition,
    FetchSessions,
    key_of,
)
from .leader_hints import LeaderHints
from .partition import Divergence, Partition
from .roles import Refused
from .storage import LogRead, OffsetOutOfRange, PartitionLog, RecordsDamaged, StorageFailed
from .traffic import is_failure
from .waiting_room import FetchWait

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData

CONSUMER = -1
DEBUGGING_CONSUMER = -2
READ_COMMITTED = 1
FIRST_VERSION_FROM_FOLLOWERS = 11
FIRST_VERSION_WITH_LEADER_HINTS = 16

SLICE_BYTES = 2 << 20
SLICE_READS = 100
SLICE_PARTITIONS = 125
"""Between two turns of the loop at most so much is read, and so many partitions are admitted (F1).
A slice holds any batch that `message.max.bytes` allows by default; larger ones make a slice of
their own."""

OWING_WAIT_SECONDS = 0.02
"""A follower that does not yet fetch all it should is not held for longer: the partitions it lacks
come with its next request."""


class PartitionFinder(Protocol):
    """Where `fetch` and its sisters find partitions (`Replicas`)."""

    @property
    def image(self) -> ClusterImage: ...

    def find(self, topic: str, partition: int) -> Partition:
        """Raises Refused: unknown to the cluster, or not on this node."""
        ...

    def find_by_id(self, topic_id: UUID, partition: int) -> Partition:
        """Raises Refused: unknown to the cluster, or not on this node."""
        ...


class PartitionRead:
    """One partition of one request: the verdict, and what has been read so far."""

    __slots__ = (
        "aborted",
        "asked",
        "divergence",
        "error",
        "leader_epoch",
        "next_offset",
        "partition",
        "parts",
        "preferred_reader",
        "size",
    )

    def __init__(self, asked: FetchedPartition) -> None:
        self.asked = asked
        self.partition: Partition | None = None
        self.leader_epoch = -1
        """Of the partition when the request was admitted; another one refuses it."""
        self.error = ErrorCode.NONE
        self.divergence: Divergence | None = None
        self.preferred_reader: int | None = None
        """A follower that the consumer had better read from (KIP-392)."""
        self.next_offset = asked.fetch_offset
        self.parts: list[Buffer] = []
        self.size = 0
        self.aborted: dict[tuple[int, int], None] = {}
        """(producer id, first offset) of the aborted transactions in what was read."""

    def refuse(self, error: ErrorCode) -> None:
        self.error = error
        self.parts = []
        self.size = 0

    @property
    def decided(self) -> bool:
        """The asker should hear of it now."""
        return (
            self.error is not ErrorCode.NONE
            or self.divergence is not None
            or self.preferred_reader is not None
        )


class Slice:
    """What one turn of the loop has read."""

    __slots__ = ("reads", "size")

    def __init__(self) -> None:
        self.reads = 0
        self.size = 0

    @property
    def used_up(self) -> bool:
        return self.size >= SLICE_BYTES or self.reads >= SLICE_READS


def _read_log(
    log: PartitionLog, offset: int, budget: int, limit: int, *, at_least_one: bool
) -> LogRead:
    """Whole batches of at most `budget` bytes, and of a slice where that is possible."""
    found = log.read(
        offset,
        max_bytes=max(min(budget, SLICE_BYTES), 0),
        upper_bound=limit,
        at_least_one=at_least_one,
    )
    if not found.size and budget > SLICE_BYTES:
        return log.read(offset, max_bytes=budget, upper_bound=limit, at_least_one=False)
    return found


class Fetch:
    """One request under way."""

    def __init__(
        self,
        finder: PartitionFinder,
        request: FetchRequest,
        version: int,
        context: FetchContext,
        *,
        replica_id: int,
        broker_epoch: int,
        max_bytes: int,
        rack_aware: bool,
    ) -> None:
        self._finder = finder
        self._version = version
        self._context = context
        self._replica_id = replica_id
        self._broker_epoch = broker_epoch
        self._rack = request.rack_id if rack_aware and replica_id < 0 else ""
        self._read_committed = request.isolation_level == READ_COMMITTED
        self._max_bytes = min(request.max_bytes, max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        self._reads: list[PartitionRead] = []
        self._size = 0
        self._decided = not context.partitions
        self._slice = Slice()
        self._wait: FetchWait | None = None
        self._entered = 0
        """So many of `_reads`, from the first on, wake `_wait` when they move."""

    # Arrival.

    async def begin(
        self, on_replica_fetch: Callable[[Partition, int], None], wait: FetchWait | None
    ) -> None:
        """Admit every partition, then read. `on_replica_fetch(partition, replica id)` is told who
        follows what.

        `wait`, if there may be one, is woken by each partition that moves in the turns of others
        after it was read, so that nothing is missed. Call `leave` in any case.
        """
        self._wait = wait
        for number, asked in enumerate(self._context.partitions):
            if number and number % SLICE_PARTITIONS == 0:
                await asyncio.sleep(0)
            read = PartitionRead(asked)
            self._reads.append(read)
            try:
                self._admit(read)
            except Refused as refused:
                read.refuse(refused.error)
            if read.decided:
                self._decided = True
            elif self._replica_id >= 0 and read.partition is not None:
                on_replica_fetch(read.partition, self._replica_id)
        # Only now: the offsets just confirmed may have moved watermarks of this very request.
        for number, read in enumerate(self._reads):
            if number and number % SLICE_PARTITIONS == 0:
                self._enter_below(number)
                await asyncio.sleep(0)
            await self._read(read)

    def _admit(self, read: PartitionRead) -> None:
        asked = read.asked
        if self._by_id:
            partition = self._finder.find_by_id(asked.topic_id, asked.partition)
        else:
            partition = self._finder.find(asked.topic, asked.partition)
        read.partition = partition
        partition.traffic.fetches += 1
        if self._replica_id >= 0:
            read.divergence = partition.on_replica_fetch(
                replica_id=self._replica_id,
                broker_epoch=self._broker_epoch,
                current_leader_epoch=asked.current_leader_epoch,
                fetch_offset=asked.fetch_offset,
                last_fetched_epoch=asked.last_fetched_epoch,
                log_start_offset=asked.log_start_offset,
            )
        else:
            read.divergence = partition.check_consumer_fetch(
                current_leader_epoch=asked.current_leader_epoch,
                fetch_offset=asked.fetch_offset,
                last_fetched_epoch=asked.last_fetched_epoch,
                may_read_follower=self._version >= FIRST_VERSION_FROM_FOLLOWERS,
            )
            if self._rack and partition.leader is not None:
                read.preferred_reader = partition.leader.reader_in_rack(
                    self._rack, asked.fetch_offset
                )
        read.leader_epoch = partition.leader_epoch

    # Reading.

    async def _read(self, read: PartitionRead) -> None:
        """All that there is and may be told, slice by slice; in between the epoch may end, and what
        was asked for may be cut."""
        self._refuse_if_changed(read)
        while self._read_slice(read):
            if self._slice.used_up:
                self._slice = Slice()
                await asyncio.sleep(0)
                self._refuse_if_changed(read)
        partition = read.partition
        if read.decided or (
            partition is not None
            and (
                self._watermark_is_stale(read, partition)
                or self._log_start_is_news(read, partition)
            )
        ):
            self._decided = True

    def _read_slice(self, read: PartitionRead) -> bool:
        """True when something was read, so that there may be more."""
        partition = read.partition
        if partition is None or read.decided:
            return False
        at_least_one = self._size == 0
        budget = min(read.asked.max_bytes - read.size, self._max_bytes - self._size)
        if budget <= 0 and not at_least_one:
            return False
        limit = self._limit(partition)
        if read.next_offset >= limit:
            return False
        self._slice.reads += 1
        try:
            found = _read_log(
                partition.log, read.next_offset, budget, limit, at_least_one=at_least_one
            )
        except OffsetOutOfRange:
            read.refuse(ErrorCode.OFFSET_OUT_OF_RANGE)
            return False
        except RecordsDamaged:
            # What lies before it is told first; whoever comes back for the rest hears of this.
            if not read.size:
                read.refuse(ErrorCode.CORRUPT_MESSAGE)
            return False
        except StorageFailed:
            read.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
            return False
        if not found.size:
            return False
        if self._read_committed:
            self._note_aborted(read, partition, found.next_offset)
        read.parts += found.parts
        read.size += found.size
        read.next_offset = found.next_offset
        self._size += found.size
        self._slice.size += found.size
        return True

    @staticmethod
    def _note_aborted(read: PartitionRead, partition: Partition, end_offset: int) -> None:
        """In the turn of the read: compaction may take the data and its entries away before the
        answer leaves."""
        for entry in partition.log.aborted_transactions(read.next_offset, end_offset):
            read.aborted[entry.producer_id, entry.first_offset] = None

    def _limit(self, partition: Partition) -> int:
        if self._replica_id >= 0:
            return partition.log.log_end_offset
        return partition.last_stable_offset if self._read_committed else partition.high_watermark

    def _watermark_is_stale(self, read: PartitionRead, partition: Partition) -> bool:
        """RULES D7 (KIP-1166): a follower hears of a new watermark at once."""
        known = read.asked.known_high_watermark
        return (
            self._replica_id >= 0
            and known != UNKNOWN_WATERMARK
            and known < partition.high_watermark
        )

    def _log_start_is_news(self, read: PartitionRead, partition: Partition) -> bool:
        """A follower hears at once of a start that has moved since the session's last answer:
        somebody may wait for it to delete (KIP-107)."""
        told = read.asked.answered_log_start_offset
        return (
            self._replica_id >= 0
            and told != NEVER_ANSWERED
            and told != partition.log.log_start_offset
        )

    # Waiting.

    @property
    def satisfied(self) -> bool:
        return self._decided or self._size >= self._min_bytes

    async def wait(self, wait: FetchWait) -> None:
        """Return when satisfied or when the time of `wait`, that of `begin`, is up."""
        self._enter_below(len(self._reads))
        while not self.satisfied:
            moved = await wait.moved()
            if moved is None:
                break
            for number, position in enumerate(moved):
                if number and number % SLICE_PARTITIONS == 0:
                    await asyncio.sleep(0)
                await self._read(self._reads[position])

    def _enter_below(self, end: int) -> None:
        """Those that were read since the last turn of others wake the request from now on."""
        wait = self._wait
        if wait is None:
            return
        for position in range(self._entered, end):
            partition = self._reads[position].partition
            if partition is not None:
                partition.watermark_fetches.enter(wait, position)
                if self._replica_id >= 0:
                    partition.log_end_fetches.enter(wait, position)
        self._entered = end

    def leave(self) -> None:
        """No partition wakes this request any more."""
        while self._entered > 0:
            self._leave_last()

    def _leave_last(self) -> None:
        self._entered -= 1
        partition = self._reads[self._entered].partition
        if self._wait is not None and partition is not None:
            partition.watermark_fetches.leave(self._wait, self._entered)
            partition.log_end_fetches.leave(self._wait, self._entered)

    async def leave_in_slices(self) -> None:
        """The same, over several turns of the loop; `leave` takes over where it is interrupted."""
        while self._entered > 0:
            self._leave_last()
            if self._entered and self._entered % SLICE_PARTITIONS == 0:
                await asyncio.sleep(0)

    @staticmethod
    def _refuse_if_changed(read: PartitionRead) -> None:
        partition = read.partition
        if partition is None or read.decided:
            return
        if partition.closed or partition.leader_epoch != read.leader_epoch:
            read.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # The answer.

    async def answer(self) -> FetchResponse:
        """Each partition's data are of one instant, in which its leader epoch was still the one
        that was read in. Those of another may be of a later one, as they may arrive later."""
        response = FetchResponse(session_id=self._context.session_id)
        topics: dict[UUID | str, FetchResponse.FetchableTopicResponse] = {}
        hints = LeaderHints(self._finder.image, self._version >= FIRST_VERSION_WITH_LEADER_HINTS)
        served = []
        for number, read in enumerate(self._reads):
            if number and number % SLICE_PARTITIONS == 0:
                await asyncio.sleep(0)
            self._refuse_if_changed(read)
            self._count(read)
            if self._context.incremental and not self._has_news(read):
                continue
            data = self._partition_data(read)
            if read.error is not ErrorCode.NONE and hints.wanted_for(read.error):
                leader = hints.leader_of(
                    read.asked.topic, read.asked.topic_id, data.partition_index
                )
                if leader is not None:
                    data.current_leader = FetchResponse.LeaderIdAndEpoch(
                        leader_id=leader[0], leader_epoch=leader[1]
                    )
            self._remember(read, data)
            if read.size:
                served.append(key_of(read.asked, self._by_id))
            name: UUID | str = read.asked.topic_id if self._by_id else read.asked.topic
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchResponse.FetchableTopicResponse(
                    topic=read.asked.topic, topic_id=read.asked.topic_id
                )
                response.responses.append(topic)
            topic.partitions.append(data)
        if self._context.session is not None:
            self._context.session.rotate(served)
        response.node_endpoints = [
            FetchResponse.NodeEndpoint(
                node_id=node.node_id, host=node.kafka.host, port=node.kafka.port, rack=node.rack
            )
            for node in hints.nodes()
        ]
        return response

    def _count(self, read: PartitionRead) -> None:
        if read.partition is None:
            return
        traffic = read.partition.traffic
        damaged = read.error is ErrorCode.CORRUPT_MESSAGE  # Here it is the node that is to blame.
        traffic.failed_fetches += damaged or is_failure(read.error)
        if self._replica_id >= 0:
            traffic.replicated_out += read.size
        else:
            traffic.bytes_out += read.size

    def _partition_data(self, read: PartitionRead) -> PartitionData:
        data = PartitionData(
            partition_index=read.asked.partition,
            error_code=read.error,
            high_watermark=-1,
            records=read.parts,
        )
        partition = read.partition
        if read.error is ErrorCode.NONE and partition is not None:
            data.high_watermark = partition.high_watermark
            data.last_stable_offset = partition.last_stable_offset
            data.log_start_offset = partition.log.log_start_offset
            data.aborted_transactions = self._aborted_transactions(read)
        if read.preferred_reader is not None:
            data.preferred_read_replica = read.preferred_reader
        if read.divergence is not None:
            data.diverging_epoch = FetchResponse.EpochEndOffset(
                epoch=read.divergence.epoch, end_offset=read.divergence.end_offset
            )
        return data

    def _aborted_transactions(
        self, read: PartitionRead
    ) -> list[PartitionData.AbortedTransaction] | None:
        """A reader of everything asks for none; one of committed data always gets a list."""
        if not self._read_committed:
            return None
        return [
            PartitionData.AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in read.aborted
        ]

    @staticmethod
    def _has_news(read: PartitionRead) -> bool:
        asked, partition = read.asked, read.partition
        return (
            read.size > 0
            or read.decided
            or partition is None
            or partition.high_watermark != asked.answered_high_watermark
            or partition.log.log_start_offset != asked.answered_log_start_offset
        )

    @staticmethod
    def _remember(read: PartitionRead, data: PartitionData) -> None:
        if read.decided:
            # Told again until the asker has changed something.
            return
        read.asked.on_answered(data.high_watermark, data.log_start_offset)


class Fetches:
    """Serves fetch requests of one node."""

    def __init__(
        self,
        finder: PartitionFinder,
        sessions: FetchSessions,
        *,
        max_bytes: int,
        on_replica_fetch: Callable[[Partition, int], None],
        owes: Callable[[int], bool],
        rack_aware: bool = False,
    ) -> None:
        """`owes(replica id)`: does that follower not yet fetch all it should?"""
        self._finder = finder
        self._sessions = sessions
        self._max_bytes = max_bytes
        self._rack_aware = rack_aware
        self._on_replica_fetch = on_replica_fetch
        self._owes = owes
        self._waits: dict[FetchWait, int] = {}
        """Held fetches of followers -> replica id."""

    def hasten(self, replica_id: int) -> None:
        """Do not hold this follower's fetches: it has more to ask for."""
        soon = asyncio.get_running_loop().time() + OWING_WAIT_SECONDS
        for wait, waiting_id in self._waits.items():
            if waiting_id == replica_id:
                wait.hasten(soon)

    async def serve(
        self, request: FetchRequest, version: int, owner: object, *, from_replica: bool
    ) -> FetchResponse:
        state = request.replica_state
        replica_id = request.replica_id if state is None else state.replica_id
        broker_epoch = -1 if state is None else state.replica_epoch
        if replica_id >= 0 and not from_replica:
            return _refuse_stranger(request, version)
        loop = asyncio.get_running_loop()
        arrived = loop.time()
        context = self._sessions.begin(
            request, version, owner=owner, replica_id=replica_id, now_ms=int(arrived * 1000)
        )
        if isinstance(context, ErrorCode):
            return FetchResponse(error_code=context)
        fetch = Fetch(
            self._finder,
            request,
            version,
            context,
            replica_id=replica_id,
            broker_epoch=broker_epoch,
            max_bytes=self._max_bytes,
            rack_aware=self._rack_aware,
        )
        wait = FetchWait(arrived + request.max_wait_ms / 1000) if request.max_wait_ms > 0 else None
        try:
            await fetch.begin(self._on_replica_fetch, wait)
            if wait is not None and not fetch.satisfied:
                await self._hold(fetch, wait, replica_id, arrived)
            await fetch.leave_in_slices()
            return await fetch.answer()
        finally:
            fetch.leave()

    async def _hold(self, fetch: Fetch, wait: FetchWait, replica_id: int, arrived: float) -> None:
        if replica_id >= 0:
            if self._owes(replica_id):
                wait.hasten(arrived + OWING_WAIT_SECONDS)
            self._waits[wait] = replica_id
        try:
            await fetch.wait(wait)
        finally:
            self._waits.pop(wait, None)


def _refuse_stranger(request: FetchRequest, version: int) -> FetchResponse:
    """RULES B5: a client connection is nobody's replica, whatever it says."""
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return FetchResponse(
        error_code=error,
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(
                        partition_index=asked.partition,
                        error_code=error,
                        high_watermark=-1,
                        records=b"",
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
