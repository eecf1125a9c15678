"""Taking and losing office, and broker sessions (RULES A4, B2-B4, B6)."""

from __future__ import annotations

import asyncio
from uuid import UUID

from logboat.metadata.commands import FenceBroker, NewController, PinVoterDirectory
from logboat.metadata.image import NO_LEADER
from logboat.raftlog import Role
from logboat.wire import ErrorCode
from logboat.wire.messages.add_raft_voter import AddRaftVoterRequest
from tests.metadata.fake_quorum import Node
from tests.metadata.virtual_loop import VirtualLoop, run


def test_a4_controller_is_active_only_after_its_command_is_applied() -> None:
    async def scenario() -> None:
        node = Node()
        node.controller.on_role(Role.LEADER, 1, 1)
        assert not node.controller.active
        assert (await node.register(1)).error_code == ErrorCode.NOT_CONTROLLER
        await node.lead()
        assert node.controller.epoch == node.image.controller_epoch
        assert (await node.register(1)).error_code == ErrorCode.NONE
        await node.controller.stop()

    run(scenario())


def test_a4_unknown_outcome_of_taking_office_is_asked_again() -> None:
    async def scenario() -> None:
        for fault in ("drop", "lose_answers"):
            node = Node()
            setattr(node.quorum, fault, 1)
            await node.lead()
            assert node.controller.epoch == node.image.controller_epoch
            await node.controller.stop()

    run(scenario())


def test_a4_role_change_ends_office_and_sessions() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(1, 2)
        node.lose()
        assert not node.controller.active
        assert (await node.heartbeat(1)).error_code == ErrorCode.NOT_CONTROLLER
        assert (await node.create("t"))[0].error_code == ErrorCode.NOT_CONTROLLER
        before = len(node.quorum.log)
        await asyncio.sleep(5)
        assert len(node.quorum.log) == before
        await node.controller.stop()

    run(scenario())


def test_a4_command_made_before_another_controller_took_office_is_refused() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(1, 2, 3)
        node.quorum.before_commit.append(node.other_leader())
        assert (await node.create("t"))[0].error_code == ErrorCode.NOT_CONTROLLER
        assert dict(node.image.topics) == {}
        assert not node.controller.active
        await node.controller.stop()

    run(scenario())


def test_a4_leader_whose_term_is_overtaken_before_its_command_never_becomes_active() -> None:
    async def scenario() -> None:
        node = Node()
        node.quorum.before_commit.append(NewController(2, 9))
        node.controller.on_role(Role.LEADER, 1, 1)
        await asyncio.sleep(1)
        assert not node.controller.active
        await node.controller.stop()

    run(scenario())


def test_b4_silent_broker_is_fenced_and_its_partitions_get_other_leaders() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(1, 2, 3)
        await node.create("t", partitions=3)
        await node.keep_alive(1, 3, seconds=0.8)
        assert not node.broker(2).fenced
        await node.keep_alive(1, 3, seconds=0.6)
        assert node.broker(2).fenced
        assert not node.broker(1).fenced
        leaders = {partition.leader for partition in node.image.topics["t"].partitions}
        assert 2 not in leaders
        assert NO_LEADER not in leaders
        await node.controller.stop()

    run(scenario())


def test_b4_fencing_of_unknown_outcome_is_asked_again() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(1)
        node.quorum.drop = 2
        await asyncio.sleep(3)
        assert node.broker(1).fenced
        await node.controller.stop()

    run(scenario())


def test_b4_refused_connection_fences_at_once() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(1, 2)
        node.controller.connection_refused(2)
        await asyncio.sleep(0.01)
        assert node.broker(2).fenced
        assert not node.broker(1).fenced
        node.controller.connection_refused(9)
        assert not (await node.heartbeat(2)).is_fenced
        await node.controller.stop()

    run(scenario())


def test_b4_silence_while_the_controller_itself_stood_still_fences_nobody() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(1, 2)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.stall(30)
        await asyncio.sleep(0.01)
        assert not node.broker(1).fenced
        # What was left of the session before the stall is left after it.
        await node.keep_alive(1, seconds=1.2)
        assert not node.broker(1).fenced
        assert node.broker(2).fenced
        await node.controller.stop()

    run(scenario())


def test_b3_voter_whose_pin_did_not_come_through_is_pinned_by_its_next_heartbeat() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        node.quorum.drop_kinds = (PinVoterDirectory,)
        await node.register(2)
        assert dict(node.image.voter_directories) == {}
        node.quorum.drop_kinds = ()
        await node.heartbeat(2)
        assert dict(node.image.voter_directories) == {2: UUID(int=2)}
        await node.controller.stop()

    run(scenario())


def test_b4_new_controller_gives_silent_brokers_one_short_session() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(1, 2)
        node.lose()
        await asyncio.sleep(30)
        await node.lead()
        # Two heartbeats and an election: 0.7 s.
        await node.keep_alive(1, seconds=0.59)
        assert not node.broker(2).fenced
        await node.keep_alive(1, seconds=0.4)
        assert node.broker(2).fenced
        assert not node.broker(1).fenced
        await node.controller.stop()

    run(scenario())


def test_b2_restart_in_the_same_directory_supersedes_a_living_session() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(1)
        old = node.broker(1).broker_epoch
        again = await node.register(1, incarnation=2)
        assert again.error_code == ErrorCode.NONE
        assert again.broker_epoch > old
        stale = await node.heartbeat(1, epoch=old)
        assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
        await node.controller.stop()

    run(scenario())


def test_b2_another_directory_is_refused_while_the_session_lives_even_if_fenced() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        assert (await node.register(7)).error_code == ErrorCode.NONE
        assert node.broker(7).fenced
        other = await node.register(7, incarnation=2, directory=70)
        assert other.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        await asyncio.sleep(1.5)
        other = await node.register(7, incarnation=2, directory=70)
        assert other.error_code == ErrorCode.NONE
        await node.controller.stop()

    run(scenario())


def test_b3_registering_voter_is_pinned_and_the_quorum_is_told() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.register(2)
        await node.register(7)
        assert dict(node.image.voter_directories) == {2: UUID(int=2)}
        assert node.quorum.pins == node.image.voter_directories
        await node.controller.stop()

    run(scenario())


def test_b3_voter_with_an_emptied_disk_comes_back_only_after_its_pin_is_moved() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(2)
        await asyncio.sleep(2)
        wiped = await node.register(2, incarnation=2, directory=20)
        assert wiped.error_code == ErrorCode.INVALID_REGISTRATION
        assert await replace_voter(node, 2, 20) == ErrorCode.NONE
        assert await replace_voter(node, 2, 20) == ErrorCode.NONE
        wiped = await node.register(2, incarnation=2, directory=20)
        assert wiped.error_code == ErrorCode.NONE
        assert any(isinstance(command, PinVoterDirectory) for command in node.quorum.log)
        await node.controller.stop()

    run(scenario())


async def replace_voter(node: Node, node_id: int, directory: int, **other: object) -> ErrorCode:
    request = AddRaftVoterRequest(
        cluster_id="c", voter_id=node_id, voter_directory_id=UUID(int=directory)
    )
    for name, value in other.items():
        setattr(request, name, value)
    answer = await node.controller.replace_voter(request, 1, node.deadline())
    return ErrorCode(answer.response.error_code)


def test_b3_only_a_dead_voter_of_this_cluster_gets_another_directory() -> None:
    async def scenario() -> None:
        node = Node()
        assert await replace_voter(node, 2, 20) == ErrorCode.NOT_CONTROLLER
        await node.lead()
        await node.join(2)
        assert await replace_voter(node, 2, 20) == ErrorCode.DUPLICATE_VOTER
        assert await replace_voter(node, 7, 20) == ErrorCode.VOTER_NOT_FOUND
        assert await replace_voter(node, 2, 0) == ErrorCode.INVALID_REQUEST
        wrong = await replace_voter(node, 2, 20, cluster_id="other")
        assert wrong == ErrorCode.INCONSISTENT_CLUSTER_ID
        assert node.image.voter_directories[2] == UUID(int=2)
        await asyncio.sleep(2)
        # Somebody else moves the pin at the same moment.
        other = PinVoterDirectory(node.image.controller_epoch, 2, UUID(int=21), UUID(int=2))
        node.quorum.before_commit.append(other)
        assert await replace_voter(node, 2, 20) == ErrorCode.INVALID_UPDATE_VERSION
        await node.controller.stop()

    run(scenario())


def test_b3_a_controller_that_may_have_been_replaced_refuses_no_voter_for_good() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(2)
        await asyncio.sleep(2)
        node.quorum.leads = False
        unsure = await node.register(2, incarnation=2, directory=20)
        assert unsure.error_code == ErrorCode.NOT_CONTROLLER
        node.quorum.leads = True
        # The pin that admits it was on its way to this image.
        epoch = node.image.controller_epoch
        node.quorum.before_commit.append(
            PinVoterDirectory(epoch, 2, UUID(int=20), replaces=UUID(int=2))
        )
        late = await node.register(2, incarnation=2, directory=20)
        assert late.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        assert (await node.register(2, incarnation=2, directory=20)).error_code == ErrorCode.NONE
        await node.controller.stop()

    run(scenario())


def test_registration_is_refused_with_a_wrong_cluster_or_without_addresses() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        wrong = await node.register(1, cluster_id="other")
        assert wrong.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
        for refused in (
            await node.register(1, listeners=[]),
            await node.register(1, log_dirs=[]),
        ):
            assert refused.error_code == ErrorCode.INVALID_REGISTRATION
        assert dict(node.image.brokers) == {}
        await node.controller.stop()

    run(scenario())


def test_broker_is_unfenced_when_it_has_read_its_own_registration() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.register(1)
        epoch = node.broker(1).broker_epoch
        early = await node.heartbeat(1, read=epoch - 1)
        assert (early.is_fenced, early.is_caught_up) == (True, False)
        assert (await node.heartbeat(1, fence=True)).is_fenced
        ready = await node.heartbeat(1, read=epoch)
        assert (ready.is_fenced, ready.is_caught_up) == (False, True)
        await node.controller.stop()

    run(scenario())


def test_unregistered_broker_is_told_so() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        assert (await node.heartbeat(1)).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
        await node.controller.stop()

    run(scenario())


def test_b6_shutdown_is_granted_when_all_others_have_read_that_it_leads_nothing() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(1, 2, 3)
        await node.create("t", partitions=3)
        before = node.image.index
        waiting = await node.heartbeat(1, shut_down=True)
        assert not waiting.should_shut_down
        assert node.broker(1).in_controlled_shutdown
        assert all(partition.leader != 1 for partition in node.image.topics["t"].partitions)
        await node.heartbeat(2, read=before)
        await node.heartbeat(3)
        assert not (await node.heartbeat(1, shut_down=True)).should_shut_down
        await node.heartbeat(2)
        granted = await node.heartbeat(1, shut_down=True)
        assert granted.should_shut_down
        assert node.broker(1).fenced
        await node.controller.stop()

    run(scenario())


def test_broker_that_leads_nothing_may_go_at_once_and_is_fenced_first() -> None:
    async def scenario() -> None:
        node = Node()
        await node.lead()
        await node.join(1, 2)
        assert (await node.heartbeat(1, shut_down=True)).should_shut_down
        assert node.broker(1).fenced
        assert isinstance(node.quorum.log[-1], FenceBroker)
        await node.controller.stop()

    run(scenario())
