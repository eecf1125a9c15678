"""A node's data directory: whose it is, how it was left, and the logs in it.

    .lock                             held while the process lives
    meta.properties                   cluster id, node id, directory id (RULES B3)
    .kafka_cleanshutdown              there: the last stop was orderly (RULES C7)
    .sync_failed                      there: a sync failed, and nobody was told of it yet (C1)
    recovery-point-offset-checkpoint  per log: all below was synced
    log-start-offset-checkpoint       per log: records below are deleted
    replication-offset-checkpoint     per log: high watermark
    cleaner-offset-checkpoint         per compacted log: below it every key has one record
    <topic>-<partition>/              one log, with `partition.metadata` naming the topic id

Nothing is changed on disk before lock and identity have been checked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from posixpath import dirname
from random import Random
from types import MappingProxyType
from uuid import UUID

from ...seam import (
    Clock,
    Disk,
    DiskLock,
    DiskLocked,
    Fatal,
    OnFatal,
    frozen,
    offload,
    read_file,
    replace_file,
    write_file_atomically,
)
from .checkpoints import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LINES_AT_ONCE,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    CheckpointDamaged,
    TopicPartition,
    read_offsets,
    write_offsets,
)
from .errors import DirectoryRefused, StorageFailed
from .folder_names import folder_name
from .group_commit import PASSING_ERRORS, RETRY_SECONDS
from .log_config import LogConfig
from .meta_properties import (
    CLEAN_MARKER,
    FAILED_SYNC_MARKER,
    META_PROPERTIES,
    PARTITION_METADATA,
    UNKNOWN_BROKER_EPOCH,
    MetaProperties,
    decode_clean_marker,
    encode_clean_marker,
    encode_partition_metadata,
)
from .open_files import MOST_OPEN_FILES, OpenFiles
from .partition_log import PartitionLog
from .segment import LOG_SUFFIX
from .set_aside import set_damage_aside
from .shared_sync import SharedDirectorySync
from .stored_logs import StoredLog, find_logs
from .values import Damage

logger = logging.getLogger(__name__)

LOCK = ".lock"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"

IGNORED = (LOCK, META_PROPERTIES + ".tmp", "lost+found")
"""Names that an unformatted directory may hold: ours from a crash while formatting, and ext4's."""


@frozen
class Found:
    """What was in the directory when it was opened."""

    logs: dict[TopicPartition, StoredLog]
    recovery_points: dict[TopicPartition, int]
    log_start_offsets: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    cleaned_offsets: dict[TopicPartition, int]


HighWatermarkOf = Callable[[PartitionLog], int | None]


def _as_before(log: PartitionLog) -> int | None:
    return None


class LogDirectory:
    """Opened with `await LogDirectory.open(...)`; `close` releases the lock."""

    def __init__(
        self,
        path: str,
        *,
        meta: MetaProperties,
        lock: DiskLock,
        clean: bool,
        previous_broker_epoch: int,
        sync_failed: bool,
        disk: Disk,
        clock: Clock,
        rng: Random,
        on_fatal: OnFatal,
        open_files: int,
        found: Found,
    ) -> None:
        self.path = path
        self.cluster_id = meta.cluster_id
        self.node_id = meta.node_id
        self.directory_id = meta.directory_id
        self.clean = clean
        """The last stop was orderly (RULES C7)."""
        self.previous_broker_epoch = previous_broker_epoch
        """Broker epoch of that stop; -1 when unknown or unclean (KIP-966)."""
        self.sync_failed = sync_failed
        """A process before this one ended because a sync failed, and this was not told yet."""
        self._disk = disk
        self._clock = clock
        self._rng = rng
        self._on_fatal = on_fatal
        self._lock = lock
        self._files = OpenFiles(disk, open_files)
        self._names = SharedDirectorySync(disk, path)
        """Makes the folders' names durable."""
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._writing = asyncio.Lock()
        """One writer of checkpoint files at a time: they share their temporary names."""
        self._forgotten: dict[str, int] = {}
        """Checkpoint file -> how many logs were taken out of what it is to hold."""
        self._forgotten_durably: dict[str, int] = {}
        """Of those, how many the file on the device is without."""

        self._stored = found.logs
        self._unopened = dict.fromkeys(self._stored)
        self._damaged = False
        """A log was closed with damage that nobody has mended."""
        self._left_open = False
        """The logs are closed, but not all of them could be put on the device whole."""
        self._unfinished: dict[TopicPartition, None] = {}
        """Logs closed to be opened as another one, because of damage or half cut, and not open
        yet."""
        self._behind: dict[str, None] = {}
        """Checkpoint files that may hold something else than what is known here: the last attempt
        to write them failed, or is under way."""
        self._recovery_points = found.recovery_points
        """Also of logs whose folder is gone: made again, they are damaged, not new (RULES C1)."""
        self._log_start_offsets = self._of_stored(found.log_start_offsets)
        self.high_watermarks = self._of_stored(found.high_watermarks)
        """As read at start (replication-offset-checkpoint)."""
        self._cleaned_offsets = found.cleaned_offsets
        self._being_cleaned: dict[TopicPartition, None] = {}
        """Logs in a round of compaction that were not cut since it began."""

    # The directory itself.

    @classmethod
    async def open(
        cls,
        path: str,
        *,
        cluster_id: str,
        node_id: int,
        disk: Disk,
        clock: Clock,
        rng: Random,
        on_fatal: OnFatal,
        open_files: int = MOST_OPEN_FILES,
    ) -> LogDirectory:
        """Lock the directory, format it when it is empty (RULES B3), else check that it is ours.

        Takes away the clean-shutdown marker, durably: from here on a stop without `close_logs`
        and `write_clean_marker` is unclean. Raises DirectoryRefused.
        """
        disk.make_dirs(path)
        try:
            lock = disk.lock(f"{path}/{LOCK}")
        except DiskLocked:
            raise DirectoryRefused(
                f"data directory {path} is in use by another process (its {LOCK} is held)"
            ) from None
        try:
            meta = await _own_meta(path, disk, rng, cluster_id, node_id)
            marker = f"{path}/{CLEAN_MARKER}"
            clean, previous_broker_epoch = disk.exists(marker), UNKNOWN_BROKER_EPOCH
            if clean:
                previous_broker_epoch = decode_clean_marker(read_file(disk, marker))
                disk.remove(marker)
            await _remove_deleted(disk, path)
            await disk.sync_dir(path)
            return cls(
                path,
                meta=meta,
                lock=lock,
                clean=clean,
                previous_broker_epoch=previous_broker_epoch,
                sync_failed=disk.exists(f"{path}/{FAILED_SYNC_MARKER}"),
                disk=disk,
                clock=clock,
                rng=rng,
                on_fatal=on_fatal,
                open_files=open_files,
                found=await _find(disk, path),
            )
        except BaseException:
            lock.release()
            raise

    def _of_stored(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {key: offset for key, offset in offsets.items() if key in self._stored}

    # The logs.

    def stored_logs(self) -> list[StoredLog]:
        """Partition folders that are not deleted: those found at start, by name, then those
        made since."""
        return list(self._stored.values())

    def lost_logs(self) -> list[TopicPartition]:
        """Logs that the checkpoint knows and whose folder is gone, sorted. Creating one again gives
        a log with `damage`; `delete_log` forgets it."""
        return sorted(
            key for key, end in self._recovery_points.items() if end and key not in self._stored
        )

    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """The logs opened or created and not deleted; a read-only view."""
        return MappingProxyType(self._logs)

    async def open_log(self, stored: StoredLog, config: LogConfig) -> PartitionLog:
        """Recover and open a log found by `stored_logs`. Look at its `damage`."""
        key = stored.key
        log = await PartitionLog.open(
            stored.directory,
            topic=stored.topic,
            partition=stored.partition,
            topic_id=stored.topic_id,
            config=config,
            disk=self._disk,
            clock=self._clock,
            on_fatal=self._on_fatal,
            clean=self.clean and key in self._unopened,
            recovery_point=self._recovery_points.get(key, 0),
            log_start_offset=self._log_start_offsets.get(key, 0),
            compacted=key in self._cleaned_offsets,
            files=self._files,
            rng=self._rng,
            before_truncation=lambda recovery_point, log_start_offset: self._before_truncation(
                key, recovery_point, log_start_offset
            ),
        )
        self._unopened.pop(key, None)
        self._logs[key] = log
        return log

    async def set_damage_aside(self, log: PartitionLog, config: LogConfig) -> PartitionLog:
        """Of a damaged log that nobody else has: closed, put in order and opened again. It ends
        where it ended, and `damaged_ranges` says what is lost in it; or it has `damage` still,
        when nothing is left to keep.

        Raises OSError and StorageFailed: then the log is not open, and opening it finds the damage.
        """
        key = log.topic, log.partition
        self._unfinished[key] = None
        met: list[Damage] = []
        """Where nothing was to be done: a wrong epoch may have had its neighbour blamed. Opened
        again, the log is tested from end to end, and tells of the right one."""
        while (damage := log.damage) is not None:
            self._logs.pop(key, None)
            await log.close()
            async with self._writing:
                # All below was on the device: what is damaged there must not pass for a torn tail.
                known = self._recovery_points.get(key, 0)
                self._recovery_points[key] = max(known, damage.recovery_point)
                await self._write(RECOVERY_POINTS, self._recovery_points)
            if log.swap_unfinished:
                # Recovery finishes it, and nothing may be made beside it.
                raise StorageFailed(f"{log}: a swap of segments is not finished")
            done = await set_damage_aside(
                log.directory,
                damage,
                disk=self._disk,
                files=self._files,
                config=config,
                compacted=key in self._cleaned_offsets,
                now_ms=self._clock.now_ms(),
            )
            for found in done.lost:
                logger.error(
                    "%s: offsets %d to %d are damaged, and this is the only replica: their bytes "
                    "are kept in %s/%s; who reads there is refused, all else goes on",
                    log,
                    found.first_offset,
                    found.next_offset - 1,
                    log.directory,
                    found.file_name,
                )
            log = await self.open_log(self._stored[key], config)
            met.append(damage)
            if not done.changed and (log.damage is None or log.damage in met):
                break
            if log.damage is None and log.log_end_offset < damage.log_end_offset:
                # Offsets would be given away a second time in one leader epoch (RULES B1).
                raise Fatal(f"{log} ends at {log.log_end_offset}, not {damage.log_end_offset}")
        del self._unfinished[key]
        return log

    async def create_log(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig
    ) -> PartitionLog:
        """Make the folder, durably, and open its empty log.

        A folder of that name is opened when it is of this topic id, also when its log is open and
        half cut; one of another id is of an earlier life of the name and is deleted first (case
        P24). Logs may be made side by side:
        then they share the sync of their names.
        """
        key = topic, partition
        directory = f"{self.path}/{folder_name(topic, partition)}"
        stored = self._stored.get(key)
        if stored is not None and stored.topic_id == topic_id:
            return await self._opened(stored, config)
        if stored is not None:
            await self.delete_log(topic, partition)
        self._clear_place(topic, partition)
        await self._make_folder(directory, topic_id)
        stored = StoredLog(topic, partition, topic_id, directory)
        self._stored[key] = stored
        if key in self._recovery_points:
            # Lost once: it opens damaged, and recovery then leaves all as it finds it.
            await self._disk.sync_dir(directory)
        return await self.open_log(stored, config)

    async def _opened(self, stored: StoredLog, config: LogConfig) -> PartitionLog:
        key = stored.key
        log = self._logs.get(key)
        if log is not None and log.half_cut is None:
            return log
        if log is not None:
            # As after a crash, but nothing that is known better has been forgotten.
            self._unfinished[key] = None
            self._recovery_points[key] = log.recovery_point
            self._log_start_offsets[key] = log.log_start_offset
            del self._logs[key]
            await log.close()
        log = await self.open_log(stored, config)
        self._unfinished.pop(key, None)
        return log

    def _clear_place(self, topic: str, partition: int) -> None:
        """What has the name of a log and is none: a create that never returned leaves nothing
        behind; records, of which a damaged `partition.metadata` does not say whose they are, are
        kept for a person to look at."""
        directory = f"{self.path}/{folder_name(topic, partition)}"
        if not _holds_batches(self._disk, directory):
            self._disk.remove_tree(directory)
            return
        suffix = f"unknown-{self._clock.now_ms()}{STRAY_SUFFIX}"
        aside = f"{self.path}/{folder_name(topic, partition, suffix)}"
        logger.error(
            "%s/%s does not say whose records these are: they are kept in %s",
            directory,
            PARTITION_METADATA,
            aside,
        )
        self._disk.rename(directory, aside)

    async def _make_folder(self, directory: str, topic_id: UUID) -> None:
        """Its own name is on the device then, those in it when the log was opened for the first
        time: recovery ends with a sync of the folder (RULES C4)."""
        self._disk.make_dirs(directory)
        metadata = f"{directory}/{PARTITION_METADATA}"
        await replace_file(self._disk, metadata, encode_partition_metadata(topic_id))
        await self._names.sync()

    def stored(self, topic: str, partition: int) -> StoredLog | None:
        """The folder of that name, whether its log is open or not."""
        return self._stored.get((topic, partition))

    async def delete_log(self, topic: str, partition: int) -> None:
        """Close the log, rename its folder to `<name>.<topic id>-delete`, durably, and remove it.
        Nothing happens when there is none."""
        key = topic, partition
        stored = self._stored.pop(key, None)
        log = self._logs.pop(key, None)
        await self._forget(key)
        if stored is None:
            return
        if log is not None:
            await log.delete(self._names.sync)
        else:
            doomed = await self._rename(stored, DELETE_SUFFIX)
            await offload(lambda: self._disk.remove_tree(doomed))

    async def set_stray(self, stored: StoredLog) -> None:
        """A folder that is no longer assigned to this node is renamed to `<name>.<topic id>-stray`
        and kept for a person to look at. Nothing happens when another life of the topic has taken
        its name meanwhile: then it is gone."""
        if self._stored.get(stored.key) != stored:
            return
        del self._stored[stored.key]
        log = self._logs.pop(stored.key, None)
        await self._forget(stored.key)
        if log is not None:
            await log.close()
        await self._rename(stored, STRAY_SUFFIX)

    async def _rename(self, stored: StoredLog, suffix: str) -> str:
        name = folder_name(stored.topic, stored.partition, stored.topic_id.hex + suffix)
        target = f"{self.path}/{name}"
        self._disk.remove_tree(target)
        self._disk.rename(stored.directory, target)
        await self._names.sync()
        return target

    async def _forget(self, key: TopicPartition) -> None:
        """Take the log out of the checkpoints, durably, before its folder goes: a later log of this
        name must not start with the old one's offsets."""
        self._unopened.pop(key, None)
        self._being_cleaned.pop(key, None)
        self._unfinished.pop(key, None)
        held_it = [
            (name, offsets)
            for name, offsets in (
                (RECOVERY_POINTS, self._recovery_points),
                (LOG_START_OFFSETS, self._log_start_offsets),
                (HIGH_WATERMARKS, self.high_watermarks),
                (CLEANED_OFFSETS, self._cleaned_offsets),
            )
            if offsets.pop(key, 0)
        ]
        numbers = []
        for name, _ in held_it:
            self._forgotten[name] = self._forgotten.get(name, 0) + 1
            numbers.append(self._forgotten[name])
        for (name, offsets), number in zip(held_it, numbers, strict=True):
            await self._write_without_forgotten(name, offsets, number)

    async def _write_without_forgotten(
        self, name: str, offsets: Mapping[TopicPartition, int], number: int
    ) -> None:
        """Return when the file on the device is without the first `number` logs forgotten. Many
        that go at once share one write. While the disk is full this waits for room."""
        while True:
            try:
                async with self._writing:
                    if self._forgotten_durably.get(name, 0) < number:
                        await self._write(name, offsets)
                    return
            except OSError as error:
                if error.errno not in PASSING_ERRORS:
                    raise
                logger.warning("%s/%s stays as it is for now: %s", self.path, name, error)
            await asyncio.sleep(RETRY_SECONDS)

    # Compaction. What was cleaned is forgotten with what a cut takes away: other records may grow
    # there.

    @property
    def files(self) -> OpenFiles:
        """Those of all logs."""
        return self._files

    def cleaned_offset(self, log: PartitionLog) -> int | None:
        """Below it every key has one record; None when the log was never compacted."""
        return self._cleaned_offsets.get((log.topic, log.partition))

    def begin_cleaning(self, log: PartitionLog) -> None:
        self._being_cleaned[log.topic, log.partition] = None

    async def set_cleaned_offset(self, log: PartitionLog, offset: int) -> None:
        """After a round, durably; nothing happens when the log was cut since `begin_cleaning`."""
        key = log.topic, log.partition
        async with self._writing:
            if key in self._being_cleaned:
                del self._being_cleaned[key]
                self._cleaned_offsets[key] = offset
                await self._write(CLEANED_OFFSETS, self._cleaned_offsets)

    # Checkpoints and the end.

    async def checkpoint(self, high_watermark_of: HighWatermarkOf = _as_before) -> None:
        """Write recovery points, log start offsets and high watermarks. Best called every few
        seconds: it bounds what recovery must read.

        `high_watermark_of` is asked for each log that is still open when its turn comes, in slices
        (RULES F1): each entry was true at some instant of the call, and nothing is promised of two
        entries together. None: the one written before stays.
        """
        async with self._writing:
            self._behind |= dict.fromkeys((RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS))
            await self._take_offsets(high_watermark_of)
            await self._write(RECOVERY_POINTS, self._recovery_points)
            await self._write(LOG_START_OFFSETS, self._log_start_offsets)
            await self._write(HIGH_WATERMARKS, self.high_watermarks)

    async def checkpoint_if_room(self, high_watermark_of: HighWatermarkOf = _as_before) -> bool:
        """As `checkpoint`. False: the files stay as they are, for now, which makes a longer
        recovery, nothing worse."""
        return await _if_room(self.checkpoint(high_watermark_of), "checkpoints stay as they are")

    async def _take_offsets(self, high_watermark_of: HighWatermarkOf) -> None:
        for number, (key, log) in enumerate(self._logs.copy().items(), start=1):
            if number % LINES_AT_ONCE == 0:
                await asyncio.sleep(0)
            if self._logs.get(key) is not log:
                continue  # Deleted in between.
            if log.damage is None:
                # Otherwise the next start would take the damage for an ordinary torn tail.
                self._recovery_points[key] = log.recovery_point
            self._log_start_offsets[key] = log.log_start_offset
            high_watermark = high_watermark_of(log)
            if high_watermark is not None:
                self.high_watermarks[key] = high_watermark

    async def _write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """With `_writing` held."""
        without = self._forgotten.get(name, 0)
        self._behind[name] = None
        await write_offsets(self._disk, f"{self.path}/{name}", offsets)
        del self._behind[name]
        self._forgotten_durably[name] = without

    async def _before_truncation(
        self, key: TopicPartition, recovery_point: int, log_start_offset: int
    ) -> None:
        """On disk no checkpoint may claim more than the log will hold after the cut. Where it is
        not sure what a file holds, since an attempt to write it failed, it is written again.
        Raises OSError; then nothing may be cut."""
        self._being_cleaned.pop(key, None)
        async with self._writing:
            if self._cleaned_offsets.get(key, 0) > recovery_point:
                self._cleaned_offsets[key] = recovery_point
                self._behind[CLEANED_OFFSETS] = None
            if self._recovery_points.get(key, 0) > recovery_point:
                self._recovery_points[key] = recovery_point
                self._behind[RECOVERY_POINTS] = None
            if self._log_start_offsets.get(key, 0) != log_start_offset:
                self._log_start_offsets[key] = log_start_offset
                self._behind[LOG_START_OFFSETS] = None
            for name, offsets in (
                (CLEANED_OFFSETS, self._cleaned_offsets),
                (RECOVERY_POINTS, self._recovery_points),
                (LOG_START_OFFSETS, self._log_start_offsets),
            ):
                if name in self._behind:
                    await self._write(name, offsets)

    async def close_logs(self) -> None:
        """Write, sync and close every log, side by side (RULES C5), then write the checkpoints."""
        logs = list(self._logs.values())
        # All of them are over before a failure is told: none is left behind in the middle.
        ends = await asyncio.gather(*(log.close() for log in logs), return_exceptions=True)
        for failure in ends:
            if failure is not None:
                raise failure
        self._damaged |= any(log.damage is not None or log.half_cut is not None for log in logs)
        left_open = [log for log in logs if log.left_open is not None]
        if left_open:
            first = left_open[0]
            logger.error(
                "%d logs are closed and have to be read when they are opened next, the first of "
                "them is %s: %s",
                len(left_open),
                first,
                first.left_open,
            )
        self._left_open = bool(left_open) or not await self.checkpoint_if_room()
        self._logs.clear()

    async def write_clean_marker(self, broker_epoch: int) -> bool:
        """The stop is orderly: call last, after `close_logs`. False, and no marker, when a log was
        never opened since start-up, so that its recovery has not run (RULES C7, KAFKA-15375), when
        one is damaged still: the next start must find that out again (RULES C1), or when the disk
        has no room for all that the next start is not to read again."""
        if self._logs:
            raise RuntimeError(f"{len(self._logs)} logs are still open")
        if self._unopened and not self.clean:
            logger.warning("no clean-shutdown marker: %d logs not recovered", len(self._unopened))
            return False
        if self._damaged or self._unfinished:
            logger.warning("no clean-shutdown marker: a log is damaged")
            return False
        if self._left_open:
            logger.warning(
                "no clean-shutdown marker: the disk had no room for all of it. Nothing that was "
                "acknowledged is missing; the next start reads the ends of the logs"
            )
            return False
        marker = encode_clean_marker(broker_epoch)
        written = write_file_atomically(self._disk, f"{self.path}/{CLEAN_MARKER}", marker)
        return await _if_room(written, "no clean-shutdown marker")

    def note_failed_sync(self) -> None:
        """The process ends because a sync failed: leave word for the next one, on whatever the
        device still takes. Not synced, for there is no more waiting; a loss of power on top may
        take the word away, and then this was an ordinary unclean stop."""
        with suppress(OSError):
            self._disk.open(f"{self.path}/{FAILED_SYNC_MARKER}", create=True).close()

    async def forget_failed_sync(self) -> None:
        """The controller has been told."""
        if self.sync_failed:
            self.sync_failed = False
            self._disk.remove(f"{self.path}/{FAILED_SYNC_MARKER}")
            await self._disk.sync_dir(self.path)

    async def close(self) -> None:
        """Close what is open and release the lock."""
        if self._logs:
            await self.close_logs()
        self._files.close()
        self._lock.release()


async def _if_room(writing: Awaitable[None], otherwise: str) -> bool:
    """False, and it is said what is so then, when the disk refuses it for what should pass."""
    try:
        await writing
    except OSError as error:
        if error.errno not in PASSING_ERRORS:
            raise
        logger.warning("%s: %s", otherwise, error)
        return False
    return True


async def _remove_deleted(disk: Disk, path: str) -> None:
    """A process that ended in the middle of deletions may leave thousands."""
    for name in await offload(lambda: disk.list(path)):
        folder = f"{path}/{name}"
        if name.endswith(DELETE_SUFFIX) and disk.is_dir(folder):
            await offload(partial(disk.remove_tree, folder))


async def _find(disk: Disk, path: str) -> Found:
    return Found(
        logs=await find_logs(disk, path, await offload(lambda: disk.list(path))),
        recovery_points=await _read(disk, f"{path}/{RECOVERY_POINTS}"),
        log_start_offsets=await _read(disk, f"{path}/{LOG_START_OFFSETS}"),
        high_watermarks=await _read(disk, f"{path}/{HIGH_WATERMARKS}"),
        cleaned_offsets=await _read(disk, f"{path}/{CLEANED_OFFSETS}"),
    )


async def _read(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """A damaged file costs a longer recovery, nothing else."""
    try:
        return await read_offsets(disk, path)
    except CheckpointDamaged as reason:
        logger.warning("%s is damaged and ignored: %s", path, reason)
        return {}


async def _own_meta(
    path: str, disk: Disk, rng: Random, cluster_id: str, node_id: int
) -> MetaProperties:
    """What `meta.properties` says, after checking it; made when the directory is empty."""
    meta_path = f"{path}/{META_PROPERTIES}"
    if not disk.exists(meta_path):
        others = [name for name in disk.list(path) if name not in IGNORED]
        if others:
            raise DirectoryRefused(
                f"{meta_path} is missing, but the directory holds {others[0]}: "
                "it is not formatted again over data"
            )
        meta = MetaProperties(cluster_id, node_id, _new_directory_id(rng))
        # The directory may have been made just now: its own name belongs to its parent.
        await disk.sync_dir(dirname(path.rstrip("/")) or ".")
        await write_file_atomically(disk, meta_path, meta.encode())
        return meta
    try:
        meta = MetaProperties.decode(read_file(disk, meta_path))
    except ValueError as reason:
        raise DirectoryRefused(f"{meta_path} cannot be used: {reason}") from None
    if meta.cluster_id != cluster_id:
        raise DirectoryRefused(
            f"{meta_path} is of cluster {meta.cluster_id}, this node is configured for {cluster_id}"
        )
    if meta.node_id != node_id:
        raise DirectoryRefused(
            f"{meta_path} is of node {meta.node_id}, this node is configured as {node_id}"
        )
    return meta


def _holds_batches(disk: Disk, directory: str) -> bool:
    if not disk.is_dir(directory):
        return False
    for name in disk.list(directory):
        if name.endswith(LOG_SUFFIX):
            file = disk.open(f"{directory}/{name}")
            try:
                if file.size() > 0:
                    return True
            finally:
                file.close()
    return False


def _new_directory_id(rng: Random) -> UUID:
    """A random id; the first hundred are reserved by Kafka (0 unknown, 1 unassigned, 2 lost)."""
    return UUID(int=rng.getrandbits(128) | 1 << 64, version=4)
