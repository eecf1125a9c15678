"""One replica on this node: it carries out what `LeaderState` or `FollowerState` decide.

    OFFLINE  -> LEADER    the image names this node, in an epoch of this process's life (RULES B1)
    OFFLINE  -> FOLLOWER  the image names another leader, or none
    FOLLOWER <-> LEADER   the image says so, in a larger leader epoch
    LEADER   -> LEADER    in a larger leader epoch: everything the old one promised is unknown
    any      -> OFFLINE   the log is damaged and somebody counts on this replica (RULES C1), or it
                          is half cut; this object is then given up for one with the log reopened

A change of role happens between two turns of the loop, with one exception: while the log is being
cut (`truncate`), images wait and the newest is taken up when the cut is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from ..metadata.image import NO_LEADER, BrokerImage, ClusterImage, PartitionImage, TopicImage
from ..seam import Buffer, Clock, frozen
from ..wire import ErrorCode
from .follower import FetchPosition, FollowerState
from .isr_proposal import IsrProposal, ProposalVerdict
from .leader import Effect, HighWatermarkAdvanced, LeaderState, ProposeIsr, ReplicaLostData
from .replication_config import ReplicationConfig
from .roles import PartitionState, Refused, ReplicationCounters, Role
from .storage import (
    Appended,
    LeaderBatch,
    LogRead,
    PartitionLog,
    RecordsDamaged,
    StorageFailed,
    VerificationGuard,
)
from .traffic import Traffic
from .waiting_room import FetchRoom, OffsetRoom, PendingAnswers

logger = logging.getLogger(__name__)

ACKS_NONE = 0
ACKS_LEADER = 1
ACKS_ALL = -1


def now_ms() -> int:
    """The loop's time: it measures, it is not the time of day."""
    return int(asyncio.get_running_loop().time() * 1000)


@frozen
class Surroundings:
    """What a partition needs from its node; shared by all."""

    node_id: int
    config: ReplicationConfig
    clock: Clock
    counters: ReplicationCounters
    traffic: Traffic
    propose_isr: Callable[[Partition, IsrProposal], None]
    on_role: Callable[[Partition], None]
    """The role or leader epoch has changed."""
    mend: Callable[[Partition], None]
    """Have `mend_to_lead` run soon, until it is done."""
    open_again: Callable[[Partition], None]
    """The log is half cut: have it closed and opened again, for as long as that takes."""
    on_damaged: Callable[[Partition], None]
    """This replica lacks what it once held: tell the controller, or live without, if no other
    replica ever had it."""


@frozen
class Divergence:
    """The largest epoch that the leader shares with the asker, and where it ends here."""

    epoch: int
    end_offset: int


class Partition:
    def __init__(self, log: PartitionLog, surroundings: Surroundings, high_watermark: int) -> None:
        """`high_watermark`: from the checkpoint; the log may since have lost what it counted."""
        self.topic = log.topic
        self.partition = log.partition
        self.topic_id: UUID = log.topic_id
        self.log = log
        self.traffic = surroundings.traffic.of(log.topic)
        self.role = Role.OFFLINE
        self.leader: LeaderState | None = None
        self.follower: FollowerState | None = None
        self.leader_epoch = -1
        """Of the last image taken up."""
        self.closed = False
        self._given_up = False
        """Damaged, and an image has shown that nobody counts on it: whoever has it lead knows."""
        self.commit_room = OffsetRoom(surroundings.config.max_waiting_produces)
        """`acks=all`: waits for the high watermark."""
        self.synced_room = OffsetRoom(surroundings.config.max_waiting_produces)
        """`acks=1`: waits for this replica's synced end (RULES C2)."""
        self.deletion_room = OffsetRoom(surroundings.config.max_waiting_produces)
        """DeleteRecords: waits for the low watermark."""
        self.log_end_fetches = FetchRoom()
        """Followers."""
        self.watermark_fetches = FetchRoom()
        """Consumers, and followers that should hear of a new watermark (D7)."""
        self._around = surroundings
        self._high_watermark = max(log.log_start_offset, min(high_watermark, log.log_end_offset))
        self._wanted: tuple[TopicImage, PartitionImage, Mapping[int, BrokerImage]] | None = None
        self._cuts_running = 0
        self._idle: asyncio.Future[None] | None = None
        log.on_synced = self._on_synced
        log.on_rolled_back = self._on_rolled_back
        log.on_damaged = self._on_damaged

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    # Questions.

    @property
    def high_watermark(self) -> int:
        if self.leader is not None:
            return self.leader.high_watermark
        if self.follower is not None:
            return self.follower.high_watermark
        return self._high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset(self.high_watermark)

    @property
    def low_watermark(self) -> int:
        """On the leader: what lies below is deleted on all living replicas; -1: not known."""
        if self.leader is None:
            return -1
        return self.leader.low_watermark(self.log.log_start_offset)

    @property
    def leader_id(self) -> int:
        if self.leader is not None:
            return self._around.node_id
        return self.follower.leader_id if self.follower is not None else NO_LEADER

    def state(self) -> PartitionState:
        image = self._wanted[1] if self._wanted is not None else None
        return PartitionState(
            topic=self.topic,
            partition=self.partition,
            topic_id=self.topic_id,
            role=self.role,
            leader_id=self.leader_id,
            leader_epoch=self.leader_epoch,
            isr=image.isr if image is not None and self.role is not Role.OFFLINE else (),
            high_watermark=self.high_watermark,
            log_start_offset=self.log.log_start_offset,
            log_end_offset=self.log.log_end_offset,
            synced_offset=self.log.synced_offset,
        )

    def check_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """What the asker believes to be the leader epoch (KIP-320); -1: it does not say."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def require_leader(self, current_leader_epoch: int = -1) -> LeaderState:
        """Raises Refused."""
        error = self.check_epoch(current_leader_epoch)
        if error is not ErrorCode.NONE:
            raise Refused(error)
        if self.leader is None:
            raise Refused(self.refusal())
        return self.leader

    def refusal(self) -> ErrorCode:
        """Why this replica does not serve what only a leader may."""
        if self.role is Role.OFFLINE and (self.log.damage or self.log.half_cut) is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    # Roles.

    def on_image(self, topic: TopicImage, image: ClusterImage) -> None:
        """In log order; changes may have been left out in between."""
        self._wanted = (topic, topic.partitions[self.partition], image.brokers)
        if not self._cuts_running and not self.closed:
            self._take_up_image()

    def _take_up_image(self) -> None:
        if self._wanted is None:
            return
        topic, image, brokers = self._wanted
        if self.log.half_cut is not None:
            self._go_offline(image)
        elif self.log.damage is not None and self._counted_on(image):
            self._go_offline(image)
            if self._leads_damaged:
                self._around.mend(self)
        elif image.leader == self._around.node_id:
            if self.leader is not None and self.leader_epoch == image.leader_epoch:
                minimum = topic.min_insync_replicas
                self._carry_out(self.leader.on_image(image, brokers, minimum, now_ms()))
                self._release_deletions()
            else:
                self._become_leader(topic, image, brokers)
        elif self.follower is None or self.leader_epoch != image.leader_epoch:
            self._become_follower(image)

    def _counted_on(self, image: PartitionImage) -> bool:
        """A damaged log is cut and filled again only when nobody counts on it (RULES C1)."""
        own = self._around.node_id
        counted_on = own == image.leader or own in image.isr or own in image.elr
        self._given_up |= not counted_on
        return counted_on

    def _go_offline(self, image: PartitionImage) -> None:
        if self.role is not Role.OFFLINE or self.leader_epoch != image.leader_epoch:
            why = self.log.half_cut or self.log.damage
            logger.error("%s stays offline on this node: %s", self, why)
            self._end_role()
            self.role = Role.OFFLINE
            self.leader_epoch = image.leader_epoch
            self._around.on_role(self)

    def _become_leader(
        self, topic: TopicImage, image: PartitionImage, brokers: Mapping[int, BrokerImage]
    ) -> None:
        high_watermark = self._end_role()
        # Whoever was asked, was asked by the leader of another epoch.
        self.log.producers.verifications.clear()
        # Also when nothing is ever written in it: a follower with records of an epoch in between
        # must be told that this log never had that epoch.
        self.log.epochs.assign(image.leader_epoch, self.log.log_end_offset)
        self.role = Role.LEADER
        self.leader_epoch = image.leader_epoch
        self.leader = LeaderState(
            str(self),
            node_id=self._around.node_id,
            image=image,
            brokers=brokers,
            min_insync_replicas=topic.min_insync_replicas,
            log_end_offset=self.log.log_end_offset,
            synced_offset=self.log.synced_offset,
            high_watermark=high_watermark,
            lag_max_ms=self._around.config.replica_lag_time_max_ms,
            now_ms=now_ms(),
        )
        self._around.counters.leader_changes += 1
        self._around.on_role(self)
        self._carry_out(self.leader.on_synced(self.log.synced_offset, now_ms()))

    def _become_follower(self, image: PartitionImage) -> None:
        high_watermark = self._end_role()
        self.role = Role.FOLLOWER
        self.leader_epoch = image.leader_epoch
        self.follower = FollowerState(
            str(self),
            leader_id=image.leader,
            leader_epoch=image.leader_epoch,
            high_watermark=high_watermark,
        )
        self._around.on_role(self)

    def _end_role(self) -> int:
        """Whoever waits is told that the outcome is unknown (D5). Returns the watermark."""
        # A log in which damage was found ends before what was committed in it.
        self._high_watermark = min(self.high_watermark, self.log.log_end_offset)
        self.leader = None
        self.follower = None
        self._fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self._high_watermark

    def _fail_waiting(self, error: ErrorCode) -> None:
        self.commit_room.fail_all(error)
        self.synced_room.fail_all(error)
        self.deletion_room.fail_all(error)
        self._wake_fetches()

    def _wake_fetches(self) -> None:
        self.log_end_fetches.wake_all()
        self.watermark_fetches.wake_all()

    async def close(self, error: ErrorCode) -> None:
        """No more requests; returns when nothing touches the log any more. `error` goes to those
        who wait."""
        self.closed = True
        self._end_role()
        self.role = Role.OFFLINE
        self._around.on_role(self)
        self._fail_waiting(error)
        if self._cuts_running:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        # `on_rolled_back` stays: what was appended in this very turn may still find no room, and
        # nobody is left who waits for it.
        self.log.on_synced = None
        self.log.on_damaged = None

    # The leader's side.

    def require_appendable(self, acks: int) -> LeaderState:
        """Whether a batch would be appended, whatever is in it. Raises Refused."""
        leader = self.require_leader()
        if acks == ACKS_ALL:
            if leader.under_min_isr:
                raise Refused(ErrorCode.NOT_ENOUGH_REPLICAS)
            if self.commit_room.full:
                raise Refused(ErrorCode.REQUEST_TIMED_OUT)
        elif acks == ACKS_LEADER and self.synced_room.full:
            raise Refused(ErrorCode.REQUEST_TIMED_OUT)
        return leader

    def append(
        self,
        records: Buffer | LeaderBatch,
        *,
        acks: int,
        from_client: bool = True,
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
    ) -> Appended:
        """Append one batch as leader; the caller then waits with `await_answer`.

        Raises Refused (NOT_ENOUGH_REPLICAS: nothing was appended, D5), RecordsRejected,
        StorageFailed.
        """
        leader = self.require_appendable(acks)
        appended = self.log.append_as_leader(
            records,
            leader_epoch=leader.leader_epoch,
            now_ms=self._around.clock.now_ms(),
            from_client=from_client,
            transaction_version=transaction_version,
            guard=guard,
        )
        if not appended.duplicate:
            self.traffic.messages_in += appended.last_offset - appended.base_offset + 1
            self.traffic.bytes_in += appended.size
            leader.on_appended(self.log.log_end_offset)
            self.log_end_fetches.wake_all()
        return appended

    def await_answer(
        self,
        appended: Appended,
        *,
        acks: int,
        pending: PendingAnswers,
        on_answer: Callable[[ErrorCode], None],
    ) -> None:
        """Call `on_answer` now or when the records are as safe as `acks` asks for (D5). A duplicate
        waits exactly like the first copy."""
        end_offset = appended.last_offset + 1
        if acks == ACKS_ALL:
            assert self.leader is not None
            error = self.leader.produce_answer(end_offset)
            if error is None:
                pending.add(self.commit_room, end_offset, on_answer)
            else:
                on_answer(error)
        elif acks == ACKS_LEADER and self.log.synced_offset < end_offset:
            pending.add(self.synced_room, end_offset, on_answer)
        else:
            on_answer(ErrorCode.NONE)

    async def delete_records(self, offset: int) -> None:
        """Everything below `offset` is deleted here, and soon on the followers; the caller then
        waits with `await_deleted`. Raises Refused."""
        self.require_leader()
        if not self.log.config.delete:
            raise Refused(ErrorCode.POLICY_VIOLATION)
        if not 0 <= offset <= self.high_watermark:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE)
        if self.deletion_room.full:
            raise Refused(ErrorCode.REQUEST_TIMED_OUT)
        if offset > self.log.log_start_offset:
            logger.info("%s: a client deletes what lies below %d", self, offset)
            await self.log.advance_log_start(offset)
            self._on_log_start_moved()
        self.require_leader()  # Time may have passed.

    def await_deleted(
        self, offset: int, *, pending: PendingAnswers, on_answer: Callable[[ErrorCode], None]
    ) -> None:
        if self.low_watermark >= offset:
            on_answer(ErrorCode.NONE)
        else:
            pending.add(self.deletion_room, offset, on_answer)

    def _on_log_start_moved(self) -> None:
        """Followers learn it at once, a new low watermark is told."""
        self.log_end_fetches.wake_all()
        self._release_deletions()

    def _release_deletions(self) -> None:
        if self.leader is not None and self.deletion_room:
            self.deletion_room.release(self.low_watermark, ErrorCode.NONE)

    def diverges(self, fetch_offset: int, last_fetched_epoch: int) -> Divergence | None:
        """Does a log that ends at `fetch_offset` in that epoch differ from this one (KIP-595)?

        Raises Refused(OFFSET_OUT_OF_RANGE) when this lineage cannot tell.
        """
        if last_fetched_epoch < 0:
            return None
        epoch, end_offset = self.log.epochs.end_offset_for(
            last_fetched_epoch, self.log.log_end_offset
        )
        if epoch < 0:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return Divergence(epoch, end_offset)
        return None

    def on_replica_fetch(
        self,
        *,
        replica_id: int,
        broker_epoch: int,
        current_leader_epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        log_start_offset: int,
    ) -> Divergence | None:
        """A follower confirms `fetch_offset` by asking for it, unless it diverges (D6).

        Raises Refused.
        """
        leader = self.require_leader(current_leader_epoch)
        error = leader.check_fetcher(replica_id, broker_epoch)
        if error is not ErrorCode.NONE:
            raise Refused(error)
        if fetch_offset < self.log.log_start_offset:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE)
        divergence = self.diverges(fetch_offset, last_fetched_epoch)
        if divergence is None:
            if fetch_offset > self.log.log_end_offset:
                raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE)
            self._carry_out(
                leader.on_fetch(
                    replica_id=replica_id,
                    broker_epoch=broker_epoch,
                    fetch_offset=fetch_offset,
                    now_ms=now_ms(),
                )
            )
            leader.on_follower_log_start(replica_id, log_start_offset)
            self._release_deletions()
        return divergence

    def check_consumer_fetch(
        self,
        *,
        current_leader_epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        may_read_follower: bool,
    ) -> Divergence | None:
        """May a consumer read at `fetch_offset`? Between watermark and log end it waits (D4).

        Raises Refused.
        """
        error = self.check_epoch(current_leader_epoch)
        if error is not ErrorCode.NONE:
            raise Refused(error)
        if self.leader is None and (self.follower is None or not may_read_follower):
            raise Refused(self.refusal())
        if fetch_offset < self.log.log_start_offset:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE)
        if fetch_offset > self.log.log_end_offset and self.leader is None:
            # The leader may well have it: no reason for the consumer to reset (KIP-392).
            raise Refused(ErrorCode.OFFSET_NOT_AVAILABLE)
        divergence = self.diverges(fetch_offset, last_fetched_epoch)
        if divergence is None and fetch_offset > self.log.log_end_offset:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE)
        return divergence

    def check_lag(self) -> None:
        """Now and then, on leaders: who has fallen behind?"""
        if self.leader is not None:
            self._carry_out(self.leader.on_tick(now_ms()))

    def on_proposal_answered(
        self, proposal: IsrProposal, verdict: ProposalVerdict, uncertain: bool
    ) -> None:
        if self.leader is not None:
            self._carry_out(
                self.leader.on_proposal_answered(
                    proposal, verdict, uncertain=uncertain, now_ms=now_ms()
                )
            )

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, HighWatermarkAdvanced):
                self._on_watermark_moved()
            elif isinstance(effect, ProposeIsr):
                self._propose(effect.proposal)
            else:
                self._report_lost_data(effect)

    def _on_watermark_moved(self) -> None:
        high_watermark = self.high_watermark
        self.log.producers.on_high_watermark(high_watermark)
        if self.leader is not None and self.commit_room:
            error = self.leader.produce_answer(high_watermark)
            assert error is not None
            self.commit_room.release(high_watermark, error)
        self.watermark_fetches.wake_all()

    def _propose(self, proposal: IsrProposal) -> None:
        assert self.leader is not None
        counters = self._around.counters
        if len(proposal.isr) < len(self.leader.isr):
            counters.isr_shrinks += 1
        else:
            counters.isr_expands += 1
        logger.info("%s: proposes ISR %s for %s", self, proposal.members, self.leader.isr)
        self._around.propose_isr(self, proposal)

    def _report_lost_data(self, lost: ReplicaLostData) -> None:
        self._around.counters.replicas_that_lost_data += 1
        logger.error(
            "%s: replica %d asks for %d although it had confirmed %d: it lost data (RULES C3)",
            self,
            lost.replica_id,
            lost.asked_offset,
            lost.confirmed_offset,
        )

    # The follower's side. `state` is the one that the request was made from: when it is no longer
    # the current one, an answer belongs to an epoch that is over.

    def position(self, state: FollowerState) -> FetchPosition | None:
        if state is not self.follower:
            return None
        log = self.log
        return state.position(
            log.epochs,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            synced_offset=log.synced_offset,
        )

    def append_fetched(
        self,
        state: FollowerState,
        records: Buffer | None,
        *,
        fetch_offset: int,
        leader_high_watermark: int,
    ) -> bool:
        """Append what the leader sent for `fetch_offset`; False when the answer came too late for
        its epoch, or the log no longer ends where it was asked for: what came may continue it all
        the same, behind a gap that would pass for one of compaction.

        Raises CorruptBatch, OffsetGap, StorageFailed; then nothing was appended.
        """
        if state is not self.follower or self._cuts_running:
            return False
        if self.log.log_end_offset != fetch_offset:
            logger.error(
                "%s: asked for %d, ends at %d", self, fetch_offset, self.log.log_end_offset
            )
            return False
        if records is not None and len(records):
            self.log.append_as_follower(records, committed=leader_high_watermark)
            self.traffic.replicated_in += len(records)
        self._take_leader_watermark(state, leader_high_watermark)
        return True

    def _take_leader_watermark(self, state: FollowerState, high_watermark: int) -> None:
        """After the append: the watermark in the answer may cover what came with it."""
        if state.on_leader_watermark(high_watermark, synced_offset=self.log.synced_offset):
            self._on_watermark_moved()

    async def begin_amid(
        self, state: FollowerState, records: Buffer, *, leader_high_watermark: int
    ) -> bool:
        """As `append_fetched`, for a log that is empty and begins amid the first of the batches:
        `PartitionLog.begin_amid`."""
        if state is not self.follower or self._cuts_running:
            return False
        logger.info("%s: begins amid a batch at %d", self, self.log.log_start_offset)
        self._cuts_running += 1
        try:
            await self.log.begin_amid(records, committed=leader_high_watermark)
            self.traffic.replicated_in += len(records)
            self._take_leader_watermark(state, leader_high_watermark)
        finally:
            self._on_cut_over()
        return state is self.follower

    async def truncate(self, state: FollowerState, divergence: Divergence) -> None:
        """Cut what the leader's lineage does not hold (RULES D6)."""
        if state is not self.follower or self._cuts_running:
            return
        log = self.log
        offset = state.truncation_offset(
            epoch=divergence.epoch,
            end_offset=divergence.end_offset,
            lineage=log.epochs,
            log_end_offset=log.log_end_offset,
        )
        if offset >= log.log_start_offset:
            # Also at the very end of the log: it drops epochs in which nothing was written here.
            await self._cut(state, lambda: log.truncate_to(offset))
        else:
            await self._cut(state, lambda: log.truncate_fully(offset))

    async def start_over(self, state: FollowerState, log_start_offset: int) -> None:
        """The leader has deleted all that would continue this log: begin where it begins."""
        if state is not self.follower or self._cuts_running:
            return
        if log_start_offset > self.log.log_end_offset:
            await self._cut(state, lambda: self.log.truncate_fully(log_start_offset))

    async def mend(self, state: FollowerState) -> None:
        """Cut a damaged log where the damage begins; nobody counts on it any more (RULES C1)."""
        damage = self.log.damage
        if damage is not None and state is self.follower and not self._cuts_running:
            await self._cut(state, lambda: self.log.truncate_to(damage.offset), mending=True)

    async def mend_to_lead(self) -> bool:
        """An unclean election has chosen this damaged log, although the controller knew: what is
        left of it is the truth from now on. False: it is still to be mended, and the disk refused
        or the damage begins earlier."""
        damage = self.log.damage
        if damage is None or self.closed or self._cuts_running or not self._leads_damaged:
            return True
        self._cuts_running += 1
        try:
            await self.log.truncate_to(damage.offset)
            self._around.counters.committed_records_cut += 1
            logger.error("%s: %s; cut there, to lead by an unclean election", self, damage)
        except StorageFailed as failed:
            logger.error("%s is not mended: %s", self, failed)
            return False
        finally:
            self._on_cut_over()
        return True

    @property
    def _leads_damaged(self) -> bool:
        """Whoever has it lead knows."""
        image = self._wanted[1] if self._wanted is not None else None
        return self._given_up and image is not None and image.leader == self._around.node_id

    async def _cut(
        self, state: FollowerState, cut: Callable[[], Awaitable[None]], *, mending: bool = False
    ) -> None:
        """Raises StorageFailed; then the log is as it was, or this replica has gone offline."""
        before = self.log.log_end_offset
        self._cuts_running += 1
        try:
            await cut()
            if mending:
                state.on_mended(self.log.log_end_offset)
            self._after_cut(state, before)
        finally:
            self._on_cut_over()

    def _on_cut_over(self) -> None:
        self._cuts_running -= 1
        if self.log.half_cut is not None:
            self._around.open_again(self)
        if self._idle is not None:
            self._idle.set_result(None)
        elif not self.closed:
            self._take_up_image()

    def _after_cut(self, state: FollowerState, before: int) -> None:
        after = self.log.log_end_offset
        self._around.counters.truncations += 1
        logger.info("%s: cut from %d to %d, epoch %d", self, before, after, state.leader_epoch)
        if state.on_truncated(after):
            self._around.counters.committed_records_cut += 1
            logger.error("%s: committed records were cut, by an unclean election", self)

    async def follow_log_start(self, state: FollowerState, leader_log_start_offset: int) -> None:
        """What the leader has deleted, and is committed, is deleted here too."""
        offset = min(leader_log_start_offset, state.high_watermark)
        if state is self.follower and offset > self.log.log_start_offset:
            await self.log.advance_log_start(offset)

    async def delete_outlived(self) -> None:
        """Retention by this replica itself, leader or follower, below the watermark it knows."""
        if not self.closed and self.role is not Role.OFFLINE and not self._cuts_running:
            before = self.log.log_start_offset
            await self.log.delete_outlived(high_watermark=self.high_watermark)
            if self.log.log_start_offset != before:
                self._on_log_start_moved()

    def read_local(self, offset: int, max_bytes: int) -> LogRead:
        """Up to the log's end, for this node's own coordinators.

        Raises OffsetOutOfRange, Refused; RecordsDamaged where nobody has what was there.
        """
        try:
            return self.log.read(
                offset,
                max_bytes=max_bytes,
                upper_bound=self.log.log_end_offset,
                at_least_one=True,
            )
        except RecordsDamaged:
            raise
        except StorageFailed:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR) from None

    # What the log reports.

    def _on_synced(self, synced_offset: int) -> None:
        self.synced_room.release(synced_offset, ErrorCode.NONE)
        if self.leader is not None:
            self._carry_out(self.leader.on_synced(synced_offset, now_ms()))
        elif self.follower is not None and self.follower.on_synced(synced_offset):
            self._on_watermark_moved()

    def _on_damaged(self) -> None:
        """Whoever leads or confirms on the strength of this log must not do so any longer, from
        this very moment; the controller finds others (RULES C1)."""
        self._around.on_damaged(self)
        if not self._cuts_running and not self.closed:
            self._take_up_image()

    def _on_rolled_back(self, log_end_offset: int) -> None:
        self.commit_room.fail_beyond(log_end_offset, ErrorCode.KAFKA_STORAGE_ERROR)
        self.synced_room.fail_beyond(log_end_offset, ErrorCode.KAFKA_STORAGE_ERROR)
        if self.leader is not None:
            self.leader.on_rolled_back(log_end_offset)
            # Taking back may have dropped this epoch from the lineage (see `_become_leader`).
            self.log.epochs.assign(self.leader_epoch, log_end_offset)
