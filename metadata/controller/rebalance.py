"""Leaderships go back to the preferred replicas by themselves (`auto.leader.rebalance.enable`).

After a restart a broker leads nothing; it joins its ISRs again and stays a follower. Now and then
the active controller hands back what it may: a preferred leader that is alive and in sync takes
over in the same clean way as on request (KIP-183), so no `acks=all` record is at stake.
"""

from __future__ import annotations

import asyncio

from ...wire import ErrorCode
from ..commands import ElectionType, ElectLeaders, PartitionId
from ..image import ClusterImage, TopicImage
from .office import Office

MAX_ELECTIONS = 1_000
"""Per command, as in Kafka: a broker with many partitions gets them back in steps."""

PAUSE_BETWEEN_STEPS = 0.5
"""Seconds. Clients of one step have found their new leaders before the next begins."""


async def rebalance_leaders(office: Office, interval: float) -> None:
    """Runs as long as this node is in office."""
    more = False
    while True:
        await asyncio.sleep(PAUSE_BETWEEN_STEPS if more else interval)
        more = await _hand_back(office)


async def _hand_back(office: Office) -> bool:
    """Whether there may be more to hand back."""
    wanted = await _away_from_preferred(office.image)
    if not wanted:
        return False
    decided = await office.propose(
        lambda epoch: ElectLeaders(epoch, ElectionType.PREFERRED, wanted), office.own_deadline()
    )
    elected = sum(item.error == ErrorCode.NONE for item in decided.result.items)
    return elected > 0 and len(wanted) == MAX_ELECTIONS


async def _away_from_preferred(image: ClusterImage) -> tuple[PartitionId, ...]:
    """Partitions whose preferred leader does not lead and could; by topic name, at most
    MAX_ELECTIONS."""
    active = [node_id for node_id, broker in image.brokers.items() if broker.active]
    found: list[PartitionId] = []
    for _, topic in sorted(image.topics.items()):
        found += _of_topic(topic, active)
        if len(found) >= MAX_ELECTIONS:
            break
        await asyncio.sleep(0)  # Thousands of partitions are no single callback's work (F1).
    return tuple(found[:MAX_ELECTIONS])


def _of_topic(topic: TopicImage, active: list[int]) -> list[PartitionId]:
    return [
        PartitionId(topic.topic_id, partition.partition)
        for partition in topic.partitions
        if partition.leader != (preferred := partition.replicas[0])
        and preferred in partition.isr
        and preferred in active
    ]
