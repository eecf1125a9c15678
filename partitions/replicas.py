"""All replicas of this node: the one door for requests, image changes and the groups part.

The image says what should be here. Opening and deleting logs takes time and runs in order per
partition folder; everything else follows the image at once, in log order.

RULES B1: until the image has reached this process's own registration, it may still name leaderships
of the process before. So nobody gets a role before that; the logs are opened meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from itertools import islice
from random import Random
from uuid import UUID

from ..metadata.image import NO_LEADER, ClusterImage, ImageChange, TopicImage
from ..seam import Buffer, Clock, Disk, OnFatal, TaskScope, frozen
from ..wire import ErrorCode
from ..wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from ..wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from ..wire.messages.fetch import FetchRequest, FetchResponse
from ..wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ..wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ..wire.messages.produce import ProduceRequest, ProduceResponse
from .append_order import AppendOrder, BeforeAppend
from .assignments import Assigned, Assignments, Changed, News, TopicGone, Unassigned
from .delete_records import delete_records
from .describe_producers import describe_producers
from .fetch import Fetches
from .fetch_session import FetchSessions
from .fetcher import Fetchers, LeaderFetcher
from .isr_proposal import IsrProposal
from .isr_sender import IsrSender
from .list_offsets import list_offsets
from .loss_reports import LossReports
from .offset_for_leader_epoch import offset_for_leader_epoch
from .ordered_work import OrderedWork
from .partition import Partition, Surroundings
from .peer import ControllerLink, PeerConnector
from .produce import produce
from .replication_config import ReplicationConfig
from .roles import OnLeadership, PartitionState, Refused, ReplicationCounters, Role
from .storage import (
    LogConfig,
    LogDirectory,
    LogRead,
    PartitionLog,
    RecordsRejected,
    StorageFailed,
    StoredLog,
)
from .storage.cleaner import CleanerSettings, CleaningCandidate, LogCleaner
from .storage.producer_expiry import ProducerExpiry
from .storage.scrubber import LogScrubber, ScrubberSettings
from .traffic import Traffic
from .waiting_room import PendingAnswers

logger = logging.getLogger(__name__)

Key = tuple[str, int]

OPENING_AT_ONCE = 4
"""Logs recovered side by side."""

CREATING_AT_ONCE = 8
"""New logs made side by side: nothing to read, and syncs to share. Each holds a descriptor of those
that are kept free (case O05)."""

CHECKED_AT_ONCE = 200
"""Replicas that regular work looks at in one turn of the loop (F1)."""

OPEN_AGAIN_SECONDS = 1.0
"""Between two attempts to open or create a log that the disk refused."""

TOLD_AT_ONCE = 25
"""Replicas that take up a new image in one turn of the loop (F1): a broker's death is news for all
that it held, and each may change its role."""

CONFIGURED_AT_ONCE = 25
"""Logs that are given their settings anew in one turn of the loop (F1)."""

OWED_FOR_SECONDS = 5.0
"""How long a new leader expects its followers' first fetch any moment."""

FIRST_RETENTION_CHECK_SECONDS = 30.0
"""After the start (Kafka's log.initial.task.delay.ms): by then replicas know their watermark."""

NO_BROKER_EPOCH = -1


@frozen
class AppendOutcome:
    error: ErrorCode
    base_offset: int = -1
    """-1 with an error. After REQUEST_TIMED_OUT or NOT_LEADER_OR_FOLLOWER the records may be in the
    log all the same."""


class Replicas:
    def __init__(
        self,
        *,
        node_id: int,
        log_directory: LogDirectory,
        config: ReplicationConfig,
        broker_configs: Mapping[str, str],
        disk: Disk,
        clock: Clock,
        rng: Random,
        controller: ControllerLink,
        peers: PeerConnector,
        on_fatal: OnFatal,
    ) -> None:
        self.counters = ReplicationCounters()
        self.traffic = Traffic()
        self._node_id = node_id
        self._directory = log_directory
        self._config = config
        self._static_configs = dict(broker_configs)
        self._rng = rng
        self._broker_epoch = NO_BROKER_EPOCH
        self._image: ClusterImage | None = None
        self._started = False
        self._registered = False
        self._stored: dict[Key, StoredLog] = {}
        """Folders found at start that no partition has taken yet."""
        self._deferred: dict[Key, UUID] = {}
        """What an image that may be older than the disk wants opened where another life lies."""
        self._assignments = Assignments(node_id)
        self._assigned: dict[Key, UUID] = {}
        """What the image gives this node, as far as taken up, by name -> topic id."""
        self._hosted: dict[Key, Partition] = {}
        """Those with an open log."""
        self._untold: dict[Key, None] = {}
        """Hosted, and the image has changed for them since they were told; oldest first."""
        self._brokers_untold: dict[Key, None] = {}
        """Hosted, and brokers have changed since it was looked whether they lead, which is when
        that concerns them."""
        self._unconfigured: dict[Key, None] = {}
        """Hosted, and some setting has changed since their logs were given theirs."""
        self._taking_up: asyncio.Task[None] | None = None
        """Goes on with what the image has brought, turn by turn."""
        self._failed: dict[Key, str] = {}
        """Those whose log could not be opened."""
        self._mending: dict[Partition, None] = {}
        """Damaged logs that an unclean election chose, and a task cuts."""
        self._owed: dict[int, dict[Partition, float]] = {}
        """Replica id -> partitions led here that it should fetch any moment -> until when."""
        self._on_leadership: list[OnLeadership] = []
        self._append_order = AppendOrder()
        self._scope = TaskScope(on_fatal)
        self._work = OrderedWork(self._scope)
        self._opening = asyncio.Semaphore(OPENING_AT_ONCE)
        self._creating = asyncio.Semaphore(CREATING_AT_ONCE)
        self._beginning = asyncio.Lock()
        self._isr_sender = IsrSender(
            node_id,
            controller,
            broker_epoch=lambda: self._broker_epoch,
            timeout_ms=config.alter_partition_timeout_ms,
            rng=rng,
        )
        self._losses = LossReports(
            node_id,
            controller,
            broker_epoch=lambda: self._broker_epoch,
            timeout_ms=config.alter_partition_timeout_ms,
            rng=rng,
        )
        self._fetchers = Fetchers(
            self._scope,
            lambda leader_id: LeaderFetcher(
                leader_id,
                node_id=node_id,
                broker_epoch=lambda: self._broker_epoch,
                peers=peers,
                config=config,
                rng=rng,
            ),
            config.num_replica_fetchers,
        )
        self._sessions = FetchSessions(
            slots=config.session_cache_slots, eviction_ms=config.session_eviction_ms, rng=rng
        )
        self._fetches = Fetches(
            self,
            self._sessions,
            max_bytes=config.fetch_max_bytes,
            on_replica_fetch=self._on_replica_fetch,
            owes=self._owes,
            rack_aware=config.rack_aware_reads,
        )
        self._cleaner = LogCleaner(
            log_directory,
            clock=clock,
            settings=lambda: CleanerSettings.from_broker_configs(self._broker_configs()),
            candidates=self._to_clean,
        )
        self._scrubber = LogScrubber(
            disk=disk,
            rng=rng,
            settings=lambda: ScrubberSettings.from_broker_configs(self._broker_configs()),
            logs=self._to_scrub,
            counters=self.counters,
        )
        self._surroundings = Surroundings(
            node_id=node_id,
            config=config,
            clock=clock,
            counters=self.counters,
            traffic=self.traffic,
            propose_isr=self._propose_isr,
            on_role=self._on_role,
            mend=self._mend,
            open_again=self._open_again_soon,
            on_damaged=self._on_damaged,
        )

    # Life.

    async def start(self) -> None:
        """Look at what is in the data directory. Images may come before and after."""
        self._started = True
        self._stored = {
            (stored.topic, stored.partition): stored for stored in self._directory.stored_logs()
        }
        self._scope.spawn(self._isr_sender.run(), name="send ISR proposals")
        self._scope.spawn(self._losses.run(), name="report lost logs")
        self._scope.spawn(self._watch_lag(), name="watch ISR members")
        self._scope.spawn(self._checkpoint_regularly(), name="checkpoint high watermarks")
        self._scope.spawn(self._delete_outlived_regularly(), name="retention")
        self._scope.spawn(self._expire_producers_regularly(), name="producer expiry")
        self._scope.spawn(self._cleaner.run(), name="compaction")
        self._scope.spawn(self._scrubber.run(), name="scrubber")
        if self._image is not None:
            self._assignments.on_first_image(self._image)
            self._take_up()

    async def stop(self) -> None:
        """Everybody who waits is answered, every log is synced and closed, checkpoints written."""
        self._started = False
        # A closed replica has no role, and so no watermark but that of the process's start.
        watermarks = {each.log: each.high_watermark for each in self._hosted.values()}
        # First, so that no log is left in the middle of a cut.
        for partition in list(self._hosted.values()):
            await partition.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        await self._scope.close()
        await self._directory.checkpoint_if_room(watermarks.get)
        await self._directory.close_logs()

    def set_broker_epoch(self, epoch: int) -> None:
        """This process's registration: the index of its RegisterBroker command."""
        self._broker_epoch = epoch
        if self._started and self._image is not None:
            self._take_up()

    async def wait_recovered(self) -> None:
        """Every log that the image gives this node is open, or is known not to open, and the
        controller knows of each that has lost data (RULES C1): the moment to ask to be unfenced."""
        while self._taking_up is not None:
            await asyncio.wait([self._taking_up])
        await self._work.wait_idle()
        await self._losses.wait_settled()

    def subscribe_leadership(self, on_leadership: OnLeadership) -> None:
        self._on_leadership.append(on_leadership)

    # The image.

    @property
    def image(self) -> ClusterImage:
        """The newest. Raises Refused before the first."""
        if self._image is None:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self._image

    @property
    def assigned_count(self) -> int:
        """How many replicas the image gives this node, as far as it is taken up."""
        return len(self._assigned)

    @property
    def work_under_way(self) -> int:
        """How many partitions' logs are being opened or deleted, or wait for that in a task."""
        return self._work.under_way

    def on_image(self, change: ImageChange) -> None:
        """In log order. Never blocks: opening and deleting logs is queued per partition, and what
        concerns many replicas is taken up over several turns, then by the newest image."""
        self._image = change.after
        if not self._started:
            return
        self._assignments.on_change(change)
        if change.before.configs != change.after.configs:
            self._unconfigured |= dict.fromkeys(self._hosted)
        if change.changed_brokers and self._registered:
            # Who may join an ISR depends on the brokers (RULES D3).
            self._brokers_untold |= dict.fromkeys(self._hosted)
        self._take_up()

    def _take_up(self) -> None:
        """One turn's share of what the image has brought."""
        for news in self._assignments.take_up(self.image):
            self._on_news(news)
        self._maybe_register()
        for key in self._some_of(self._unconfigured, CONFIGURED_AT_ONCE):
            self._update_config(self._hosted[key])
        for key in self._some_of(self._brokers_untold, CHECKED_AT_ONCE):
            if self._hosted[key].leader is not None:
                self._untold[key] = None
        for key in self._some_of(self._untold, TOLD_AT_ONCE):
            self._tell(self._hosted[key])
        if self._has_more and self._taking_up is None:
            self._taking_up = self._scope.spawn(self._take_up_rest(), name="take up the image")

    @property
    def _has_more(self) -> bool:
        waiting = self._unconfigured or self._brokers_untold or self._untold
        return self._assignments.behind or bool(waiting)

    async def _take_up_rest(self) -> None:
        try:
            while self._started and self._has_more:
                await asyncio.sleep(0)
                self._take_up()
        finally:
            self._taking_up = None

    def _some_of(self, keys: dict[Key, None], count: int) -> list[Key]:
        """Take that many from the front; those that are not here any more are left out."""
        taken = list(islice(keys, count))
        for key in taken:
            del keys[key]
        return [key for key in taken if key in self._hosted and not self._hosted[key].closed]

    def _on_news(self, news: News) -> None:
        match news:
            case TopicGone(topic):
                self.traffic.forget(topic)
            case Unassigned(topic, number, topic_id, error):
                key = topic, number
                if self._assigned.get(key) == topic_id:
                    del self._assigned[key]
                    self._work.enqueue(key, lambda: self._delete(key, topic_id, error))
            case Assigned(topic, number, topic_id):
                key = topic, number
                self._assigned[key] = topic_id
                self._work.enqueue(key, lambda: self._open(key, topic_id))
            case Changed(topic, number, settings):
                if settings:
                    self._unconfigured[topic, number] = None
                if self._registered:
                    self._untold[topic, number] = None

    def _maybe_register(self) -> None:
        image = self._image
        if (
            self._registered
            or not self._started
            or image is None
            or self._broker_epoch == NO_BROKER_EPOCH
            or image.index < self._broker_epoch
            # Below, a stored log that is not yet known to be assigned would be set aside.
            or self._assignments.behind
        ):
            return
        self._registered = True
        self._untold |= dict.fromkeys(self._hosted)
        for key, topic_id in self._deferred.items():
            self._work.enqueue(key, lambda key=key, id_=topic_id: self._open(key, id_))  # type: ignore[misc]
        self._deferred.clear()
        for key in [key for key in self._stored if key not in self._assigned]:
            stored = self._stored.pop(key)
            self._work.enqueue(key, lambda stored=stored: self._set_aside(stored))  # type: ignore[misc]
        for key in self._directory.lost_logs():
            if key not in self._assigned:
                # Nobody asks for it any more; a later log of that name is not damaged by this.
                self._work.enqueue(key, lambda key=key: self._directory.delete_log(*key))  # type: ignore[misc]

    def _tell(self, partition: Partition) -> None:
        """Give it the newest image, if that is still about it."""
        topic = self.image.topics.get(partition.topic)
        if topic is not None and topic.topic_id == partition.topic_id:
            partition.on_image(topic, self.image)

    # Logs.

    def _config_of(self, topic: TopicImage) -> LogConfig:
        """The topic's settings over those of the node."""
        return LogConfig.resolve(topic.configs, self._broker_configs())

    def _broker_configs(self) -> dict[str, str]:
        """The node's settings over the cluster's over those of the file."""
        configs = {} if self._image is None else self._image.configs
        return {
            **self._static_configs,
            **configs.get("", {}),
            **configs.get(str(self._node_id), {}),
        }

    def _update_config(self, partition: Partition) -> None:
        topic = self.image.topics.get(partition.topic)
        if topic is not None and topic.topic_id == partition.topic_id:
            partition.log.update_config(self._config_of(topic))

    async def _open(self, key: Key, topic_id: UUID) -> None:
        stored = self._stored.get(key)
        known = stored is not None and stored.topic_id == topic_id
        async with self._opening if known else self._creating:
            # One begins in one turn of the loop (F1): where none waits for the disk, as after an
            # orderly stop, all that are open at once would have their steps in the same turns.
            async with self._beginning:
                await asyncio.sleep(0)
            await self._open_now(key, topic_id)

    async def _open_now(self, key: Key, topic_id: UUID) -> None:
        topic = self._wanted(key, topic_id)
        if topic is None:
            return  # Deleted meanwhile.
        stored = self._stored.get(key)
        if stored is not None and stored.topic_id != topic_id and not self._registered:
            # While this node catches up, its image may be older than its disk: the log may be of a
            # later life of that name, which the image has yet to come to (RULES A7).
            self._deferred[key] = topic_id
            return
        config = self._config_of(topic)
        try:
            log = await self._open_log(key, topic_id, config)
            if log.damage is not None and self._is_only_copy(key, topic_id):
                log = await self._directory.set_damage_aside(log, config)
        except (OSError, StorageFailed) as error:
            logger.error("the log of %s-%d does not open: %s", *key, error)
            self._failed[key] = str(error)
            self._scope.spawn(self._open_again(key, topic_id), name=f"open {key} again")
            return
        self._failed.pop(key, None)
        if log.damage is not None:
            logger.error("%s", log.damage)
            self._losses.submit(topic_id, key[1])
        self._expire_producers(log)
        watermark = self._directory.high_watermarks.get(key, 0)
        partition = Partition(log, self._surroundings, watermark)
        self._hosted[key] = partition
        self._update_config(partition)  # What has changed meanwhile passed by who was not hosted.
        if self._registered:
            self._tell(partition)

    def _wanted(self, key: Key, topic_id: UUID) -> TopicImage | None:
        """The topic, if a log of it still belongs here: it was given to this node, and nothing else
        is waiting to be taken up."""
        topic = self.image.topics.get(key[0])
        if self._assigned.get(key) != topic_id or topic is None or topic.topic_id != topic_id:
            return None
        return topic

    def _is_only_copy(self, key: Key, topic_id: UUID) -> bool:
        """No other replica has these records, or ever will: nobody can fill this one again."""
        topic = self.image.topics.get(key[0])
        return (
            topic is not None
            and topic.topic_id == topic_id
            and topic.partitions[key[1]].replicas == (self._node_id,)
        )

    def _on_damaged(self, partition: Partition) -> None:
        key = partition.topic, partition.partition
        if self._is_only_copy(key, partition.topic_id):
            self._open_again_soon(partition)
        else:
            self._losses.submit(partition.topic_id, partition.partition)

    def _open_again_soon(self, partition: Partition) -> None:
        key = partition.topic, partition.partition
        self._work.enqueue(key, lambda: self._close_and_open(partition))

    async def _close_and_open(self, partition: Partition) -> None:
        """A log that is half cut is recovered, an only replica's damage set aside. The replica is
        away for as long as that takes."""
        key = partition.topic, partition.partition
        if self._hosted.get(key) is not partition or self._wanted(key, partition.topic_id) is None:
            return  # Deleted meanwhile.
        self._failed[key] = str(partition.log.half_cut or partition.log.damage)
        await partition.close(ErrorCode.KAFKA_STORAGE_ERROR)
        if self._wanted(key, partition.topic_id) is not None:
            del self._hosted[key]
            # It never goes back while this process lives (RULES D4).
            self._directory.high_watermarks[key] = partition.high_watermark
            await self._open(key, partition.topic_id)

    async def _open_again(self, key: Key, topic_id: UUID) -> None:
        """A full disk gets room, descriptors become free: the replica must not stay away until the
        process restarts. `LogDirectory` goes on from whatever the failed attempt left."""
        await asyncio.sleep(OPEN_AGAIN_SECONDS)
        self._work.enqueue(key, lambda: self._open(key, topic_id))

    async def _open_log(self, key: Key, topic_id: UUID, config: LogConfig) -> PartitionLog:
        stored = self._stored.pop(key, None)
        if stored is not None and stored.topic_id == topic_id:
            return await self._directory.open_log(stored, config)
        if stored is not None:
            # Another topic of that name, deleted while this node was down.
            await self._directory.set_stray(stored)
        return await self._directory.create_log(*key, topic_id, config)

    async def _delete(self, key: Key, topic_id: UUID, error: ErrorCode) -> None:
        """Also a log that has not been opened yet, or does not open."""
        self._failed.pop(key, None)
        partition = self._hosted.pop(key, None)
        if partition is not None:
            await partition.close(error)
        stored = self._directory.stored(*key)
        if stored is not None and stored.topic_id == topic_id:
            self._stored.pop(key, None)
            await self._directory.delete_log(*key)

    async def _set_aside(self, stored: StoredLog) -> None:
        logger.warning("%s is not assigned to this node: set aside", stored.directory)
        await self._directory.set_stray(stored)

    # Roles.

    def _on_role(self, partition: Partition) -> None:
        follower = partition.follower
        if follower is not None and follower.leader_id != NO_LEADER:
            self._fetchers.follow(partition, follower)
        else:
            self._fetchers.leave(partition)
        for owed in self._owed.values():
            owed.pop(partition, None)
        if partition.leader is not None:
            self._expect_followers(partition, partition.leader.replicas)
        for on_leadership in self._on_leadership:
            on_leadership(
                partition.topic,
                partition.partition,
                partition.role is Role.LEADER,
                partition.leader_epoch,
            )

    def _expect_followers(self, partition: Partition, replicas: tuple[int, ...]) -> None:
        """They will fetch from here as soon as they know. Their long polls for other partitions,
        under way or to come, must not keep them from it: that is time without a commit."""
        until = asyncio.get_running_loop().time() + OWED_FOR_SECONDS
        for replica_id in replicas:
            if replica_id != self._node_id:
                self._owed.setdefault(replica_id, {})[partition] = until
                self._fetches.hasten(replica_id)

    def _on_replica_fetch(self, partition: Partition, replica_id: int) -> None:
        owed = self._owed.get(replica_id)
        if owed:
            owed.pop(partition, None)

    def _owes(self, replica_id: int) -> bool:
        owed = self._owed.get(replica_id)
        if not owed:
            return False
        now = asyncio.get_running_loop().time()
        for partition in [partition for partition, until in owed.items() if until <= now]:
            del owed[partition]
        return bool(owed)

    def _mend(self, partition: Partition) -> None:
        if partition not in self._mending:
            self._mending[partition] = None
            self._scope.spawn(self._mend_until_done(partition), name=f"mend {partition}")

    async def _mend_until_done(self, partition: Partition) -> None:
        try:
            # The disk tells nobody when it has room again.
            while not await partition.mend_to_lead():  # noqa: ASYNC110
                await asyncio.sleep(OPEN_AGAIN_SECONDS)
        finally:
            del self._mending[partition]

    def _propose_isr(self, partition: Partition, proposal: IsrProposal) -> None:
        leader = partition.leader
        self._isr_sender.submit(
            partition.topic_id,
            partition.partition,
            proposal,
            on_decided=partition.on_proposal_answered,
            still_wanted=lambda: (
                partition.leader is leader and leader is not None and leader.in_flight is proposal
            ),
        )

    # Regular work.

    async def _watch_lag(self) -> None:
        interval = self._config.replica_lag_time_max_ms / 2 / 1000
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(interval)
            if loop.time() - before > 1.5 * interval:
                # This process was stalled; the fetches it slept through wait to be read.
                continue
            for number, partition in enumerate(list(self._hosted.values()), start=1):
                partition.check_lag()
                if number % CHECKED_AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _checkpoint_regularly(self) -> None:
        while True:
            await asyncio.sleep(self._config.checkpoint_interval_ms / 1000)
            await self._directory.checkpoint_if_room(self._high_watermark_of)

    async def _delete_outlived_regularly(self) -> None:
        """Retention, one log at a time, each in a turn of the loop of its own (RULES F1)."""
        interval = self._config.retention_check_interval_ms / 1000
        await asyncio.sleep(min(interval, FIRST_RETENTION_CHECK_SECONDS))
        while True:
            for partition in list(self._hosted.values()):
                try:
                    await partition.delete_outlived()
                except (OSError, StorageFailed) as failed:
                    logger.warning("%s: retention must wait: %s", partition, failed)
                await asyncio.sleep(0)
            await asyncio.sleep(interval)

    async def _to_clean(self) -> list[CleaningCandidate]:
        """Those with a role: before that, an older life's watermark is all there is."""
        compacted: list[Partition] = []
        for number, partition in enumerate(list(self._hosted.values()), start=1):
            if partition.log.config.compact:
                compacted.append(partition)
            if number % CHECKED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return [
            CleaningCandidate(partition.log, partition.high_watermark)
            for partition in compacted
            if partition.role is not Role.OFFLINE and not partition.closed
        ]

    def _to_scrub(self) -> list[PartitionLog]:
        """Those that serve or follow: damage in another is known, or nobody counts on it."""
        return [p.log for p in self._hosted.values() if p.role is not Role.OFFLINE]

    async def _expire_producers_regularly(self) -> None:
        while True:
            expiry = ProducerExpiry.from_broker_configs(self._broker_configs())
            await asyncio.sleep(expiry.check_interval_ms / 1000)
            for partition in list(self._hosted.values()):
                self._expire_producers(partition.log)
                await asyncio.sleep(0)

    def _expire_producers(self, log: PartitionLog) -> None:
        expiry = ProducerExpiry.from_broker_configs(self._broker_configs())
        log.producers.expire(self._surroundings.clock.now_ms(), expiry.expiration_ms)

    def _high_watermark_of(self, log: PartitionLog) -> int | None:
        """None for a log whose replica is not there, or is an earlier one of that name."""
        partition = self._hosted.get((log.topic, log.partition))
        return None if partition is None or partition.log is not log else partition.high_watermark

    # Requests.

    def find(self, topic: str, partition: int) -> Partition:
        """Raises Refused."""
        found = self.image.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        hosted = self._hosted.get((topic, partition))
        if hosted is None or hosted.closed or hosted.topic_id != found.topic_id:
            failed = (topic, partition) in self._failed
            raise Refused(
                ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
        return hosted

    def find_by_id(self, topic_id: UUID, partition: int) -> Partition:
        """Raises Refused."""
        name = self.image.topic_names.get(topic_id)
        if name is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
        return self.find(name, partition)

    async def produce(self, request: ProduceRequest, version: int) -> ProduceResponse:
        return await produce(self, request, version, self._append_order)

    async def fetch(
        self, request: FetchRequest, version: int, session_owner: object, *, from_replica: bool
    ) -> FetchResponse:
        """`session_owner`: the connection; `from_replica`: it is an inter-node one, and the caller
        has checked that the replica id is the other node's (RULES B5)."""
        return await self._fetches.serve(request, version, session_owner, from_replica=from_replica)

    def ask_before_append(self, before_append: BeforeAppend) -> None:
        """From now on this is asked about every transactional batch of a client."""
        self._append_order.before_append = before_append

    def forget_sessions(self, session_owner: object) -> None:
        """The owner's connection is closed."""
        self._sessions.forget_owner(session_owner)

    async def delete_records(self, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        return await delete_records(self, request)

    def list_offsets(
        self, request: ListOffsetsRequest, version: int, *, from_replica: bool = False
    ) -> ListOffsetsResponse:
        return list_offsets(self, request, version, from_replica=from_replica)

    def describe_producers(self, request: DescribeProducersRequest) -> DescribeProducersResponse:
        return describe_producers(self, request)

    def offset_for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest, version: int
    ) -> OffsetForLeaderEpochResponse:
        return offset_for_leader_epoch(self, request)

    async def append(
        self,
        topic: str,
        partition: int,
        records: Buffer,
        *,
        deadline: float,
        acks: int = -1,
        transaction_version: int = 0,
    ) -> AppendOutcome:
        """A coordinator's batch, or a marker; answered like a produce request, by `deadline` (loop
        time). `transaction_version`: what a marker was written under."""
        pending = PendingAnswers()
        outcome: list[ErrorCode] = []
        try:
            found = self.find(topic, partition)
            appended = found.append(
                records, acks=acks, from_client=False, transaction_version=transaction_version
            )
            found.await_answer(appended, acks=acks, pending=pending, on_answer=outcome.append)
        except Refused as refused:
            return AppendOutcome(refused.error)
        except RecordsRejected as rejected:
            return AppendOutcome(rejected.error)
        except StorageFailed:
            return AppendOutcome(ErrorCode.KAFKA_STORAGE_ERROR)
        await pending.wait(deadline)
        error = outcome[0]
        return AppendOutcome(error, appended.base_offset if error is ErrorCode.NONE else -1)

    def read_local(self, topic: str, partition: int, offset: int, max_bytes: int) -> LogRead:
        """Up to the log's end. Raises Refused, OffsetOutOfRange, RecordsDamaged."""
        return self.find(topic, partition).read_local(offset, max_bytes)

    def partition_state(self, topic: str, partition: int) -> PartitionState | None:
        """None when this node has no open replica of it."""
        hosted = self._hosted.get((topic, partition))
        return None if hosted is None else hosted.state()

    def partition_states(self) -> list[PartitionState]:
        """All replicas here, by topic and partition."""
        return [self._hosted[key].state() for key in sorted(self._hosted)]

    def failed_logs(self) -> Mapping[Key, str]:
        """Assigned here, but the log does not open: why."""
        return dict(self._failed)
