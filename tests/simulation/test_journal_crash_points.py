"""The quorum's journal, stopped before each change of its disk in turn, by kill and by power cuts.

What it says after the restart must be a state it was in, and none older than what it had called
durable (RULES E2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.crash_point import (
    CrashPoint,
    FailedSync,
    ask,
    for_every_number,
    live,
)
from logboat.raftlog.journal import Journal
from logboat.seam import TaskScope

SEGMENT_BYTES = 2048
"""Small, so that a short script goes over many files."""

State = tuple[int, int | None, int, tuple[tuple[bytes, int, int], ...]]
"""Term, vote, first index, entries from it on."""


@dataclass
class Script:
    """What one process did, as far as it got."""

    states: list[State] = field(default_factory=list)
    """After each record; the first is the empty journal."""
    durable: int = 0
    """How many records the journal had called durable."""

    async def main(self, host: Host) -> None:
        journal = await Journal.open(host.disk, "quorum", segment_bytes=SEGMENT_BYTES, rng=host.rng)
        self.states.append(state_of(journal))

        def on_synced() -> None:
            self.durable = journal.synced

        journal.on_synced = on_synced
        scope = TaskScope(host.exit)
        scope.spawn(journal.run(scope), name="journal")
        index = 0
        for term in (1, 2, 3):
            journal.set_term(term, term % 2 or None)
            self._saw(journal)
            for _ in range(12):
                index += 1
                journal.append(index, term, b"%d." % index * (index % 7 * 15))
                self._saw(journal)
                if index % 3 == 0:
                    await journal.wait_clean()
            journal.truncate_from(index)
            self._saw(journal)
            index -= 1
            journal.append(index + 1, term, b"instead")
            index += 1
            self._saw(journal)
            await journal.wait_clean()
            journal.compact_to(index - 5)
            self._saw(journal)
            await journal.wait_clean()
        await scope.close()
        journal.close()

    def _saw(self, journal: Journal) -> None:
        assert journal.written == len(self.states)
        self.states.append(state_of(journal))


def state_of(journal: Journal) -> State:
    first = journal._state.first_index
    entries = tuple(entry for entry in journal.entries if entry[1] >= first)
    return journal.term, journal.voted_for, first, entries


async def reopen(host: Host) -> State:
    journal = await Journal.open(host.disk, "quorum", segment_bytes=SEGMENT_BYTES, rng=host.rng)
    state = state_of(journal)
    journal.close()
    return state


def crash_at(number: int, keep: Keep | None, seed: int) -> bool:
    """Run the script, die before change `number`, and judge. False when it ended before."""
    script = Script()
    with World(seed) as world:
        host = world.host("n1")

        crash = CrashPoint(host, number, keep)
        live(world, host, script.main)
        recovered = ask(world, host, reopen)
    possible = script.states[script.durable :] or [(0, None, 1, ())]
    assert recovered in possible, f"change {number}, {keep}, seed {seed}"
    return crash.reached


@pytest.mark.parametrize("keep", [None, *Keep])
def test_after_a_crash_before_any_change_of_the_disk_the_journal_opens_and_holds_what_was_durable(
    keep: Keep | None,
) -> None:
    seeds = (1, 2, 3) if keep in (Keep.PREFIX, Keep.ANY) else (1,)
    for seed in seeds:
        for_every_number(partial(crash_at, keep=keep, seed=seed), at_least=30)


def test_what_the_journal_counts_after_a_failed_sync_survives_a_loss_of_power() -> None:
    """The kernel takes the pages for clean: they read back, and a mere sync passes them over."""
    for_every_number(fail_sync, at_least=10)


def fail_sync(number: int) -> bool:
    script = Script()
    with World(number) as world:
        host = world.host("n1")
        sync = FailedSync(host, number, kinds="sync effect")
        world.on_host_ended = lambda host, error: None
        live(world, host, script.main)
        counted = ask(world, host, reopen)
        host.power_off(Keep.NONE)
        kept = ask(world, host, reopen)
    assert counted in (script.states[script.durable :] or [(0, None, 1, ())])
    assert kept == counted, f"sync {number}"
    return sync.failed
