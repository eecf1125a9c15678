"""The quorum as its leader sees it, in the terms of DescribeQuorum (KIP-595, KIP-836, KIP-853).

Offsets are half-open, as Kafka's: `log_end_offset` and `high_watermark` are the index after the
last one. The leader's lag is of the log; an observer holds committed entries only, and is caught up
when it has all of these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from uuid import UUID

from ..metadata.controller import ControllerAnswer
from ..metadata.image import ClusterImage
from ..metadata.listeners import INTERNODE_LISTENER
from ..raftlog import RaftStatus, Role
from ..seam import Clock
from ..wire import ErrorCode
from ..wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
)
from .addresses import Address

METADATA_TOPIC = "__cluster_metadata"
"""Kafka's name for the quorum's log; there is no topic of this name here."""

NEVER = -1
UNKNOWN_OFFSET = -1
NO_DIRECTORY = UUID(int=0)

FORGOTTEN_AFTER_S = 300.0
"""A silent observer is no longer shown (as in Kafka)."""

Topic = DescribeQuorumResponse.TopicData
Partition = DescribeQuorumResponse.TopicData.PartitionData


class QuorumView:
    """Answers on the node that leads; everywhere else says that it does not."""

    def __init__(
        self,
        *,
        node_id: int,
        directory_id: UUID,
        voters: Mapping[int, Address],
        status: Callable[[], RaftStatus],
        image: Callable[[], ClusterImage],
        active: Callable[[], bool],
        clock: Clock,
    ) -> None:
        """`active`: whether this node's controller is in office (RULES A4)."""
        self._node_id = node_id
        self._directory_id = directory_id
        self._voters = voters
        self._status = status
        self._image = image
        self._active = active
        self._clock = clock

    async def describe_quorum(
        self, request: DescribeQuorumRequest, version: int, deadline: float
    ) -> ControllerAnswer[DescribeQuorumResponse]:
        """Versions 0-2; 1 added the times, 2 directory ids, addresses and messages.

        Errors: NOT_CONTROLLER; UNKNOWN_TOPIC_OR_PARTITION for anything but the one partition.
        """
        status = self._status()
        if status.role is not Role.LEADER or not self._active():
            refused = DescribeQuorumResponse(error_code=ErrorCode.NOT_CONTROLLER)
            return ControllerAnswer(refused, 0)
        topics = [
            Topic(
                topic_name=topic.topic_name,
                partitions=[
                    self._partition(topic.topic_name, partition.partition_index, status)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return ControllerAnswer(DescribeQuorumResponse(topics=topics, nodes=self._nodes()), 0)

    def _partition(self, topic: str, partition: int, status: RaftStatus) -> Partition:
        if (topic, partition) != (METADATA_TOPIC, 0):
            return Partition(
                partition_index=partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        return Partition(
            partition_index=partition,
            leader_id=self._node_id,
            leader_epoch=status.term,
            high_watermark=status.commit_index + 1,
            current_voters=[self._voter(voter, status) for voter in self._voters],
            observers=self._observers(status),
        )

    def _voter(self, voter: int, status: RaftStatus) -> ReplicaState:
        pinned = self._image().voter_directories.get(voter)
        if voter == self._node_id:
            now_ms = self._clock.now_ms()
            return ReplicaState(
                replica_id=voter,
                replica_directory_id=pinned or self._directory_id,
                log_end_offset=status.last_index + 1,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
        peer = status.peers[voter]
        # Before it has acknowledged anything to this leader nothing is known of its log.
        return ReplicaState(
            replica_id=voter,
            replica_directory_id=pinned or peer.directory_id or NO_DIRECTORY,
            log_end_offset=peer.match_index + 1 if peer.match_index else UNKNOWN_OFFSET,
            last_fetch_timestamp=self._wall_clock_ms(peer.last_contact),
            last_caught_up_timestamp=self._wall_clock_ms(peer.caught_up_at),
        )

    def _observers(self, status: RaftStatus) -> list[ReplicaState]:
        oldest = asyncio.get_running_loop().time() - FORGOTTEN_AFTER_S
        return [
            ReplicaState(
                replica_id=node_id,
                replica_directory_id=seen.directory_id,
                log_end_offset=seen.match_index + 1,
                last_fetch_timestamp=self._wall_clock_ms(seen.last_contact),
                last_caught_up_timestamp=self._wall_clock_ms(seen.caught_up_at),
            )
            for node_id, seen in status.observers.items()
            if seen.last_contact > oldest
        ]

    def _nodes(self) -> list[DescribeQuorumResponse.Node]:
        return [
            DescribeQuorumResponse.Node(
                node_id=voter,
                listeners=[
                    DescribeQuorumResponse.Node.Listener(
                        name=INTERNODE_LISTENER, host=at.host, port=at.port
                    )
                ],
            )
            for voter, at in self._voters.items()
        ]

    def _wall_clock_ms(self, loop_time: float | None) -> int:
        """A time of the loop as people write it; what was never is -1."""
        if loop_time is None:
            return NEVER
        ago_s = asyncio.get_running_loop().time() - loop_time
        return self._clock.now_ms() - round(1_000 * ago_s)


def fit_to(response: DescribeQuorumResponse, version: int) -> DescribeQuorumResponse:
    """Leave out what a version cannot carry."""
    if version < 2:
        response.nodes = []
        for topic in response.topics:
            for partition in topic.partitions:
                for replica in (*partition.current_voters, *partition.observers):
                    replica.replica_directory_id = NO_DIRECTORY
    return response
