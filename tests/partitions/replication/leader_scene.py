"""A leader's rules with a cluster around them that a test bends as it likes."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from logboat.metadata.image import BrokerImage, Endpoint, PartitionImage
from logboat.partitions.isr_proposal import IsrProposal, ProposalVerdict
from logboat.partitions.leader import (
    Effect,
    HighWatermarkAdvanced,
    LeaderState,
    ProposeIsr,
    ReplicaLostData,
)

LAG_MS = 1_000
LEADER = 1


def broker(node_id: int, epoch: int, *, fenced: bool = False, leaving: bool = False) -> BrokerImage:
    return BrokerImage(
        node_id=node_id,
        broker_epoch=epoch,
        incarnation_id=UUID(int=epoch),
        directory_id=UUID(int=node_id),
        kafka=Endpoint("host", 9092),
        internode=Endpoint("host", 9093),
        http=None,
        rack=None,
        fenced=fenced,
        in_controlled_shutdown=leaving,
    )


class LeaderScene:
    """Node 1 leads epoch 5 of a partition; broker epochs are 101, 102, ..."""

    def __init__(
        self,
        *,
        replicas: tuple[int, ...] = (1, 2, 3),
        isr: tuple[int, ...] | None = None,
        min_isr: int = 2,
        end: int = 0,
        high_watermark: int = 0,
    ) -> None:
        self.now = 10_000
        self.min_isr = min_isr
        self.image = PartitionImage(
            partition=0,
            replicas=replicas,
            isr=replicas if isr is None else isr,
            leader=LEADER,
            leader_epoch=5,
            partition_epoch=40,
        )
        self.brokers = {node_id: broker(node_id, 100 + node_id) for node_id in replicas}
        self.leader = LeaderState(
            "t-0",
            node_id=LEADER,
            image=self.image,
            brokers=self.brokers,
            min_insync_replicas=min_isr,
            log_end_offset=end,
            synced_offset=end,
            high_watermark=high_watermark,
            lag_max_ms=LAG_MS,
            now_ms=self.now,
        )
        self.effects: list[Effect] = []

    @property
    def high_watermark(self) -> int:
        return self.leader.high_watermark

    @property
    def proposals(self) -> list[IsrProposal]:
        return [effect.proposal for effect in self.effects if isinstance(effect, ProposeIsr)]

    @property
    def advances(self) -> list[int]:
        return [e.high_watermark for e in self.effects if isinstance(e, HighWatermarkAdvanced)]

    @property
    def losses(self) -> list[ReplicaLostData]:
        return [effect for effect in self.effects if isinstance(effect, ReplicaLostData)]

    def append(self, end: int) -> None:
        self.leader.on_appended(end)

    def sync(self, end: int) -> None:
        self.effects += self.leader.on_synced(end, self.now)

    def write(self, end: int) -> None:
        self.append(end)
        self.sync(end)

    def fetch(self, replica_id: int, offset: int, *, epoch: int | None = None) -> None:
        self.effects += self.leader.on_fetch(
            replica_id=replica_id,
            broker_epoch=100 + replica_id if epoch is None else epoch,
            fetch_offset=offset,
            now_ms=self.now,
        )

    def pass_time(self, milliseconds: int) -> None:
        self.now += milliseconds

    def tick(self) -> None:
        self.effects += self.leader.on_tick(self.now)

    def answer(self, verdict: ProposalVerdict, *, uncertain: bool = False) -> None:
        assert self.leader.in_flight is not None
        self.effects += self.leader.on_proposal_answered(
            self.leader.in_flight, verdict, uncertain=uncertain, now_ms=self.now
        )

    def commit(self, *isr: int) -> None:
        """The image shows another ISR."""
        self.image = replace(self.image, isr=isr, partition_epoch=self.image.partition_epoch + 1)
        self.hear()

    def set_broker(self, image: BrokerImage) -> None:
        self.brokers = {**self.brokers, image.node_id: image}
        self.hear()

    def hear(self) -> None:
        self.effects += self.leader.on_image(self.image, self.brokers, self.min_isr, self.now)
