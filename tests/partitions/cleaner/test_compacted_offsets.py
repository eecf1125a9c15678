"""`__consumer_offsets` is compacted: what a coordinator loads from it is what was committed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from logboat.groups.log_records import Logged, OffsetRecord, batch_of, decode, encode
from logboat.groups.offsets import CommittedOffset
from tests.partitions.cleaner.compaction_scene import CONFIG, HOUR, Scene

Commits = dict[tuple[str, int], int]


def commit(scene: Scene, rng: Random, commits: Commits, offset: int) -> None:
    records = []
    for _ in range(rng.randrange(1, 4)):
        group, partition = f"g{rng.randrange(4)}", rng.randrange(3)
        gone = rng.random() < 0.2
        if gone:
            commits.pop((group, partition), None)
        else:
            commits[group, partition] = offset
        committed = None if gone else CommittedOffset(offset, 1, "m", scene.clock.now, -1)
        records.append(OffsetRecord(group, "t", partition, committed))
    batch = batch_of([encode(record, timestamp_ms=scene.clock.now) for record in records])
    scene.append(bytearray(batch), from_client=False)


def loaded(scene: Scene) -> Commits:
    """As `ReplicatedOffsets.read` and the coordinator do: chunk by chunk, from the log's start."""
    found: Commits = {}
    position = scene.log.log_start_offset
    while position < scene.log.log_end_offset:
        chunk = scene.log.read(
            position, max_bytes=300, upper_bound=scene.log.log_end_offset, at_least_one=True
        )
        assert chunk.size, f"no progress at {position}"
        for part in chunk.parts:
            for entry in decode(part):
                assert isinstance(entry, Logged)
                record = entry.record
                assert isinstance(record, OffsetRecord)
                key = record.group_id, record.partition
                if record.committed is None:
                    found.pop(key, None)
                else:
                    found[key] = record.committed.offset
        position = chunk.next_offset
    return found


async def test_offsets_loaded_from_a_compacted_log_are_those_committed() -> None:
    """With gaps, empty batches, and a start that is not 0."""
    scene = await Scene.begin(replace(CONFIG, segment_bytes=600))
    rng, commits = Random(5), Commits()
    # Records of an older topic of that place: their deletion moves the start.
    for offset in range(20):
        commit(scene, rng, {}, offset)
    await scene.log.advance_log_start(scene.log.log_end_offset)
    for rounds in range(5):
        for offset in range(60):
            commit(scene, rng, commits, rounds * 100 + offset)
        assert loaded(scene) == commits
        assert await scene.clean()
        assert loaded(scene) == commits
        scene.clock.now += HOUR
        await scene.reopen()
        assert loaded(scene) == commits
    assert scene.log.log_start_offset > 0
    assert any(batch.header.records_count == 0 for batch in scene.batches())
    await scene.close()
