"""A crash at any write, sync or rename of compaction: the log opens, and says what it said."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from random import Random
from typing import get_args

import pytest

from logboat.seam import frozen
from logboat.wire.records import Record
from tests.partitions.cleaner.compaction_scene import CONFIG, HOUR, Scene, settle
from tests.seam.memory_disk import Crashed, Loss, MemoryDisk

SMALL = replace(CONFIG, segment_bytes=350)
LOSSES: tuple[Loss, ...] = get_args(Loss)


class Written:
    """Three rounds over values, tombstones, a producer's batches and an aborted transaction."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.sequence = 0

    async def write(self, number: int) -> None:
        scene = self.scene
        for key in "abcd":
            scene.put((key, f"{key}{number}"), (f"only-{key}{number}", "x"))
        scene.put(("gone", None if number % 2 else "there"))
        for _ in range(3):
            scene.put(("p", "x"), producer_id=7, producer_epoch=0, base_sequence=self.sequence)
            self.sequence += 1
        scene.put(
            ("a", "aborted"),
            producer_id=8,
            producer_epoch=0,
            base_sequence=number,
            transactional=True,
        )
        scene.roll()
        scene.put(("b", f"committed{number}"))
        scene.end_transaction(8, commit=False)
        scene.roll()
        await scene.log.wait_synced(scene.log.log_end_offset)

    async def rounds(self) -> None:
        for _ in range(2):
            await self.scene.clean()
            self.scene.clock.now += 2 * HOUR


async def before_the_crash() -> tuple[Scene, Written]:
    scene = await Scene.begin(SMALL, MemoryDisk())
    written = Written(scene)
    for number in range(3):
        await written.write(number)
    await scene.directory.checkpoint()
    return scene, written


@frozen
class Undisturbed:
    """A run without a crash: all others are the same up to theirs."""

    first_step: int
    last_step: int
    table: dict[bytes, bytes]
    """What the log says before, and after."""
    records: dict[int, Record]
    """By offset, before the first round."""


async def undisturbed() -> Undisturbed:
    scene, written = await before_the_crash()
    first, table = scene.disk.steps, scene.state()
    records = {record.offset: record for record in scene.records()}
    await written.rounds()
    return Undisturbed(first, scene.disk.steps, table, records)


@pytest.mark.parametrize("loss", [None, *LOSSES])
async def test_a_crash_at_any_step_of_compaction_loses_and_revives_nothing(
    loss: Loss | None,
) -> None:
    whole = await undisturbed()
    first, last, table = whole.first_step, whole.last_step, whole.table
    assert last - first > 100
    table_at_the_end = table | {f"only-{key}3".encode(): b"x" for key in "abcd"}
    table_at_the_end |= {key.encode(): f"{key}3".encode() for key in "acd"}
    table_at_the_end |= {b"b": b"committed3"}
    table_at_the_end.pop(b"gone", None)
    for crash_at in range(first + 1, last + 1, 3 if loss in (None, "any") else 11):
        scene, written = await before_the_crash()
        scene.disk.crash_at = crash_at
        with contextlib.suppress(Crashed):
            await written.rounds()
        with contextlib.suppress(BaseException):
            await scene.log._scope.close()
        if loss is None:
            scene.disk.restart()
        else:
            scene.disk.power_loss(Random(crash_at), loss)
        await scene.open()
        where = f"step {crash_at}, {loss}"
        assert scene.log.damage is None, where
        assert scene.state() == table, where
        assert scene.log.producers.entry(7).last_sequence == written.sequence - 1, where  # type: ignore[union-attr]
        scene.clock.now += 4 * HOUR
        await written.write(3)
        await written.rounds()
        assert scene.state() == table_at_the_end, where
        for record in scene.records():
            assert whole.records.get(record.offset, record) == record, where
        await scene.close()


async def with_an_aborted_transaction() -> Scene:
    """Its data and, in the next round, its marker may go; the producer has committed since."""
    scene = await Scene.begin(SMALL, MemoryDisk())
    scene.put(("a", "x"))
    scene.put(
        ("b", "aborted"), producer_id=8, producer_epoch=0, base_sequence=0, transactional=True
    )
    scene.end_transaction(8, commit=False)
    scene.put(("a", "y"))
    scene.roll()
    scene.put(("c", "x"))
    scene.put(("d", "kept"), producer_id=8, producer_epoch=0, base_sequence=1, transactional=True)
    scene.end_transaction(8, commit=True)
    scene.roll()
    scene.put(("active", "x"))
    await scene.directory.checkpoint()
    assert await scene.clean()
    scene.clock.now += 2 * HOUR
    scene.put(("a", "z"))
    scene.roll()
    scene.put(("active", "y"))
    await scene.log.wait_synced(scene.log.log_end_offset)
    await settle(scene.log)
    await scene.directory.checkpoint()
    return scene


@pytest.mark.parametrize("loss", [None, "all", "any"])
async def test_a_crash_hides_no_committed_record_behind_a_transaction_that_is_gone(
    loss: Loss | None,
) -> None:
    scene = await with_an_aborted_transaction()
    assert scene.log.aborted_transactions(0, 100)
    first, table = scene.disk.steps, scene.state()
    assert table[b"d"] == b"kept"
    await scene.clean()
    assert not scene.log.aborted_transactions(0, 100), "the marker did not go"
    last = scene.disk.steps
    for crash_at in range(first + 1, last + 1):
        scene = await with_an_aborted_transaction()
        scene.disk.crash_at = crash_at
        with contextlib.suppress(Crashed):
            await scene.clean()
        with contextlib.suppress(BaseException):
            await scene.log._scope.close()
        if loss is None:
            scene.disk.restart()
        else:
            scene.disk.power_loss(Random(crash_at), loss)
        await scene.open()
        assert scene.log.damage is None
        assert scene.state() == table, f"step {crash_at}, {loss}: {scene.disk.log[-3:]}"
        await scene.close()


async def test_two_crashes_leave_no_transaction_that_hides_what_its_producer_committed() -> None:
    """Each between the names of the old segment's files, of which one tells of the transaction; the
    second in the round that takes its marker."""
    scene = await with_an_aborted_transaction()
    table = scene.state()
    for _ in range(3):
        scene.disk.fail = None
        first_name_gone(scene.disk)
        with contextlib.suppress(Crashed):
            await scene.clean()
        with contextlib.suppress(BaseException):
            await scene.log._scope.close()
        scene.disk.restart()
        await scene.open()
        assert scene.state() == table
        scene.clock.now += 2 * HOUR
        scene.put(("a", "z"))
        scene.roll()
        scene.put(("active", "y"))
        await scene.log.wait_synced(scene.log.log_end_offset)
        await settle(scene.log)
        await scene.directory.checkpoint()
    assert not [batch for batch in scene.batches() if batch.header.base_offset == 2]
    await scene.close()


def first_name_gone(disk: MemoryDisk) -> None:
    """Dies when the old segment's `.log` has another name and the rest has not."""

    def die(kind: str, path: str) -> None:
        if kind == "rename" and path.endswith("0000.index.deleted"):
            disk.dead = True
            raise Crashed(path)

    disk.fail = die
