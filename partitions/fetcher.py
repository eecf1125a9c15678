"""Copies partitions from their leaders: one task and one channel per leader (and lane).

A round: ask for all partitions at once, append what comes, wait until all of it is synced, ask on.
The wait is rule C2: the next request's offsets are promises. It is one wait for all partitions, so
the syncs of their logs run side by side and the session stays as it is from round to round.

Every answer is checked against the `FollowerState` it was asked for, because partitions come, go
and change epoch while a request is under way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from random import Random
from typing import cast
from zlib import crc32

from ..seam import Buffer, TaskScope, with_pauses
from ..wire import ApiKey, ErrorCode
from ..wire.messages.fetch import FetchResponse
from ..wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from .follower import FetchPosition, FollowerState
from .follower_session import LOOKED_AT_ONCE, VERSION, FollowerSession, PartitionId
from .list_offsets import EARLIEST
from .partition import Divergence, Partition
from .peer import Peer, PeerConnector, PeerLost
from .produce import one_buffer
from .replication_config import ReplicationConfig
from .storage import CorruptBatch, OffsetGap, StorageFailed

logger = logging.getLogger(__name__)

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData

LIST_OFFSETS_VERSION = 9
MAX_BACKOFF_SECONDS = 1.0

_SOON_OVER = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""One of the two has not applied the newest image yet."""


class Followed:
    """One partition in one fetcher, for one leader epoch."""

    __slots__ = (
        "failures",
        "leader_log_start_offset",
        "not_before",
        "partition",
        "position",
        "state",
    )

    def __init__(self, partition: Partition, state: FollowerState) -> None:
        self.partition = partition
        self.state = state
        self.position: FetchPosition | None = None
        """As of the last round; None when it must be looked up again."""
        self.leader_log_start_offset = 0
        self.not_before = 0.0
        self.failures = 0

    @property
    def key(self) -> PartitionId:
        return self.partition.topic_id, self.partition.partition


@dataclass(slots=True)
class Settled:
    """What one request asks for."""

    asked: dict[PartitionId, Followed]
    positions: dict[PartitionId, FetchPosition]
    next_try: float = inf
    """When the first of those that were put off may be asked for again."""


class LeaderFetcher:
    """Follows partitions that one other node leads."""

    def __init__(
        self,
        leader_id: int,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        peers: PeerConnector,
        config: ReplicationConfig,
        rng: Random,
    ) -> None:
        self._leader_id = leader_id
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._peers = peers
        self._config = config
        self._rng = rng
        self._followed: dict[PartitionId, Followed] = {}
        self._changed = asyncio.Event()
        self._peer: Peer | None = None
        self._session = FollowerSession()
        self._failures = 0

    def add(self, partition: Partition, state: FollowerState) -> None:
        followed = Followed(partition, state)
        self._followed[followed.key] = followed
        self._changed.set()

    def remove(self, partition: Partition) -> None:
        followed = self._followed.get((partition.topic_id, partition.partition))
        if followed is not None and followed.partition is partition:
            del self._followed[followed.key]
            self._changed.set()

    def _is_followed(self, followed: Followed) -> bool:
        """Still, in this epoch: an answer may come when that is over."""
        return self._followed.get(followed.key) is followed

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                try:
                    await self._round()
                    self._failures = 0
                except PeerLost as lost:
                    self._drop_peer()
                    self._failures += 1
                    logger.debug("fetching from node %d: %s", self._leader_id, lost)
                    await asyncio.sleep(self._backoff(self._failures))
        finally:
            self._drop_peer()

    def _drop_peer(self) -> None:
        peer, self._peer = self._peer, None
        if peer is not None:
            peer.close()
        self._session.reset()

    def _backoff(self, failures: int) -> float:
        pause = self._config.replica_fetch_backoff_ms / 1000 * (1 << min(failures - 1, 10))
        return min(pause, MAX_BACKOFF_SECONDS) * (0.5 + self._rng.random() / 2)

    def _put_off(self, followed: Followed, *, soon: bool = False) -> None:
        """Leave this partition out for a while; the others go on."""
        followed.failures += 1
        followed.position = None
        pause = self._backoff(1 if soon else followed.failures)
        followed.not_before = asyncio.get_running_loop().time() + pause

    # One round.

    async def _round(self) -> None:
        """Raises PeerLost."""
        self._changed.clear()
        settled = await self._settled()
        if not settled.positions:
            await self._wait_for_work()
            return
        loop = asyncio.get_running_loop()
        if self._peer is None:
            timeout = self._config.replica_socket_timeout_ms / 1000
            self._peer = await self._peers.connect(self._leader_id, loop.time() + timeout)
            return  # Time has passed: look at the partitions again.
        request = await with_pauses(
            self._session.request(
                settled.positions,
                replica_id=self._node_id,
                broker_epoch=self._broker_epoch(),
                max_bytes=self._config.replica_fetch_response_max_bytes,
                partition_max_bytes=self._config.replica_fetch_max_bytes,
            )
        )
        request.max_wait_ms = max_wait_ms = self._max_wait_ms(settled)
        patience_ms = max_wait_ms + self._config.replica_socket_timeout_ms
        answer = await self._peer.request(
            ApiKey.FETCH, VERSION, request, loop.time() + patience_ms / 1000
        )
        response = cast(FetchResponse, answer)
        if not self._session.on_response(response):
            return
        if response.error_code != ErrorCode.NONE:
            raise PeerLost(f"fetch refused: {ErrorCode(response.error_code).name}")
        await self._take(response, settled.asked)

    async def _settled(self) -> Settled:
        """The partitions to ask for now; all that they appended is synced (RULES C2).

        That holds for as long as it takes to ask, for nothing else appends to a partition that is
        followed, or cuts it. One that is given up in the turns of others is named all the same, in
        the epoch in which it was followed, as it would be by a request that is on its way.
        """
        now = asyncio.get_running_loop().time()
        settled = Settled({}, {})
        for number, (key, followed) in enumerate(self._followed.copy().items(), start=1):
            if followed.position is None and followed.not_before <= now:
                await self._settle(followed)
            if followed.position is None:
                settled.next_try = min(settled.next_try, followed.not_before)
            elif self._is_followed(followed):
                settled.asked[key] = followed
                settled.positions[key] = followed.position
            if number % LOOKED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return settled

    async def _settle(self, followed: Followed) -> None:
        partition = followed.partition
        try:
            if partition.log.damage is not None:
                await partition.mend(followed.state)
            if partition.log.synced_offset < partition.log.log_end_offset:
                await partition.log.wait_synced(partition.log.log_end_offset)
            # After the sync, which may be what commits here what the leader has deleted.
            await partition.follow_log_start(followed.state, followed.leader_log_start_offset)
        except StorageFailed as failed:
            self._report(followed, failed)
            return
        followed.position = partition.position(followed.state)

    async def _wait_for_work(self) -> None:
        """Nothing to ask: until partitions come, or one that failed may be tried again."""
        if not self._followed:
            self._drop_peer()
            await self._changed.wait()
            return
        now = asyncio.get_running_loop().time()
        next_try = min(followed.not_before for followed in self._followed.values())
        try:
            async with asyncio.timeout(max(next_try - now, 0.001)):
                await self._changed.wait()
        except TimeoutError:
            return

    def _max_wait_ms(self, settled: Settled) -> int:
        """Do not let the leader hold the request beyond the next try of a partition put off, or at
        all when others have come since it was begun."""
        longest_ms = self._config.replica_fetch_wait_max_ms
        if self._changed.is_set():
            return min(longest_ms, 1)
        if settled.next_try == inf:
            return longest_ms
        pause_ms = int((settled.next_try - asyncio.get_running_loop().time()) * 1000)
        return min(longest_ms, max(pause_ms, 1))

    # The answer.

    async def _take(self, response: FetchResponse, asked: dict[PartitionId, Followed]) -> None:
        appended: list[Followed] = []
        looked_at = 0
        for topic in response.responses:
            for data in topic.partitions:
                looked_at += 1
                if looked_at % LOOKED_AT_ONCE == 0:
                    await asyncio.sleep(0)
                followed = asked.get((topic.topic_id, data.partition_index))
                if followed is None or not self._is_followed(followed):
                    continue
                if data.error_code != ErrorCode.NONE:
                    await self._take_error(followed, ErrorCode(data.error_code))
                elif data.diverging_epoch is not None:
                    diverging = data.diverging_epoch
                    await self._cut(followed, Divergence(diverging.epoch, diverging.end_offset))
                elif await self._append(followed, data):
                    appended.append(followed)
        for followed in appended:
            await self._settle(followed)
            if followed.position is not None:
                # Only now: an append may fail as late as when it is synced.
                followed.failures = 0

    async def _append(self, followed: Followed, data: PartitionData) -> bool:
        """True when records were appended."""
        partition, asked = followed.partition, followed.position
        assert asked is not None
        records: Buffer = one_buffer(data.records)
        state, high_watermark = followed.state, data.high_watermark
        try:
            if partition.log.begins_amid(records):
                fresh = await partition.begin_amid(
                    state, records, leader_high_watermark=high_watermark
                )
            else:
                fresh = partition.append_fetched(
                    state,
                    records,
                    fetch_offset=asked.fetch_offset,
                    leader_high_watermark=high_watermark,
                )
            if fresh and data.log_start_offset > partition.log.log_start_offset:
                followed.leader_log_start_offset = data.log_start_offset
                followed.position = None
        except (CorruptBatch, OffsetGap, StorageFailed) as failed:
            self._report(followed, failed)
            return False
        if not len(records):
            followed.failures = 0
        if not fresh or len(records) or followed.state.high_watermark != asked.high_watermark:
            followed.position = None
        return fresh and len(records) > 0

    async def _cut(self, followed: Followed, divergence: Divergence) -> None:
        followed.position = None
        try:
            await followed.partition.truncate(followed.state, divergence)
        except StorageFailed as failed:
            self._report(followed, failed)

    async def _take_error(self, followed: Followed, error: ErrorCode) -> None:
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._start_over(followed)
            return
        log = logger.debug if error in _SOON_OVER else logger.warning
        log("%s: node %d answers %s", followed.partition, self._leader_id, error.name)
        self._put_off(followed, soon=error in _SOON_OVER)

    async def _start_over(self, followed: Followed) -> None:
        """The leader no longer has what this log would continue with. Raises PeerLost."""
        earliest = await self._earliest_offset(followed)
        partition = followed.partition
        if earliest is None or earliest <= partition.log.log_end_offset:
            # Either end is damaged in a way that opening a log does not see: nothing is cut for it.
            logger.warning(
                "%s: node %d cannot tell where a log that ends at %d in epoch %d differs",
                partition,
                self._leader_id,
                partition.log.log_end_offset,
                partition.log.epochs.latest_epoch,
            )
            self._put_off(followed)
            return
        logger.warning(
            "%s: ends at %d, its leader begins at %d: starts over there",
            partition,
            partition.log.log_end_offset,
            earliest,
        )
        followed.position = None
        try:
            await partition.start_over(followed.state, earliest)
        except StorageFailed as failed:
            self._report(followed, failed)

    async def _earliest_offset(self, followed: Followed) -> int | None:
        partition = followed.partition
        request = ListOffsetsRequest(
            replica_id=self._node_id,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=partition.topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=partition.partition,
                            current_leader_epoch=followed.state.leader_epoch,
                            timestamp=EARLIEST,
                        )
                    ],
                )
            ],
        )
        if self._peer is None:
            return None
        deadline = asyncio.get_running_loop().time() + self._config.replica_socket_timeout_ms / 1000
        answer = await self._peer.request(
            ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, request, deadline
        )
        found = cast(ListOffsetsResponse, answer).topics[0].partitions[0]
        return found.offset if found.error_code == ErrorCode.NONE else None

    def _report(self, followed: Followed, failed: Exception) -> None:
        logger.warning("%s: not copied: %s", followed.partition, failed)
        self._put_off(followed)


class Fetchers:
    """All fetchers of a node. A partition is in at most one, chosen by leader and lane."""

    def __init__(self, scope: TaskScope, make: Callable[[int], LeaderFetcher], lanes: int) -> None:
        self._scope = scope
        self._make = make
        self._lanes = lanes
        self._fetchers: dict[tuple[int, int], LeaderFetcher] = {}
        self._in: dict[Partition, LeaderFetcher] = {}

    def follow(self, partition: Partition, state: FollowerState) -> None:
        """In the epoch of `state`, instead of whatever was followed for it before."""
        self.leave(partition)
        lane = (crc32(partition.topic.encode()) + partition.partition) % self._lanes
        key = (state.leader_id, lane)
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            fetcher = self._fetchers[key] = self._make(state.leader_id)
            self._scope.spawn(fetcher.run(), name=f"fetch from node {state.leader_id}, lane {lane}")
        fetcher.add(partition, state)
        self._in[partition] = fetcher

    def leave(self, partition: Partition) -> None:
        fetcher = self._in.pop(partition, None)
        if fetcher is not None:
            fetcher.remove(partition)
