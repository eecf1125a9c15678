"""The journal of a voter: what it recovers, what it cuts, what it refuses."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.raftlog.journal import Journal
from logboat.raftlog.journal_records import Commit
from logboat.raftlog.journal_state import LogEntry
from logboat.raftlog.segment import segment_name
from logboat.seam import Fatal, TaskScope
from tests.seam.memory_disk import Crashed, MemoryDisk

SEGMENT_BYTES = 2048


async def open_journal(disk: MemoryDisk, *, seed: int = 0) -> Journal:
    return await Journal.open(disk, "q", segment_bytes=SEGMENT_BYTES, rng=Random(seed))


@asynccontextmanager
async def running(disk: MemoryDisk) -> AsyncIterator[Journal]:
    """An open journal with its task; everything is durable at the end of the block."""
    journal = await open_journal(disk)
    failures: list[BaseException] = []

    def on_failed(error: BaseException) -> None:
        failures.append(error)
        journal.failed = error

    scope = TaskScope(on_failed)
    scope.spawn(journal.run(scope), name="journal")
    try:
        yield journal
        await settled(journal)
    finally:
        await scope.close()
        journal.close()
    if failures:
        raise failures[0]


async def settled(journal: Journal) -> None:
    """Everything is durable and the next file stands ready; or the journal has failed."""
    async with asyncio.timeout(30):
        while (not journal.clean or journal._preparing) and journal.failed is None:  # noqa: ASYNC110
            await asyncio.sleep(0.0002)
    if journal.failed is not None:
        raise journal.failed


@dataclass
class Model:
    """What the log must be, kept the obvious way."""

    entries: list[LogEntry] = field(default_factory=list)
    term: int = 0
    voted_for: int | None = None

    def copy(self) -> Model:
        return Model(list(self.entries), self.term, self.voted_for)

    def matches(self, journal: Journal) -> bool:
        return (
            self.entries == journal.entries
            and self.term == journal.term
            and self.voted_for == journal.voted_for
        )


Operation = Callable[[Journal, Model], None]


def append(size: int) -> Operation:
    def operate(journal: Journal, model: Model) -> None:
        index = model.entries[-1][1] + 1 if model.entries else max(1, journal._state.next_index)
        command = bytes([index % 256]) * size
        journal.append(index, model.term, command)
        model.entries.append((command, index, model.term))

    return operate


def truncate(share: float) -> Operation:
    def operate(journal: Journal, model: Model) -> None:
        position = int(len(model.entries) * share)
        if position < len(model.entries) and model.entries[position][1] > journal.commit_index:
            journal.truncate_from(model.entries[position][1])
            del model.entries[position:]

    return operate


def compact(share: float) -> Operation:
    def operate(journal: Journal, model: Model) -> None:
        position = int(len(model.entries) * share)
        if position < len(model.entries):
            journal.compact_to(model.entries[position][1])
            del model.entries[:position]

    return operate


def vote(node: int | None) -> Operation:
    def operate(journal: Journal, model: Model) -> None:
        model.term += 1
        model.voted_for = node
        journal.set_term(model.term, node)

    return operate


def commit(share: float) -> Operation:
    def operate(journal: Journal, model: Model) -> None:
        if model.entries:
            index = model.entries[int((len(model.entries) - 1) * share)][1]
            journal.set_commit_index(max(index, journal.commit_index))
            journal.record_commit_index()

    return operate


def install(ahead: int) -> Operation:
    def operate(journal: Journal, model: Model) -> None:
        index = (model.entries[-1][1] if model.entries else 0) + ahead
        journal.clear()
        journal.append(index, 0, b"previous")
        journal.append(index + 1, model.term, b"last")
        model.entries = [(b"previous", index, 0), (b"last", index + 1, model.term)]

    return operate


shares = st.floats(0, 0.999)
operations = st.lists(
    st.one_of(
        st.builds(append, st.integers(0, 700)),
        st.builds(append, st.integers(0, 60)),
        st.builds(truncate, shares),
        st.builds(compact, shares),
        st.builds(vote, st.one_of(st.none(), st.integers(0, 5))),
        st.builds(commit, shares),
        st.builds(install, st.integers(1, 50)),
        st.none(),  # let everything become durable
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(operations)
def test_what_was_synced_is_what_is_recovered(steps: list[Operation | None]) -> None:
    async def scenario() -> None:
        disk = MemoryDisk("q")
        model = Model()
        async with running(disk) as journal:
            for step in steps:
                if step is None:
                    await settled(journal)
                else:
                    step(journal, model)
                    assert model.matches(journal)
            commit_index = journal.commit_index
            journal.record_commit_index()
        disk.power_loss(Random(0), "any")
        recovered = await open_journal(disk)
        assert model.matches(recovered)
        assert recovered.commit_index == commit_index
        assert recovered.synced_index == recovered.last_index

    asyncio.run(scenario())


async def _live_until_power_loss(
    disk: MemoryDisk, script: Random, steps: int
) -> tuple[list[Model], int]:
    """Run random operations; return the model after each sync point and how many were durable."""
    history = [Model()]
    durable = 0
    try:
        async with running(disk) as journal:
            model = Model()
            for _ in range(steps):
                for _ in range(script.randrange(1, 4)):
                    step = script.choice(
                        [
                            append(script.randrange(400)),
                            append(script.randrange(900)),
                            truncate(script.random()),
                            compact(script.random() / 2),
                            vote(script.randrange(3)),
                            commit(script.random()),
                            install(3),
                        ]
                    )
                    step(journal, model)
                history.append(model.copy())
                number = len(history) - 1
                await settled(journal)
                durable = number
    except Crashed:
        pass
    return history, durable


@pytest.mark.parametrize("seed", range(4))
async def test_a_power_loss_at_any_disk_operation_loses_only_what_was_not_synced(
    seed: int,
) -> None:
    disk = MemoryDisk("q")
    await _live_until_power_loss(disk, Random(seed), 20)
    total = disk.steps
    assert total > 30
    for crash_at in range(1, total + 1):
        disk = MemoryDisk("q")
        disk.crash_at = crash_at
        history, durable = await _live_until_power_loss(disk, Random(seed), 20)
        disk.power_loss(Random(seed * 1000 + crash_at), "any")
        # Power may be lost again while the journal is being recovered.
        for again_at in range(1, 8):
            disk.crash_at = disk.steps + again_at
            with suppress(Crashed):
                await open_journal(disk)
            disk.power_loss(Random(seed * 1000 + crash_at * 10 + again_at), "any")
        recovered = await open_journal(disk)
        # Each sync point is one batch, so the journal is at a sync point: the last durable one,
        # or the one whose sync was under way.
        assert any(model.matches(recovered) for model in history[durable : durable + 2]), crash_at
        # And it goes on from there.
        async with running(disk) as journal:
            journal.set_term(journal.term + 1, 1)
            journal.append(max(1, journal._state.next_index), journal.term, b"goes on")
        disk.power_loss(Random(crash_at), "any")
        again = await open_journal(disk)
        assert again.entries[-1][0] == b"goes on"


async def _filled(count: int = 30, size: int = 100) -> MemoryDisk:
    disk = MemoryDisk("q")
    async with running(disk) as journal:
        journal.set_term(1, 0)
        for index in range(1, count + 1):
            journal.append(index, 1, bytes([index]) * size)
            await settled(journal)
    return disk


async def test_a_torn_last_batch_is_cut_and_overwritten() -> None:
    disk = await _filled(3)
    path = f"q/{segment_name(1)}"
    end = len(bytes(disk.inode(path).data).rstrip(b"\0"))
    disk.flip_bit(path, end - 2)
    async with running(disk) as journal:
        assert journal.last_index == 2
        journal.append(3, 1, b"new")
    assert (await open_journal(disk)).entries[-1] == (b"new", 3, 1)


async def test_every_flipped_bit_before_the_last_batch_stops_the_node() -> None:
    disk = await _filled(30)
    names = [name for name in disk.list("q")]
    assert len(names) > 2
    ends = {name: len(bytes(disk.inode(f"q/{name}").data).rstrip(b"\0")) for name in names}
    last = max(name for name in names if ends[name])
    refused = 0
    for name in names:
        limit = ends[name] - (140 if name == last else 0)
        for position in range(0, limit, 37):
            if 28 <= position < 64:
                continue  # padding of the header
            disk.flip_bit(f"q/{name}", position)
            # Damage to the end of a file is told by the next one, with both names.
            with pytest.raises(Fatal, match=f"{name}|damaged"):
                await open_journal(disk)
            disk.flip_bit(f"q/{name}", position)
            refused += 1
    assert refused > 60
    assert (await open_journal(disk)).last_index == 30


async def test_damage_names_the_file_and_the_offset() -> None:
    disk = await _filled(10, size=50)
    disk.flip_bit(f"q/{segment_name(1)}", 300)
    with pytest.raises(Fatal, match=rf"q/{segment_name(1)}: offset \d+: damaged"):
        await open_journal(disk)


async def test_a_missing_file_in_the_middle_stops_the_node() -> None:
    disk = await _filled(40)
    disk.remove(f"q/{segment_name(2)}")
    with pytest.raises(Fatal, match="older file is missing"):
        await open_journal(disk)


async def test_a_journal_behind_a_gap_of_spares_is_not_taken_for_a_leftover() -> None:
    # Two spares, of which a crash during the removal left the second: the journal itself is older
    # than the gap.
    disk = await _filled(3)
    assert disk.list("q") == [segment_name(1), segment_name(2)]
    disk.rename(f"q/{segment_name(2)}", f"q/{segment_name(3)}")
    assert (await open_journal(disk)).last_index == 3


async def test_a_command_that_looks_like_a_batch_does_not_turn_a_torn_tail_into_damage() -> None:
    disk = await _filled(2)
    path = f"q/{segment_name(1)}"
    image = bytes(disk.inode(path).data).rstrip(b"\0")
    other = await _filled(1, size=10)
    lookalike = bytes(other.inode(path).data)[64:150]
    async with running(disk) as journal:
        # Another journal's batch: the salt differs because it was drawn from another seed.
        journal.append(3, 1, lookalike.replace(lookalike[:8], b"\x07" * 8))
    disk.flip_bit(path, len(image) + 10)
    assert (await open_journal(disk)).last_index == 2


async def test_compacted_files_are_removed() -> None:
    disk = await _filled(40)
    before = len(disk.list("q"))
    async with running(disk) as journal:
        journal.compact_to(39)
    assert len(disk.list("q")) < before
    assert [entry[1] for entry in (await open_journal(disk)).entries] == [39, 40]


async def test_committed_entries_cannot_be_truncated() -> None:
    journal = await open_journal(MemoryDisk("q"))
    for index in (1, 2, 3):
        journal.append(index, 0, b"")
    journal.set_commit_index(2)
    with pytest.raises(Fatal, match="committed"):
        journal.truncate_from(2)
    # The engine may swallow the exception; the journal remembers.
    with pytest.raises(Fatal, match="has failed"):
        journal.append(4, 0, b"")


async def test_entries_must_be_contiguous_and_of_no_later_term() -> None:
    journal = await open_journal(MemoryDisk("q"))
    journal.append(1, 0, b"")
    with pytest.raises(Fatal, match="where 2 was due"):
        journal.append(3, 0, b"")
    journal = await open_journal(MemoryDisk("q"))
    with pytest.raises(Fatal, match="term"):
        journal.append(1, 1, b"")


async def test_commit_index_beyond_the_journal_is_lowered_at_start() -> None:
    disk = MemoryDisk("q")
    async with running(disk) as journal:
        journal.append(1, 0, b"")
        journal._record(Commit(7))
    assert (await open_journal(disk)).commit_index == 1


async def test_synced_moves_only_after_the_sync_and_covers_what_was_written_before_it() -> None:
    disk = MemoryDisk("q")
    moves: list[tuple[int, int]] = []
    async with running(disk) as journal:
        journal.on_synced = lambda: moves.append((journal.synced, journal.synced_index))
        journal.append(1, 0, b"a")
        journal.append(2, 0, b"b")
        assert journal.synced == 0
        await settled(journal)
        assert moves == [(2, 2)]
        journal.truncate_from(2)
        assert journal.synced_index == 1
        journal.append(2, 0, b"c")
        assert journal.synced_index == 1
        await settled(journal)
        assert moves[-1] == (4, 2)


async def test_a_full_disk_ends_the_process_instead_of_losing_a_write() -> None:
    disk = MemoryDisk("q")

    async def fill() -> None:
        async with running(disk) as journal:
            journal.append(1, 0, b"a")
            await settled(journal)
            disk.fail = lambda kind, path: errno.ENOSPC
            journal.append(2, 0, b"b")

    with pytest.raises(Fatal, match="cannot be written"):
        await fill()
    disk.restart()
    assert (await open_journal(disk)).last_index == 1


async def test_a_hundred_thousand_entries_are_recovered_in_seconds() -> None:
    disk = MemoryDisk("q")
    journal = await Journal.open(disk, "q", segment_bytes=32 << 20, rng=Random(0))
    scope = TaskScope(lambda error: None)
    scope.spawn(journal.run(scope), name="journal")
    for index in range(1, 100_001):
        journal.append(index, 0, b"x" * 100)
    await settled(journal)
    await scope.close()
    # Processor time: other tests may share the machine.
    started = time.process_time()
    recovered = await open_journal(disk)
    assert recovered.last_index == 100_000
    assert time.process_time() - started < 10
