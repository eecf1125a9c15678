"""What a partition's leader decides: the high watermark and who is in sync. No I/O, no await.

**The high watermark** (RULES D1) is the offset below which everything is committed: consumers may
read it and `acks=all` is answered. It is the smallest of the leader's synced end and the confirmed
ends of every replica that counts:

* the *maximal ISR*: the committed ISR and, while a change is in flight, the proposed one too,
  because the controller may already have carried it out (D2);
* replicas about to join: caught up lately and eligible. Without waiting for them a fast leader
  would run ahead for ever and nobody could join again.

It stands still while the committed ISR is smaller than min(`min.insync.replicas`, replication
factor): otherwise a replica that left the ISR and is kept eligible (KIP-966, ELR) could lack
committed records. So it is the *committed* ISR that is counted, the *maximal* one that is waited
for: each time the reading that can only be too careful.

**Confirmed ends.** A follower that asks for offset x holds everything below x, synced (RULES C2),
provided that its lineage does not diverge; diverging fetches never arrive here (D6, KAFKA-13141).

**The ISR** changes by proposals, one in flight at a time, and only the image settles them (D2).

The methods take what happened and when (`now_ms`, any monotonic clock) and return effects.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..metadata.image import BrokerImage, PartitionImage
from ..seam import Fatal, frozen
from ..wire import ErrorCode
from .isr_proposal import IsrProposal, ProposalVerdict

UNKNOWN_OFFSET = -1
UNKNOWN_BROKER_EPOCH = -1
NEVER_MS = -(1 << 62)

REFUSED_JOIN_PAUSE_MS = 100
"""After INELIGIBLE_REPLICA the image is about to explain why; proposing at once would only spin."""


@frozen
class HighWatermarkAdvanced:
    high_watermark: int


@frozen
class ProposeIsr:
    proposal: IsrProposal


@frozen
class ReplicaLostData:
    """An ISR member asked for less than it had confirmed (RULES C3): to be counted and logged."""

    replica_id: int
    confirmed_offset: int
    asked_offset: int


Effect = HighWatermarkAdvanced | ProposeIsr | ReplicaLostData


class RemoteReplica:
    """What the leader knows of one follower in this leader epoch."""

    __slots__ = (
        "broker_epoch",
        "doubted_until_ms",
        "join_not_before_ms",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
        "lost_data",
        "replica_id",
    )

    def __init__(self, replica_id: int, *, last_caught_up_ms: int) -> None:
        self.replica_id = replica_id
        self.log_end_offset = UNKNOWN_OFFSET
        """Confirmed by its last fetch: it holds everything below."""
        self.log_start_offset = UNKNOWN_OFFSET
        """As of its last fetch: what lies below is deleted there, too."""
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        """Of the incarnation that confirmed it (KIP-903)."""
        self.last_caught_up_ms = last_caught_up_ms
        """The last time at which it is known to have held all the leader then had."""
        self.last_fetch_ms = NEVER_MS
        self.last_fetch_leader_end = UNKNOWN_OFFSET
        """The leader's appended end at that fetch."""
        self.lost_data = False
        """RULES C3: to be taken out of the ISR as soon as no other change is in flight."""
        self.join_not_before_ms = NEVER_MS
        self.doubted_until_ms = NEVER_MS
        """See `LeaderState.on_proposal_answered`."""

    def confirm(self, offset: int, *, leader_end_offset: int, now_ms: int) -> None:
        """It asks for `offset`. Asking for what was the end at its last fetch proves that it was
        caught up then, which is how a follower of a busy leader counts as caught up."""
        if offset >= leader_end_offset:
            self.last_caught_up_ms = now_ms
        elif offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.last_fetch_leader_end = leader_end_offset
        self.last_fetch_ms = now_ms

    def begin_incarnation(self, broker_epoch: int) -> None:
        """Another process speaks now: what its predecessor confirmed proves nothing."""
        self.broker_epoch = broker_epoch
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_end = UNKNOWN_OFFSET
        self.last_fetch_ms = NEVER_MS
        self.lost_data = False


class LeaderState:
    """One leader epoch of one partition on its leader. Made anew for every epoch."""

    def __init__(
        self,
        name: str,
        *,
        node_id: int,
        image: PartitionImage,
        brokers: Mapping[int, BrokerImage],
        min_insync_replicas: int,
        log_end_offset: int,
        synced_offset: int,
        high_watermark: int,
        lag_max_ms: int,
        now_ms: int,
    ) -> None:
        """`high_watermark`: what this replica knew as a follower or from its checkpoint."""
        self.name = name
        self.node_id = node_id
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.epoch_start_offset = log_end_offset
        """First offset of this epoch. Below it the watermark may lag behind that of the leader
        before (D4, KIP-207)."""
        self.log_end_offset = log_end_offset
        self.synced_offset = synced_offset
        self.high_watermark = high_watermark
        self.isr = image.isr
        """As committed in the image."""
        self.in_flight: IsrProposal | None = None
        self._image = image
        self._brokers = brokers
        self._min_insync_replicas = min_insync_replicas
        self._lag_max_ms = lag_max_ms
        # ISR members of a new leader get one lag time to show up.
        self._remotes = {
            replica: RemoteReplica(
                replica, last_caught_up_ms=now_ms if replica in image.isr else NEVER_MS
            )
            for replica in image.replicas
            if replica != node_id
        }

    # Questions.

    @property
    def replicas(self) -> tuple[int, ...]:
        return self._image.replicas

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """All that the controller may hold for in sync by now (RULES D2)."""
        if self.in_flight is None:
            return self.isr
        return (*self.isr, *(m for m in self.in_flight.members if m not in self.isr))

    @property
    def effective_min_isr(self) -> int:
        return min(self._min_insync_replicas, len(self._image.replicas))

    @property
    def under_min_isr(self) -> bool:
        return len(self.isr) < self.effective_min_isr

    @property
    def watermark_lags_epoch(self) -> bool:
        """The leader before may have shown a larger watermark: do not show this one (D4)."""
        return self.high_watermark < self.epoch_start_offset

    def remote(self, replica_id: int) -> RemoteReplica | None:
        return self._remotes.get(replica_id)

    def low_watermark(self, log_start_offset: int) -> int:
        """What is deleted on every replica that a living broker holds; `log_start_offset` is this
        leader's own. UNKNOWN_OFFSET while one of them has not said (KIP-107)."""
        living = [
            remote.log_start_offset
            for remote in self._remotes.values()
            if (broker := self._brokers.get(remote.replica_id)) is not None and not broker.fenced
        ]
        return min(log_start_offset, *living) if living else log_start_offset

    def reader_in_rack(self, rack: str, offset: int) -> int | None:
        """An in-sync follower in that rack that holds what a consumer at `offset` wants (KIP-392);
        None when the leader may as well serve it itself."""
        own = self._brokers.get(self.node_id)
        if own is not None and own.rack == rack:
            return None
        near = [
            remote
            for remote in self._remotes.values()
            if remote.replica_id in self.isr
            and remote.log_end_offset >= offset
            and (broker := self._brokers.get(remote.replica_id)) is not None
            and broker.active
            and broker.rack == rack
        ]
        if not near:
            return None
        return max(near, key=lambda remote: (remote.log_end_offset, -remote.replica_id)).replica_id

    def produce_answer(self, end_offset: int) -> ErrorCode | None:
        """What `acks=all` answers for records that end at `end_offset`; None: wait (RULES D5)."""
        if self.high_watermark < end_offset:
            return None
        if self.under_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def check_fetcher(self, replica_id: int, broker_epoch: int) -> ErrorCode:
        """May this follower fetch here? An older incarnation's late request may not (D3)."""
        remote = self._remotes.get(replica_id)
        if remote is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        broker = self._brokers.get(replica_id)
        newest = max(remote.broker_epoch, broker.broker_epoch if broker is not None else -1)
        if broker_epoch != UNKNOWN_BROKER_EPOCH and broker_epoch < newest:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    # Events.

    def on_appended(self, log_end_offset: int) -> None:
        self.log_end_offset = log_end_offset

    def on_rolled_back(self, log_end_offset: int) -> None:
        """Batches that nobody had seen were taken back, because the disk refused them."""
        if log_end_offset < self.high_watermark:
            raise Fatal(
                f"{self.name}: rolled back to {log_end_offset}, committed to {self.high_watermark}"
            )
        self.log_end_offset = log_end_offset
        self.epoch_start_offset = min(self.epoch_start_offset, log_end_offset)

    def on_synced(self, synced_offset: int, now_ms: int) -> list[Effect]:
        self.synced_offset = synced_offset
        return self._advance_high_watermark(now_ms)

    def on_fetch(
        self, *, replica_id: int, broker_epoch: int, fetch_offset: int, now_ms: int
    ) -> list[Effect]:
        """A follower admitted by `check_fetcher` asks for `fetch_offset`, which does not diverge
        and is not beyond the log's end."""
        if fetch_offset > self.log_end_offset:
            raise ValueError(f"{self.name}: fetch at {fetch_offset}, end {self.log_end_offset}")
        remote = self._remotes[replica_id]
        effects: list[Effect] = []
        if broker_epoch != remote.broker_epoch:
            remote.begin_incarnation(broker_epoch)
        elif fetch_offset < remote.log_end_offset and replica_id in self.maximal_isr:
            effects.append(ReplicaLostData(replica_id, remote.log_end_offset, fetch_offset))
            remote.lost_data = True
            remote.last_caught_up_ms = NEVER_MS
        moved = fetch_offset != remote.log_end_offset
        remote.confirm(fetch_offset, leader_end_offset=self.log_end_offset, now_ms=now_ms)
        if self.in_flight is None:
            if remote.lost_data:
                effects += self._propose_without_the_lost(now_ms)
            elif replica_id not in self.isr and self._may_join(remote, now_ms):
                effects += self._propose((*self.isr, replica_id))
        if moved:
            effects += self._advance_high_watermark(now_ms)
        return effects

    def on_follower_log_start(self, replica_id: int, log_start_offset: int) -> None:
        """After `on_fetch`, which may have begun another incarnation."""
        self._remotes[replica_id].log_start_offset = log_start_offset

    def on_tick(self, now_ms: int) -> list[Effect]:
        """Now and then: who has fallen behind for `replica.lag.time.max.ms`? Not to be called when
        this process itself has just been stalled: the fetches it slept through still wait."""
        if self.in_flight is not None:
            return []
        staying = tuple(
            member
            for member in self.isr
            if (remote := self._remotes.get(member)) is None
            or (not remote.lost_data and self._caught_up(remote, now_ms))
        )
        # A replica about to join that fell silent no longer holds the watermark back.
        effects = self._advance_high_watermark(now_ms)
        return effects if staying == self.isr else [*self._propose(staying), *effects]

    def on_proposal_answered(
        self, proposal: IsrProposal, verdict: ProposalVerdict, *, uncertain: bool, now_ms: int
    ) -> list[Effect]:
        """The controller's last word on `proposal` (never RETRY, which is the sender's business).

        `uncertain`: an earlier copy of it was lost on the way. After REVERT such a copy may still
        arrive, late, and find everything in order: for one lag time the joiner keeps counting for
        the watermark, while the image calls it active.
        """
        if proposal is not self.in_flight or verdict is not ProposalVerdict.REVERT:
            return []
        self.in_flight = None
        for member in proposal.members:
            remote = self._remotes.get(member)
            if remote is not None and member not in self.isr:
                remote.join_not_before_ms = now_ms + REFUSED_JOIN_PAUSE_MS
                if uncertain:
                    remote.doubted_until_ms = now_ms + self._lag_max_ms
        return [*self._propose_without_the_lost(now_ms), *self._advance_high_watermark(now_ms)]

    def on_image(
        self,
        image: PartitionImage,
        brokers: Mapping[int, BrokerImage],
        min_insync_replicas: int,
        now_ms: int,
    ) -> list[Effect]:
        """The image within this leader epoch: the only thing that changes the committed ISR."""
        if image.leader_epoch != self.leader_epoch or image.partition_epoch < self.partition_epoch:
            raise Fatal(
                f"{self.name}: image of epochs {image.leader_epoch}/{image.partition_epoch} after "
                f"{self.leader_epoch}/{self.partition_epoch}"
            )
        self._brokers = brokers
        self._min_insync_replicas = min_insync_replicas
        if image.partition_epoch > self.partition_epoch:
            self._adopt(image)
        effects: list[Effect] = []
        if self.in_flight is None:
            effects += self._propose_without_the_lost(now_ms)
        if self.in_flight is None:
            effects += self._propose_joiners(now_ms)
        effects += self._advance_high_watermark(now_ms)
        return effects

    def _adopt(self, image: PartitionImage) -> None:
        self._image = image
        self.partition_epoch = image.partition_epoch
        self.isr = image.isr
        self.in_flight = None
        self._remotes = {
            replica: self._remotes.get(replica)
            or RemoteReplica(replica, last_caught_up_ms=NEVER_MS)
            for replica in image.replicas
            if replica != self.node_id
        }
        for remote in self._remotes.values():
            remote.doubted_until_ms = NEVER_MS
            if remote.replica_id not in self.isr:
                # Out as it had to be: from here on it may fetch its way back.
                remote.lost_data = False

    # Decisions.

    def _caught_up(self, remote: RemoteReplica, now_ms: int) -> bool:
        return (
            remote.log_end_offset == self.log_end_offset
            or now_ms - remote.last_caught_up_ms <= self._lag_max_ms
        )

    def _eligible(self, remote: RemoteReplica) -> bool:
        """The incarnation that fetches is the one registered, lives and stays (RULES D3)."""
        broker = self._brokers.get(remote.replica_id)
        return broker is not None and broker.active and broker.broker_epoch == remote.broker_epoch

    def _may_join(self, remote: RemoteReplica, now_ms: int) -> bool:
        """RULES D3, on one view of the replica (KAFKA-15221 was a race between two looks)."""
        return (
            remote.log_end_offset >= self.high_watermark
            and remote.log_end_offset >= self.epoch_start_offset
            and not remote.lost_data
            and now_ms >= remote.join_not_before_ms
            and self._eligible(remote)
        )

    def _propose_joiners(self, now_ms: int) -> list[Effect]:
        """After a change is settled: those who came while it was in flight."""
        joiners = tuple(
            remote.replica_id
            for remote in self._remotes.values()
            if remote.replica_id not in self.isr
            and self._caught_up(remote, now_ms)
            and self._may_join(remote, now_ms)
        )
        return self._propose((*self.isr, *joiners)) if joiners else []

    def _propose_without_the_lost(self, now_ms: int) -> list[Effect]:
        if self.in_flight is not None:
            return []
        staying = tuple(
            member
            for member in self.isr
            if (remote := self._remotes.get(member)) is None or not remote.lost_data
        )
        return [] if staying == self.isr else self._propose(staying)

    def _propose(self, members: tuple[int, ...]) -> list[Effect]:
        """The leader always names itself; members of the committed ISR go under the broker epoch of
        the same image, since a restart would have taken them out of it (RULES B1)."""
        if self.node_id not in members:
            members = (self.node_id, *members)
        epochs = []
        for member in members:
            broker = self._brokers.get(member)
            if member == self.node_id or (broker is not None and broker.active):
                # One member on its way out would have the whole change refused.
                epoch = UNKNOWN_BROKER_EPOCH if broker is None else broker.broker_epoch
                epochs.append((member, epoch))
        self.in_flight = IsrProposal(self.leader_epoch, self.partition_epoch, tuple(epochs))
        return [ProposeIsr(self.in_flight)]

    def _counts(self, remote: RemoteReplica, maximal_isr: tuple[int, ...], now_ms: int) -> bool:
        """Does the watermark wait for this replica (RULES D1)?"""
        if remote.replica_id in maximal_isr:
            return True
        if not self._eligible(remote):
            return False
        return self._caught_up(remote, now_ms) or now_ms < remote.doubted_until_ms

    def _advance_high_watermark(self, now_ms: int) -> list[Effect]:
        if self.under_min_isr:
            return []
        lowest = self.synced_offset
        maximal_isr = self.maximal_isr
        for remote in self._remotes.values():
            if remote.log_end_offset < lowest and self._counts(remote, maximal_isr, now_ms):
                lowest = remote.log_end_offset
        if lowest <= self.high_watermark:
            return []
        self.high_watermark = lowest
        return [HighWatermarkAdvanced(lowest)]
