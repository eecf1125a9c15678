"""Whole quorums in one process: real connections, real disks, killed nodes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from logboat.raftlog import Applied, NotLeader, Role, Unknown
from logboat.seam import Fatal
from tests.raftlog.quorum import SETTINGS, WITHIN_S, Quorum, Voter


def now() -> float:
    return asyncio.get_running_loop().time()


def numbered(prefix: str, count: int) -> list[bytes]:
    return [f"{prefix}-{number}".encode() for number in range(count)]


async def propose_all(voter: Voter, commands: list[bytes]) -> None:
    outcomes = await asyncio.gather(
        *(voter.log.propose(command, now() + WITHIN_S) for command in commands)
    )
    assert all(isinstance(outcome, Applied) for outcome in outcomes), outcomes


async def failed(voter: Voter) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not voter.failures:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_lone_voter_elects_itself_and_commits(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path), nodes=1) as quorum:
        leader = await quorum.leader()
        assert await leader.log.propose(b"one", now() + WITHIN_S) == Applied(3, 1)
        assert leader.machine.applied == [(3, b"one")]


async def test_three_voters_elect_one_leader_and_apply_alike(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        leader = await quorum.leader()
        commands = numbered("c", 50)
        await propose_all(leader, commands)
        await quorum.all_applied(commands)
        assert sum(voter.log.status().role is Role.LEADER for voter in quorum.voters.values()) == 1
        assert all(
            voter.log.status().leader_id == leader.node_id for voter in quorum.voters.values()
        )
        peers = leader.log.status().peers
        await quorum.until(
            lambda: all(
                peer.match_index == leader.log.status().last_index
                for peer in leader.log.status().peers.values()
            )
        )
        assert all(peer.connected and peer.last_contact is not None for peer in peers.values())


async def test_only_the_leader_takes_proposals_and_names_itself(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        leader = await quorum.leader()
        follower = next(v for v in quorum.voters.values() if v is not leader)
        await quorum.until(lambda: follower.log.status().leader_id == leader.node_id)
        assert await follower.log.propose(b"no", now() + 1) == NotLeader(leader.node_id)
        await propose_all(leader, [b"yes"])
        await quorum.all_applied([b"yes"])


async def test_a_barrier_is_one_commit_round_that_no_machine_sees(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        leader = await quorum.leader()
        await propose_all(leader, [b"a"])
        outcome = await leader.log.barrier(now() + WITHIN_S)
        assert isinstance(outcome, Applied)
        assert outcome.result is None
        assert outcome.index == leader.log.status().applied_index
        assert leader.machine.commands == [b"a"]


async def test_commands_survive_the_loss_of_their_leader(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        first = await quorum.leader()
        before = numbered("before", 30)
        await propose_all(first, before)
        await first.abandon()
        second = await quorum.leader()
        assert second.log.status().term > 1
        after = numbered("after", 30)
        await propose_all(second, after)
        await first.start()
        await quorum.all_applied([*before, *after])


async def test_a_refused_reconnect_tells_of_a_dead_voter(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        leader = await quorum.leader()
        dead = next(v for v in quorum.voters.values() if v is not leader)
        leader.refused.clear()
        await dead.abandon()
        await quorum.until(lambda: dead.node_id in leader.refused)


async def test_all_voters_restart_from_their_journals(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        commands = []
        terms = []
        for round_number in range(3):
            leader = await quorum.leader()
            terms.append(leader.log.status().term)
            batch = numbered(f"round{round_number}", 20)
            await propose_all(leader, batch)
            commands += batch
            for voter in quorum.voters.values():
                await voter.abandon()
            for voter in quorum.voters.values():
                await voter.start()
        await quorum.leader()
        await quorum.all_applied(commands)
        # Case R15: terms only grow over restarts.
        assert terms == sorted(set(terms))


async def test_a_lagging_follower_gets_the_snapshot_and_the_rest(tmp_path: Path) -> None:
    settings = replace(SETTINGS, compaction_entries=40, snapshot_chunk_bytes=1000)
    async with Quorum(str(tmp_path), settings=settings) as quorum:
        leader = await quorum.leader()
        behind = next(v for v in quorum.voters.values() if v is not leader)
        await propose_all(leader, [b"first"])
        await behind.abandon()
        commands = [b"first"]
        for round_number in range(6):
            batch = [command * 20 for command in numbered(f"r{round_number}", 40)]
            await propose_all(leader, batch)
            commands += batch
        await quorum.until(lambda: leader.log.status().snapshot_index > 100)
        await behind.start()
        await quorum.all_applied(commands)
        assert behind.machine.restored_at
        # RULES F1: decoding a large state would hold the loop up.
        assert behind.machine.decoded_beside_the_loop
        more = numbered("more", 10)
        await propose_all(await quorum.leader(), more)
        await quorum.all_applied([*commands, *more])


async def test_a_restart_loads_the_snapshot_and_the_journal_behind_it(tmp_path: Path) -> None:
    settings = replace(SETTINGS, compaction_entries=30)
    async with Quorum(str(tmp_path), settings=settings) as quorum:
        leader = await quorum.leader()
        commands = []
        for round_number in range(5):
            batch = numbered(f"r{round_number}", 25)
            await propose_all(leader, batch)
            commands += batch
        await quorum.until(lambda: leader.log.status().snapshot_index > 60)
        # One more may stand there while a new one is being installed.
        directory = tmp_path / f"quorum-{leader.node_id}"
        await quorum.until(lambda: len(list(directory.glob("snapshot-*"))) <= 2)
        for voter in quorum.voters.values():
            await voter.abandon()
        for voter in quorum.voters.values():
            await voter.start()
        await quorum.leader()
        await quorum.all_applied(commands)
        assert all(voter.machine.restored_at for voter in quorum.voters.values())


async def test_a_leader_without_majority_answers_unknown_by_the_deadline_and_steps_down(
    tmp_path: Path,
) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        leader = await quorum.leader()
        for voter in quorum.voters.values():
            if voter is not leader:
                await voter.abandon()
        deadline = now() + 0.2
        outcome = await leader.log.propose(b"lonely", deadline)
        assert isinstance(outcome, Unknown)
        assert deadline - 0.01 <= now() < deadline + 5
        await quorum.until(lambda: leader.log.status().role is not Role.LEADER)
        assert isinstance(await leader.log.propose(b"never", now() + 1), NotLeader)
        assert isinstance(await leader.log.barrier(now() + 1), NotLeader)
        # It does not raise its term while nobody would vote for it.
        term = leader.log.status().term
        await asyncio.sleep(1)
        assert leader.log.status().term == term


async def test_a_returning_node_does_not_depose_the_leader(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        leader = await quorum.leader()
        term = leader.log.status().term
        follower = next(v for v in quorum.voters.values() if v is not leader)
        for _ in range(2):
            await follower.abandon()
            await asyncio.sleep(0.8)
            await follower.start()
            await asyncio.sleep(0.3)
            await propose_all(leader, [b"x"])
        assert leader.log.status().term == term


async def test_a_voter_with_another_directory_than_the_pinned_one_is_not_heard_and_ends(
    tmp_path: Path,
) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        leader = await quorum.leader()
        other = next(v for v in quorum.voters.values() if v is not leader)
        leader.log.pin_directories({n: UUID(int=n) for n in quorum.voters})
        await propose_all(leader, [b"pinned"])
        await other.abandon()
        other.directory_id = UUID(int=99)
        other.directory += "-emptied"
        await other.start()
        await failed(other)
        assert "replace-voter" in str(other.failures[0])
        assert leader.log.status().peers[other.node_id].match_index != 0
        other.failures.clear()


async def test_a_node_that_finds_itself_pinned_elsewhere_ends(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        leader = await quorum.leader()
        leader.log.pin_directories({leader.node_id: UUID(int=77)})
        assert isinstance(leader.failures.pop(), Fatal)


async def test_an_exception_in_apply_ends_the_process(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path), nodes=1) as quorum:
        leader = await quorum.leader()

        def fail(index: int, command: bytes) -> object:
            raise ValueError("poison")

        leader.machine.apply = fail  # type: ignore[method-assign]
        outcome = await leader.log.propose(b"poison", now() + 0.2)
        assert isinstance(outcome, Unknown)
        await failed(leader)
        assert "poison" in str(leader.failures.pop())
        # Nothing happens any more.
        assert isinstance(await leader.log.propose(b"more", now() + 0.2), NotLeader)


async def test_commands_beyond_the_limit_are_refused_before_they_are_queued(
    tmp_path: Path,
) -> None:
    async with Quorum(str(tmp_path), nodes=1) as quorum:
        leader = await quorum.leader()
        limit = quorum.settings.max_command_bytes
        with pytest.raises(ValueError, match="limit"):
            await leader.log.propose(bytes(limit), now() + 1)
        assert isinstance(await leader.log.propose(bytes(limit - 1), now() + WITHIN_S), Applied)
        with pytest.raises(ValueError, match="empty"):
            await leader.log.propose(b"", now() + 1)


async def test_an_idle_quorum_needs_little_of_a_core(tmp_path: Path) -> None:
    async with Quorum(str(tmp_path)) as quorum:
        await quorum.leader()
        await asyncio.sleep(0.5)
        loop = asyncio.get_running_loop()
        import resource

        before = resource.getrusage(resource.RUSAGE_SELF)
        started = loop.time()
        await asyncio.sleep(2)
        after = resource.getrusage(resource.RUSAGE_SELF)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        # Three nodes in this process; 2 % of a core each.
        assert used / (loop.time() - started) < 0.06
