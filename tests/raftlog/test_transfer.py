"""The leadership of the quorum is handed to another voter, and no command suffers from it."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from logboat.raftlog import Applied, NotLeader, NotTransferred, Outcome, Role, Transferred
from logboat.raftlog.guards import ALL_GUARDS, Guard
from logboat.raftlog.messages import Message, TimeoutNow
from tests.raftlog.quorum import WITHIN_S, Quorum, Voter


def now() -> float:
    return asyncio.get_running_loop().time()


def another_than(quorum: Quorum, leader: Voter) -> Voter:
    return next(voter for voter in quorum.voters.values() if voter is not leader)


async def transferred(quorum: Quorum, to: Voter) -> Voter:
    """By whoever leads; in another try when a busy machine held it up for too long."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            leader = await quorum.leader()
            if leader is to:
                return leader
            outcome = await leader.log.transfer(to.node_id)
            if outcome == Transferred(to.node_id):
                return leader


async def test_whoever_is_named_leads_within_less_than_an_election(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        for voter in (*quorum.voters.values(), *quorum.voters.values()):
            await quorum.propose(b"before %d" % voter.node_id)
            await transferred(quorum, voter)
            assert Role.LEADER in [role for role, _, _ in voter.roles]
            await quorum.propose(b"after %d" % voter.node_id)


async def test_commands_under_way_are_applied_once_or_never(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        ended: dict[bytes, Outcome] = {}
        going_on = True

        async def propose_for_ever(voter: Voter, client: int) -> None:
            number = 0
            while going_on:
                number += 1
                command = b"%d-%d-%d" % (voter.node_id, client, number)
                ended[command] = await voter.log.propose(command, now() + WITHIN_S)
                await asyncio.sleep(0)

        await quorum.leader()
        proposing = [
            asyncio.create_task(propose_for_ever(voter, client))
            for voter in quorum.voters.values()
            for client in range(3)
        ]
        for voter in (*quorum.voters.values(), *quorum.voters.values()):
            await transferred(quorum, voter)
        going_on = False
        await asyncio.gather(*proposing)
        await quorum.propose(b"last")
        machines = [voter.machine for voter in quorum.voters.values()]
        await quorum.until(lambda: all(one.commands[-1:] == [b"last"] for one in machines))
        assert machines[0].applied == machines[1].applied == machines[2].applied
        counts = Counter(machines[0].commands)
        assert all(isinstance(one, Applied | NotLeader) for one in ended.values())
        applied = {command for command, one in ended.items() if isinstance(one, Applied)}
        assert len(applied) > 10
        assert counts == Counter([*applied, b"last"])


class Deaf(Guard):
    """Is never told that its election is due."""

    def on_receive(self, peer: int, message: Message) -> Message | None:
        return None if isinstance(message, TimeoutNow) else message


async def test_a_leader_whose_successor_does_not_stand_goes_on(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path), guards=(Deaf, *ALL_GUARDS)) as quorum:
        leader = await quorum.leader()
        follower = another_than(quorum, leader)
        await quorum.propose(b"before")
        term = leader.log.status().term
        transferring = asyncio.create_task(leader.log.transfer(follower.node_id))
        await asyncio.sleep(0)
        held = asyncio.create_task(leader.log.propose(b"held back", now() + WITHIN_S))
        second = await leader.log.transfer(follower.node_id)
        assert second == NotTransferred(f"it is being handed to node {follower.node_id}")
        outcome = await transferring
        assert outcome == NotTransferred(f"node {follower.node_id} did not take over in time")
        assert isinstance(await held, Applied)
        assert leader.log.status().term == term
        await quorum.all_applied([b"before", b"held back"])


async def test_what_cannot_lead_is_refused(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        leader = await quorum.leader()
        follower = another_than(quorum, leader)
        for nobody in (leader.node_id, 9):
            refused = await leader.log.transfer(nobody)
            assert refused == NotTransferred(f"node {nobody} is no other voter")
        refused = await follower.log.transfer(leader.node_id)
        assert refused == NotTransferred("this node does not lead")
        await follower.abandon()
        gone = NotTransferred(f"there is no connection to node {follower.node_id}")
        await quorum.until(lambda: not leader.log.status().peers[follower.node_id].connected)
        assert await leader.log.transfer(follower.node_id) == gone
        await quorum.propose(b"it leads all the same")
        await follower.start()


async def test_a_proposal_that_waits_for_a_transfer_keeps_its_deadline(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path), guards=(Deaf, *ALL_GUARDS)) as quorum:
        leader = await quorum.leader()
        transferring = asyncio.create_task(
            leader.log.transfer(another_than(quorum, leader).node_id)
        )
        await asyncio.sleep(0)
        began = now()
        late = await leader.log.propose(b"late", began + 0.05)
        assert not isinstance(late, Applied)
        await transferring
        await quorum.propose(b"after")
        await quorum.all_applied([b"after"])
