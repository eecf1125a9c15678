"""AlterPartition, ElectLeaders and AllocateProducerIds at the controller."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from logboat.metadata.commands import ElectLeaders
from logboat.metadata.controller import ControllerAnswer, leaders
from logboat.metadata.controller.settings import ControllerSettings
from logboat.metadata.image import LOST_DIRECTORY
from logboat.wire import ErrorCode
from logboat.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from logboat.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from logboat.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from logboat.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from logboat.wire.messages.elect_leaders import ElectLeadersRequest
from tests.metadata.fake_quorum import Node
from tests.metadata.virtual_loop import run

PartitionData = AlterPartitionRequest.TopicData.PartitionData


async def started(partitions: int = 1) -> Node:
    node = Node()
    await node.lead()
    await node.join(1, 2, 3)
    await node.create("t", partitions=partitions)
    return node


async def alter(
    node: Node, version: int, *new_isr: int, partition_epoch: int | None = None
) -> ControllerAnswer[AlterPartitionResponse]:
    partition = node.partition()
    data = PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch if partition_epoch is None else partition_epoch,
    )
    if version >= 3:
        data.new_isr_with_epochs = [
            PartitionData.BrokerState(broker_id=n, broker_epoch=node.broker(n).broker_epoch)
            for n in new_isr
        ]
    else:
        data.new_isr = list(new_isr)
    request = AlterPartitionRequest(
        broker_id=partition.leader,
        broker_epoch=node.broker(partition.leader).broker_epoch,
        topics=[
            AlterPartitionRequest.TopicData(
                topic_id=node.image.topics["t"].topic_id, partitions=[data]
            )
        ],
    )
    again = AlterPartitionRequest.decode(b"".join(request.encode(version)), version)
    return await node.controller.alter_partition(again, version, node.deadline())


def test_leader_changes_its_isr_and_is_told_the_new_state() -> None:
    async def scenario() -> None:
        node = await started()
        leader = node.partition().leader
        for version in (3, 2):
            other = next(n for n in (1, 2, 3) if n != leader)
            answer = await alter(node, version, leader, other)
            told = answer.response.topics[0].partitions[0]
            assert (told.error_code, told.leader_id) == (0, leader)
            assert tuple(told.isr) == node.partition().isr
            assert told.partition_epoch == node.partition().partition_epoch
            assert answer.index == node.image.index
            await alter(node, version, 1, 2, 3)
        await node.controller.stop()

    run(scenario())


def test_d2_leader_that_asks_again_after_an_unknown_outcome_is_told_by_the_epoch() -> None:
    async def scenario() -> None:
        node = await started()
        epoch = node.partition().partition_epoch
        node.quorum.lose_answers = 1
        lost = await alter(node, 3, node.partition().leader)
        assert (lost.response.error_code, lost.index) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        again = await alter(node, 3, node.partition().leader, partition_epoch=epoch)
        assert again.response.topics[0].partitions[0].error_code == (
            ErrorCode.INVALID_UPDATE_VERSION
        )
        await node.controller.stop()

    run(scenario())


def test_alter_partition_is_refused_by_a_node_that_is_not_the_controller() -> None:
    async def scenario() -> None:
        node = await started()
        node.lose()
        answer = await alter(node, 3, node.partition().leader)
        assert answer.response.error_code == ErrorCode.NOT_CONTROLLER
        await node.controller.stop()

    run(scenario())


async def reassign(
    node: Node, wanted: dict[str, dict[int, list[int] | None]]
) -> dict[tuple[str, int], ErrorCode]:
    request = AlterPartitionReassignmentsRequest(
        topics=[
            AlterPartitionReassignmentsRequest.ReassignableTopic(
                name=name,
                partitions=[
                    AlterPartitionReassignmentsRequest.ReassignablePartition(
                        partition_index=number, replicas=replicas
                    )
                    for number, replicas in partitions.items()
                ],
            )
            for name, partitions in wanted.items()
        ]
    )
    answer = await node.controller.alter_partition_reassignments(request, 1, node.deadline())
    assert answer.response.error_code == ErrorCode.NONE
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.response.responses
        for partition in topic.partitions
    }


def test_replicas_change_their_order_and_nothing_else() -> None:
    async def scenario() -> None:
        node = await started(partitions=2)
        before = node.image.topics["t"].partitions
        order = list(reversed(before[0].replicas))
        wanted: dict[str, dict[int, list[int] | None]]
        wanted = {"t": {0: order, 1: [1, 2], 7: [1, 2, 3]}, "no": {0: [1]}}
        assert await reassign(node, wanted) == {
            ("t", 0): ErrorCode.NONE,
            ("t", 1): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("no", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        after = node.image.topics["t"].partitions
        assert list(after[0].replicas) == order
        assert after[0].leader == before[0].leader
        assert after[1] == before[1]
        # None would end a reassignment that is under way.
        assert await reassign(node, {"t": {0: None}}) == {
            ("t", 0): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        }
        await node.controller.stop()

    run(scenario())


async def elect(node: Node, kind: int, **named: list[int]) -> tuple[int, dict[str, list[int]]]:
    partitions = [
        ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers)
        for topic, numbers in named.items()
    ]
    request = ElectLeadersRequest(
        election_type=kind, topic_partitions=partitions if named else None
    )
    answer = await node.controller.elect_leaders(request, 2, node.deadline())
    answer.response.encode(2)
    return answer.response.error_code, {
        result.topic: [partition.error_code for partition in result.partition_result]
        for result in answer.response.replica_election_results
    }


def test_preferred_leaders_are_elected_where_they_do_not_lead() -> None:
    async def scenario() -> None:
        node = await started()
        preferred = node.partition().replicas[0]
        node.controller.connection_refused(preferred)
        await node.keep_alive(*{1, 2, 3} - {preferred}, seconds=0.1)
        await node.heartbeat(preferred)
        await alter(node, 3, 1, 2, 3)
        assert node.partition().leader != preferred
        assert await elect(node, 0) == (0, {"t": [0]})
        assert node.partition().leader == preferred
        assert await elect(node, 0) == (0, {})
        assert await elect(node, 0, t=[0, 9], no=[0]) == (
            0,
            {
                "t": [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
                "no": [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
            },
        )
        assert (await elect(node, 7))[0] == ErrorCode.INVALID_REQUEST
        await node.controller.stop()

    run(scenario())


def test_f1_elections_of_many_partitions_are_decided_by_many_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leaders, "MAX_ELECTIONS", 2)

    async def scenario() -> None:
        node = await started()
        numbers = [0, 0, 0, 9, 0, 0]
        commands = len(node.quorum.log)
        assert await elect(node, 0, t=numbers) == (
            0,
            {
                "t": [
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    if number == 9
                    else ErrorCode.ELECTION_NOT_NEEDED
                    for number in numbers
                ]
            },
        )
        made = [command for command in node.quorum.log[commands:] if type(command) is ElectLeaders]
        assert [len(command.partitions) for command in made] == [2, 2, 1]
        node.quorum.drop_kinds = (ElectLeaders,)
        assert await elect(node, 0, t=[0]) == (ErrorCode.REQUEST_TIMED_OUT, {})
        await node.controller.stop()

    run(scenario())


def test_producer_id_blocks_are_handed_out_once() -> None:
    async def scenario() -> None:
        node = await started()
        for node_id, first in ((1, 0), (2, 1000), (1, 2000)):
            request = AllocateProducerIdsRequest(
                broker_id=node_id, broker_epoch=node.broker(node_id).broker_epoch
            )
            answer = await node.controller.allocate_producer_ids(request, 0, node.deadline())
            block = answer.response
            assert (block.error_code, block.producer_id_start) == (0, first)
            assert block.producer_id_len == 1000
        stale = AllocateProducerIdsRequest(broker_id=1, broker_epoch=0)
        answer = await node.controller.allocate_producer_ids(stale, 0, node.deadline())
        assert answer.response.error_code == ErrorCode.STALE_BROKER_EPOCH
        await node.controller.stop()

    run(scenario())


async def restarted(node: Node, node_id: int) -> None:
    """It comes back clean, leads nothing, and its partitions' leaders take it into the ISR."""
    await node.register(
        node_id, incarnation=2, previous_broker_epoch=node.broker(node_id).broker_epoch
    )
    await node.heartbeat(node_id)
    await alter(node, 3, *node.partition().replicas)


def test_d8_leadership_goes_back_to_the_preferred_leader_by_itself() -> None:
    async def scenario() -> None:
        node = Node(ControllerSettings(session_timeout=1e6, rebalance_interval=300.0))
        await node.lead()
        await node.join(1, 2, 3)
        await node.create("t", partitions=1, factor=3)
        preferred = node.partition().replicas[0]
        await restarted(node, preferred)
        assert node.partition().leader != preferred
        await asyncio.sleep(299)
        assert node.partition().leader != preferred
        await asyncio.sleep(2)
        assert node.partition().leader == preferred
        index = node.image.index
        await asyncio.sleep(3_000)
        assert node.image.index == index  # Nothing to do costs no command.

    run(scenario())


def test_d8_preferred_leader_outside_of_the_isr_does_not_lead() -> None:
    async def scenario() -> None:
        node = Node(ControllerSettings(session_timeout=1e6, rebalance_interval=300.0))
        await node.lead()
        await node.join(1, 2, 3)
        await node.create("t", partitions=1, factor=3)
        preferred = node.partition().replicas[0]
        await node.register(preferred, incarnation=2)
        await node.heartbeat(preferred)
        leader, index = node.partition().leader, node.image.index
        await asyncio.sleep(1_000)
        assert (node.partition().leader, node.image.index) == (leader, index)

    run(scenario())


async def report_lost(
    node: Node, node_id: int, *, directory: UUID = LOST_DIRECTORY, partition: int = 0
) -> tuple[ErrorCode, list[ErrorCode]]:
    data = AssignReplicasToDirsRequest.DirectoryData
    topic = data.TopicData(
        topic_id=node.image.topics["t"].topic_id,
        partitions=[data.TopicData.PartitionData(partition_index=partition)],
    )
    request = AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=node.broker(node_id).broker_epoch,
        directories=[data(id=directory, topics=[topic])],
    )
    again = AssignReplicasToDirsRequest.decode(b"".join(request.encode(0)), 0)
    answer = await node.controller.assign_replicas_to_dirs(again, 0, node.deadline())
    items = [
        ErrorCode(item.error_code)
        for told in answer.response.directories
        for about in told.topics
        for item in about.partitions
    ]
    return ErrorCode(answer.response.error_code), items


def test_c1_broker_reports_a_lost_replica() -> None:
    async def scenario() -> None:
        node = await started()
        follower = node.partition().isr[-1]
        assert await report_lost(node, follower) == (ErrorCode.NONE, [ErrorCode.NONE])
        assert follower not in node.partition().isr
        assert await report_lost(node, follower, partition=7) == (
            ErrorCode.NONE,
            [ErrorCode.NOT_LEADER_OR_FOLLOWER],
        )

    run(scenario())


def test_c1_only_the_directory_of_the_lost_may_be_named() -> None:
    async def scenario() -> None:
        node = await started()
        error, items = await report_lost(node, 2, directory=UUID(int=77))
        assert (error, items) == (ErrorCode.INVALID_REQUEST, [])
        node.lose()
        error, items = await report_lost(node, 2)
        assert (error, items) == (ErrorCode.NOT_CONTROLLER, [])

    run(scenario())
