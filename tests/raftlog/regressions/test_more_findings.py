"""What pysyncobj 0.3.17 does wrong in the parts that we replaced: each shown on the stock engine,
then on ours.

These mistakes lie in the stock journal, snapshots, command queue and forwarding. Our driver has
none of them, with or without guards, so leaving guards out would show nothing: the stock side is
pysyncobj as it comes, in a network and at a time that the test plays (`raft_scope.stock`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from pysyncobj.journal import FileJournal
from pysyncobj.pickle import dumps

from logboat.jepsen_style.raft_scope.stock import StockNode, stock_engine
from logboat.jepsen_style.simulation import Host, World
from logboat.jepsen_style.simulation.crash_point import CrashPoint
from logboat.jepsen_style.simulation.quorum import DIRECTORY, Member, Quorum
from logboat.raftlog import RaftSettings
from logboat.raftlog.engine import NOT_LEADER
from logboat.raftlog.fixed_voters import remember_joining
from logboat.raftlog.journal import Journal
from logboat.raftlog.journal_records import Commit
from logboat.seam import TaskScope

GoesWrong = Callable[[Path], bool]
"""Lives through the finding in a directory of its own; whether it shows."""


def stock_and_ours(stock: GoesWrong, ours: GoesWrong) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("goes_wrong", "wrong"),
        [pytest.param(stock, True, id="stock"), pytest.param(ours, False, id="ours")],
    )


class Outcomes:
    """Of stock commands: (result, reason) in the order in which they came; reason 0 is success."""

    def __init__(self) -> None:
        self.all: list[tuple[object, int]] = []

    def __call__(self, result: object, reason: int) -> None:
        self.all.append((result, reason))


# F. kill -9 during journal compaction loses acknowledged entries.

ENTRIES, COMPACTED = 60, 40


class Killed(Exception):
    """Where the process ends."""


class KilledJournal(FileJournal):  # type: ignore[misc]
    """The stock journal of a process that is killed at the n-th entry that it writes."""

    entries_left = 1 << 30

    def add(self, command: bytes, index: int, term: int) -> None:
        self.entries_left -= 1
        if self.entries_left == 0:
            raise Killed
        super().add(command, index, term)


def stock_loses_entries_to_a_kill_in_compaction(directory: Path) -> bool:
    path = str(directory / "journal")
    journal = KilledJournal(path)
    for index in range(1, ENTRIES + 1):
        journal.add(b"\0", index, 1)
    journal.entries_left = 10
    with pytest.raises(Killed):
        journal.deleteEntriesTo(COMPACTED)
    journal._destroy()
    again = FileJournal(path)
    last_index = again[-1][1]
    again._destroy()
    return bool(last_index < ENTRIES)


@dataclass
class FillThenCompact:
    """One process and its journal."""

    filled: bool = False
    """Whether all entries were durable, and acknowledged, when the process ended."""

    async def main(self, host: Host) -> None:
        journal = await Journal.open(host.disk, "quorum", segment_bytes=512, rng=host.rng)
        scope = TaskScope(host.exit)
        scope.spawn(journal.run(scope), name="journal")
        journal.set_term(1, None)
        for index in range(1, ENTRIES + 1):
            journal.append(index, 1, b"\0")
            if index % 10 == 0:
                await journal.wait_clean()
        self.filled = True
        journal.compact_to(COMPACTED)
        await journal.wait_clean()
        await scope.close()
        journal.close()


async def last_of_journal(host: Host) -> int:
    journal = await Journal.open(host.disk, "quorum", segment_bytes=512, rng=host.rng)
    last_index = journal.last_index
    journal.close()
    return last_index


def _ended(host: Host) -> bool:
    return not host.alive


def we_lose_entries_to_a_kill_in_compaction(_directory: Path) -> bool:
    """Killed before each change of the disk in turn; what was synced before compaction counts."""
    lost = False
    for number in range(1, 1000):
        with World(number) as world:
            host = world.host("n1")
            process = FillThenCompact()
            crash = CrashPoint(host, number, None)
            host.start(process.main)
            world.run_until(partial(_ended, host), within=60)
            host.drive.on_call = None
            last = host.start(last_of_journal)
            world.run_until(partial(_ended, host), within=60)
            lost |= process.filled and last.result() < ENTRIES
        if not crash.reached:
            assert number > 20
            return lost
    raise AssertionError("the script does not end")


@stock_and_ours(
    stock_loses_entries_to_a_kill_in_compaction, we_lose_entries_to_a_kill_in_compaction
)
def test_f_a_kill_during_compaction_loses_no_entry(
    goes_wrong: GoesWrong, wrong: bool, tmp_path: Path
) -> None:
    assert goes_wrong(tmp_path) is wrong


# G. A journal without a snapshot file loses the state at the first compaction.


def stock_loses_its_state_at_the_first_compaction(directory: Path) -> bool:
    path = str(directory / "journal")
    with stock_engine() as time:
        node = StockNode(journal=path)
        node.lead(time)
        for number in range(50):
            node.command(b"%d" % number)
        node.live(time, 1)
        assert len(node.applied) == 50
        node.forceLogCompaction()
        node.live(time, 1.5)
        node.die()
        node = StockNode(journal=path)
        node.lead(time)
        node.live(time, 5)
        applied, ready = node.applied, node.ready
        node.die()
        return applied == [] and not ready


def we_lose_our_state_at_the_first_compaction(_directory: Path) -> bool:
    with World(1) as world:
        settings = RaftSettings(compaction_entries=20)
        quorum = Quorum(world, nodes=1, settings=settings)
        quorum.start()
        leader = quorum.await_leader()
        commands = [quorum.propose(leader) for _ in range(50)]
        world.run(2)
        assert leader.raft is not None
        assert leader.raft.status().snapshot_index > 0
        leader.host.kill()
        quorum.start()
        quorum.await_leader()
        world.run(1)
        return list(quorum.members[1].commands.values()) != commands


@stock_and_ours(
    stock_loses_its_state_at_the_first_compaction, we_lose_our_state_at_the_first_compaction
)
def test_g_no_compaction_happens_without_a_snapshot_to_restart_from(
    goes_wrong: GoesWrong, wrong: bool, tmp_path: Path
) -> None:
    assert goes_wrong(tmp_path) is wrong


# H. An exception in apply is a poison entry.


def stock_tries_a_poisonous_command_for_ever(_directory: Path) -> bool:
    with stock_engine() as time:
        node = StockNode()
        node.lead(time)
        node.live(time, 1)
        outcomes, tried = Outcomes(), 0
        for command in (b"poison", b"later"):
            node.command(command, callback=outcomes)
        for _ in range(250):
            try:
                node.live(time, 0.02)
            except ValueError:
                tried += 1
        applied = node.applied
        node.die()
        return tried > 200 and outcomes.all == [] and applied == []


class Poisoned(Member):
    """Its machine cannot apply anything."""

    tried = 0

    def apply(self, index: int, command: bytes) -> object:
        self.tried += 1
        raise ValueError("poison")


class PoisonedQuorum(Quorum):
    def member(self, host: Host, number: int) -> Member:
        return Poisoned(self, host, number)


def we_try_a_poisonous_command_for_ever(_directory: Path) -> bool:
    with World(1) as world:
        ends: list[str] = []
        world.on_host_ended = lambda host, error: ends.append(f"{host.name}: {error}")
        quorum = PoisonedQuorum(world)
        quorum.start()
        leader = quorum.await_leader()
        quorum.propose(leader)
        world.run(2)
        # One sentence each, and nobody serves a state that lacks the command.
        assert {end.partition(": ")[2] for end in ends} == {"poison"}
        assert quorum.acknowledged == {}
        return any(
            isinstance(member, Poisoned) and member.tried > 1 for member in quorum.members.values()
        )


@stock_and_ours(stock_tries_a_poisonous_command_for_ever, we_try_a_poisonous_command_for_ever)
def test_h_an_exception_in_apply_ends_the_process_and_is_not_tried_again(
    goes_wrong: GoesWrong, wrong: bool, tmp_path: Path
) -> None:
    assert goes_wrong(tmp_path) is wrong


# I. The commit index is newer than the journal.


def stock_acknowledges_alone_below_a_commit_index_from_the_disk(directory: Path) -> bool:
    path = str(directory / "journal")
    journal = FileJournal(path)
    for index in (1, 2, 3):
        journal.add(b"\1", index, 0)
    journal.setRaftCommitIndex(100)
    journal.setCurrentTerm(0, None)
    journal._destroy()
    with stock_engine() as time:
        node = StockNode(peers=("n2", "n3"), journal=path)
        node.lead(time)
        outcomes = Outcomes()
        node.command(b"alone", callback=outcomes)
        node.live(time, 0.3)
        node.die()
        # No peer has acknowledged anything.
        return outcomes.all == [(b"alone", 0)]


async def commit_ahead_of_journal(host: Host) -> None:
    host.disk.make_dirs(DIRECTORY)
    journal = await Journal.open(host.disk, DIRECTORY, segment_bytes=8 << 20, rng=host.rng)
    scope = TaskScope(host.exit)
    scope.spawn(journal.run(scope), name="journal")
    for index in (1, 2, 3):
        journal.append(index, 0, b"\1")
    journal._record(Commit(100))
    await journal.wait_clean()
    await scope.close()
    journal.close()
    await remember_joining(host.disk, DIRECTORY)


def we_acknowledge_alone_below_a_commit_index_from_the_disk(_directory: Path) -> bool:
    with World(1) as world:
        quorum = Quorum(world)
        for host in quorum.hosts.values():
            host.start(commit_ahead_of_journal)
        world.run(1)
        assert not any(host.alive for host in quorum.hosts.values())
        quorum.start()
        leader = quorum.await_leader()
        others = [each.host for each in quorum.members.values() if each is not leader]
        world.network.partition([leader.host], others)
        alone = quorum.propose(leader)
        world.run(0.2)
        return alone in quorum.acknowledged


@stock_and_ours(
    stock_acknowledges_alone_below_a_commit_index_from_the_disk,
    we_acknowledge_alone_below_a_commit_index_from_the_disk,
)
def test_i_a_commit_index_beyond_the_journal_acknowledges_nothing(
    goes_wrong: GoesWrong, wrong: bool, tmp_path: Path
) -> None:
    assert goes_wrong(tmp_path) is wrong


# K. Callbacks that never come.


def stock_never_answers_a_lost_forward(_directory: Path) -> bool:
    with stock_engine() as time:
        node = StockNode(peers=("n2", "n3"))
        node.connect()
        outcomes = Outcomes()
        node.hear_leader("n2", prev=1, commit=1, entries=[])
        node.command(b"lost", callback=outcomes)
        node.live(time, 0.1)
        assert len(node.said("apply_command")) == 1
        for _ in range(250):
            node.live(time, 0.1)
            node.hear_leader("n2", prev=1, commit=1, entries=[])
        node.die()
        return outcomes.all == []


def we_leave_a_proposal_without_an_answer(_directory: Path) -> bool:
    """The leader is cut off with fifty of them; a snapshot then jumps over their indexes."""
    with World(0) as world:
        settings = RaftSettings(
            election_min_s=0.3,
            election_max_s=0.6,
            fallback_s=0.45,
            heartbeat_s=0.075,
            compaction_entries=20,
        )
        quorum = Quorum(world, settings=settings)
        quorum.start()
        leader = quorum.await_leader()
        others = [each.host for each in quorum.members.values() if each is not leader]
        world.network.partition([leader.host], others)
        for _ in range(50):
            quorum.propose(leader)
        world.run_until(lambda: quorum.leader() not in (None, leader), within=5)
        for _ in range(100):
            successor = quorum.leader()
            assert successor is not None
            quorum.propose(successor)
            world.run(0.005)
        world.network.heal()
        world.run(6)
        # One that comes after its deadline is a violation, one that never comes leaves its task.
        waiting = [t for t in leader.host.loop.tasks if "_propose" in repr(t.get_coro())]
        return quorum.violations != [] or waiting != []


@stock_and_ours(stock_never_answers_a_lost_forward, we_leave_a_proposal_without_an_answer)
def test_k_every_proposal_is_answered_by_its_deadline(
    goes_wrong: GoesWrong, wrong: bool, tmp_path: Path
) -> None:
    assert goes_wrong(tmp_path) is wrong


# L. Request ids are used again after a restart.


def stock_takes_a_late_answer_for_another_commands(_directory: Path) -> bool:
    with stock_engine() as time:
        node = StockNode(peers=("n2", "n3"))
        node.connect()
        node.hear_leader("n2", prev=1, commit=1, entries=[])
        outcomes = Outcomes()
        node.command(b"new", callback=outcomes)
        node.live(time, 0.1)
        (forward,) = node.said("apply_command")
        # The forward is lost. What arrives was meant for this node's former process, which had
        # numbered its commands from 1 as well.
        assert forward["request_id"] == 1
        late = {"type": "apply_command_response", "request_id": 1, "log_idx": 2, "log_term": 1}
        node.hear("n2", late)
        old = (b"\0" + dumps((0, (b"old",))), 2, 1)
        node.hear_leader("n2", prev=1, commit=2, entries=[old])
        node.live(time, 0.1)
        applied = node.applied
        node.die()
        return applied == [b"old"] and [reason for _, reason in outcomes.all] == [0]


def we_take_a_late_answer_for_another_commands(_directory: Path) -> bool:
    """Even a command that reaches a follower's engine is not forwarded, so no answer can be late.

    The driver hands proposals over on the leader only; here it is gone past, as when leadership is
    lost between the question and the tick.
    """
    with World(1) as world:
        quorum = Quorum(world)
        quorum.start()
        leader = quorum.await_leader()
        follower = next(each for each in quorum.members.values() if each is not leader)
        world.run(0.5)
        assert follower.raft is not None
        driver = follower.raft._driver
        assert driver is not None
        outcomes = Outcomes()
        with world.on(follower.host.loop):
            driver._engine.propose([(b"new", outcomes)])
            driver.wake()
        world.run(0.01)
        return outcomes.all != [(None, NOT_LEADER)] or driver.failed


@stock_and_ours(
    stock_takes_a_late_answer_for_another_commands, we_take_a_late_answer_for_another_commands
)
def test_l_nothing_is_forwarded_so_no_late_answer_meets_another_command(
    goes_wrong: GoesWrong, wrong: bool, tmp_path: Path
) -> None:
    assert goes_wrong(tmp_path) is wrong


# M. A large command is cut into pieces.

BATCH_BYTES = 1024


def stock_ends_a_large_command_twice(_directory: Path) -> bool:
    with stock_engine() as time:
        leader = StockNode(peers=("n2",), batch_bytes=BATCH_BYTES)
        leader.lead(time)
        leader.live(time, 0.2)
        leader.said("append_entries")
        # Pickled it is just over four batches, as it is just under: the end is told by either.
        leader.command(bytes(4 * BATCH_BYTES - 80))
        leader.live(time, 0.2)
        pieces = [m for m in leader.said("append_entries") if "transmission" in m]
        follower = StockNode("n2", peers=("n1",), batch_bytes=BATCH_BYTES)
        raised = 0
        for piece in pieces:
            try:
                follower.hear("n1", piece)
            except Exception:
                raised += 1
        leader.die()
        follower.die()
        return raised > 0 and [m["transmission"] for m in pieces].count("finish") == 2


class LargeCommands(Quorum):
    """Proposes the largest commands that there may be."""

    def propose(self, member: Member) -> bytes:
        self.proposed += 1
        # One byte of the limit says what kind of entry it is.
        command = (b"%d " % self.proposed).ljust(self.settings.max_command_bytes - 1, b".")
        member.host.spawn(self._propose(member, command))
        return command


def we_end_a_large_command_twice(_directory: Path) -> bool:
    """Where the engine cuts, our codec ends the process; here nothing is ever cut."""
    with World(1) as world:
        settings = partial(RaftSettings, max_command_bytes=BATCH_BYTES)
        with pytest.raises(ValueError, match="must exceed"):
            settings(append_bytes=BATCH_BYTES)
        quorum = LargeCommands(world, settings=settings(append_bytes=BATCH_BYTES + 1))
        quorum.start()
        leader = quorum.await_leader()
        for _ in range(20):
            quorum.propose(leader)
        world.run(1)
        assert len(quorum.acknowledged) == 20
        return not quorum.settled() or quorum.missing() != []


@stock_and_ours(stock_ends_a_large_command_twice, we_end_a_large_command_twice)
def test_m_no_command_is_large_enough_to_be_cut_into_pieces(
    goes_wrong: GoesWrong, wrong: bool, tmp_path: Path
) -> None:
    assert goes_wrong(tmp_path) is wrong
