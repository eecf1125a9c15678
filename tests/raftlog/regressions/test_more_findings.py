"""Findings H, I and K: what the driver and the journal correct, without a guard of their own."""

from __future__ import annotations

from random import Random

import pytest

from logboat.jepsen_style.simulation import World
from logboat.jepsen_style.simulation.quorum import Quorum
from logboat.raftlog.journal import Journal
from tests.raftlog.memory_disk import MemoryDisk


async def test_i_a_commit_index_beyond_the_journal_is_lowered() -> None:
    journal = await Journal.open(MemoryDisk(), "q", segment_bytes=4096, rng=Random(0))
    journal.set_term(1, None)
    journal.append(1, 1, b"\0a")
    journal.set_commit_index(100)
    assert journal.commit_index <= journal.last_index


@pytest.mark.parametrize("seed", range(2))
def test_k_every_proposal_is_answered_by_its_deadline(seed: int) -> None:
    with World(seed) as world:
        quorum = Quorum(world)
        quorum.start()
        leader = quorum.await_leader()
        others = [each.host for each in quorum.members.values() if each is not leader]
        world.network.partition([leader.host], others)
        for _ in range(50):
            quorum.propose(leader)
        world.run(6)
        # An answer that comes late is a violation, and one that never comes leaves its task.
        assert quorum.violations == []
        waiting = [task for task in leader.host.loop.tasks if "_propose" in repr(task.get_coro())]
        assert waiting == []
