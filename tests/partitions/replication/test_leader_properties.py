"""`LeaderState` against replicas, a network and a controller that behave as badly as they may.

One leader epoch. The controller is the real state machine of the metadata; requests and answers
are lost, late and doubled; replicas crash, lose what was not synced, lose their disks, fall silent.
After every step, whoever the controller might elect holds all that the leader calls committed.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from logboat.metadata.commands import AlterPartition, IsrChange, IsrMember
from logboat.metadata.image import NO_LEADER, ClusterImage, PartitionImage
from logboat.partitions.isr_proposal import IsrProposal, ProposalVerdict, verdict_on
from logboat.partitions.leader import Effect, HighWatermarkAdvanced, LeaderState, ProposeIsr
from logboat.wire import ErrorCode
from tests.metadata.cluster_builder import Cluster

LEADER = 1
FOLLOWERS = (2, 3)
LAG_MS = 1_000


@dataclass
class Replica:
    """What one follower really has; its offsets are those of the leader's log."""

    broker_epoch: int
    appended: int = 0
    synced: int = 0


@dataclass(frozen=True)
class SentFetch:
    replica_id: int
    broker_epoch: int
    offset: int


@dataclass
class Sending:
    """A proposal on its way to the controller, perhaps in several copies."""

    proposal: IsrProposal
    uncertain: bool = False
    sent_ms: int = 0


class LeaderMachine(RuleBasedStateMachine):
    @initialize(min_isr=st.integers(1, 3))
    def begin(self, min_isr: int) -> None:
        self.metadata = Cluster(brokers=3)
        self.metadata.create((1, 2, 3), min_isr=min_isr)
        self.now = 5_000
        self.seen: list[ClusterImage] = [self.metadata.image]
        """Images that the leader has yet to take up; the first is the one it has."""
        self.appended = 0
        self.synced = 0
        image = self.partition
        assert image.leader == LEADER
        self.leader = LeaderState(
            "t-0",
            node_id=LEADER,
            image=image,
            brokers=self.metadata.image.brokers,
            min_insync_replicas=min_isr,
            log_end_offset=0,
            synced_offset=0,
            high_watermark=0,
            lag_max_ms=LAG_MS,
            now_ms=self.now,
        )
        self.replicas = {
            node_id: Replica(self.metadata.broker(node_id).broker_epoch) for node_id in FOLLOWERS
        }
        self.fetches: list[SentFetch] = []
        self.sending: Sending | None = None
        self.late: list[Sending] = []
        self.told = 0
        """The largest watermark that anybody was told."""

    @property
    def partition(self) -> PartitionImage:
        return self.metadata.partition()

    @property
    def deposed(self) -> bool:
        return self.partition.leader != LEADER

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, HighWatermarkAdvanced):
                assert effect.high_watermark > self.told
                self.told = effect.high_watermark
            elif isinstance(effect, ProposeIsr):
                self.sending = Sending(effect.proposal)

    def note_image(self) -> None:
        if self.metadata.image is not self.seen[-1]:
            self.seen.append(self.metadata.image)

    # The leader.

    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        self.appended += count
        self.leader.on_appended(self.appended)

    @rule()
    def sync(self) -> None:
        self.synced = self.appended
        self.carry_out(self.leader.on_synced(self.synced, self.now))

    @rule(milliseconds=st.sampled_from([1, LAG_MS // 2, LAG_MS + 1]))
    def pass_time(self, milliseconds: int) -> None:
        self.now += milliseconds
        # What TCP has not delivered in a lag time is not delivered at all.
        self.late = [copy for copy in self.late if self.now - copy.sent_ms < LAG_MS]

    @rule()
    def tick(self) -> None:
        self.carry_out(self.leader.on_tick(self.now))

    @precondition(lambda self: len(self.seen) > 1)
    @rule(count=st.integers(1, 3))
    def take_up_images(self, count: int) -> None:
        for _ in range(min(count, len(self.seen) - 1)):
            del self.seen[0]
            image = self.seen[0].partition("t", 0)
            assert image is not None
            if image.leader_epoch != self.leader.leader_epoch:
                self.seen = self.seen[-1:]
                return
            topic = self.seen[0].topics["t"]
            self.carry_out(
                self.leader.on_image(
                    image, self.seen[0].brokers, topic.min_insync_replicas, self.now
                )
            )

    # Followers.

    @rule(replica_id=st.sampled_from(FOLLOWERS))
    def send_fetch(self, replica_id: int) -> None:
        replica = self.replicas[replica_id]
        self.fetches.append(SentFetch(replica_id, replica.broker_epoch, replica.synced))
        del self.fetches[:-4]

    @precondition(lambda self: self.fetches)
    @rule(data=st.data())
    def deliver_fetch(self, data: st.DataObject) -> None:
        """Perhaps late, perhaps out of order, perhaps of a process that is dead by now."""
        fetch = self.fetches.pop(data.draw(st.integers(0, len(self.fetches) - 1)))
        admitted = self.leader.check_fetcher(fetch.replica_id, fetch.broker_epoch)
        if admitted is not ErrorCode.NONE:
            return
        self.carry_out(
            self.leader.on_fetch(
                replica_id=fetch.replica_id,
                broker_epoch=fetch.broker_epoch,
                fetch_offset=fetch.offset,
                now_ms=self.now,
            )
        )
        replica = self.replicas[fetch.replica_id]
        if replica.broker_epoch == fetch.broker_epoch and replica.appended == fetch.offset:
            replica.appended = self.appended

    @rule(replica_id=st.sampled_from(FOLLOWERS))
    def fetch_at_once(self, replica_id: int) -> None:
        """The usual course, so that runs get anywhere: sync, ask, append."""
        replica = self.replicas[replica_id]
        replica.synced = replica.appended
        self.fetches.append(SentFetch(replica_id, replica.broker_epoch, replica.synced))
        fetch = self.fetches.pop()
        if self.leader.check_fetcher(replica_id, fetch.broker_epoch) is ErrorCode.NONE:
            self.carry_out(
                self.leader.on_fetch(
                    replica_id=replica_id,
                    broker_epoch=fetch.broker_epoch,
                    fetch_offset=fetch.offset,
                    now_ms=self.now,
                )
            )
            replica.appended = self.appended

    @rule(replica_id=st.sampled_from(FOLLOWERS), new_disk=st.booleans())
    def restart(self, replica_id: int, new_disk: bool) -> None:
        replica = self.replicas[replica_id]
        if new_disk:
            if not self.metadata.broker(replica_id).fenced:
                self.metadata.fence(replica_id)
                self.note_image()
            replica.synced = 0
            self.metadata.incarnations += 1
            directory = 5_000 + self.metadata.incarnations
            result = self.metadata.register(replica_id, clean=False, directory=directory)
        else:
            old = self.metadata.broker(replica_id).directory_id
            result = self.metadata.register(replica_id, clean=False, directory=old.int)
        assert result.error == ErrorCode.NONE
        replica.appended = replica.synced
        replica.broker_epoch = self.metadata.broker(replica_id).broker_epoch
        self.note_image()

    @rule(replica_id=st.sampled_from(FOLLOWERS))
    def fence(self, replica_id: int) -> None:
        if not self.metadata.broker(replica_id).fenced:
            self.metadata.fence(replica_id)
            self.note_image()

    @rule(replica_id=st.sampled_from(FOLLOWERS))
    def unfence(self, replica_id: int) -> None:
        if self.metadata.broker(replica_id).fenced:
            self.metadata.unfence(replica_id)
            self.note_image()

    # The controller.

    def apply(self, proposal: IsrProposal) -> ErrorCode:
        topic = self.metadata.image.topics["t"]
        members = tuple(IsrMember(node_id, epoch) for node_id, epoch in proposal.isr)
        change = IsrChange(
            topic.topic_id, 0, proposal.leader_epoch, proposal.partition_epoch, members
        )
        epoch = self.metadata.broker(LEADER).broker_epoch
        command = AlterPartition(self.metadata.epoch, LEADER, epoch, (change,))
        item = self.metadata.must(command).items[0]
        self.note_image()
        return ErrorCode(item.error)

    @precondition(lambda self: self.sending is not None)
    @rule(carried_out=st.booleans(), answered=st.booleans(), late=st.booleans())
    def send_proposal(self, carried_out: bool, answered: bool, late: bool) -> None:
        sending = self.sending
        assert sending is not None
        if late:
            self.late.append(Sending(sending.proposal, sent_ms=self.now))
            sending.uncertain = True
            return
        if not carried_out:
            sending.uncertain = True
            return
        error = self.apply(sending.proposal)
        verdict = verdict_on(error)
        if not answered or verdict is ProposalVerdict.RETRY:
            sending.uncertain = True
            return
        self.sending = None
        self.carry_out(
            self.leader.on_proposal_answered(
                sending.proposal, verdict, uncertain=sending.uncertain, now_ms=self.now
            )
        )

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def deliver_late_copy(self, data: st.DataObject) -> None:
        copy = self.late.pop(data.draw(st.integers(0, len(self.late) - 1)))
        self.apply(copy.proposal)

    # What must always hold.

    @invariant()
    def everybody_electable_holds_what_is_committed(self) -> None:
        partition = self.partition
        for node_id in (*partition.isr, *partition.elr):
            held = self.synced if node_id == LEADER else self.replicas[node_id].synced
            assert held >= self.leader.high_watermark, (node_id, held, partition)

    @invariant()
    def the_watermark_is_synced_here_and_never_goes_back(self) -> None:
        assert self.told <= self.synced
        assert self.leader.high_watermark == self.told

    @invariant()
    def the_leader_knows_of_everybody_in_sync(self) -> None:
        """Its maximal ISR covers the controller's, as long as it leads."""
        if not self.deposed and self.leader.in_flight is not None:
            assert set(self.partition.isr) <= set(self.leader.maximal_isr) | {LEADER} or (
                len(self.seen) > 1
            )

    @invariant()
    def the_leader_is_in_every_isr_it_proposes(self) -> None:
        if self.leader.in_flight is not None:
            assert LEADER in self.leader.in_flight.members
        assert self.partition.leader in (LEADER, NO_LEADER)


TestLeader = LeaderMachine.TestCase
TestLeader.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, derandomize=True
)
