"""The shell around groups that decide: leadership, loading, timers and the log.

Waiting JoinGroup and SyncGroup requests are futures, held by the token that the group hands back
with its answer; their number is bounded by `group.max.size` and by the connections' own limits.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from types import MappingProxyType
from typing import TypeVar

from ..metadata.group_configs import configs_of_group
from ..metadata.image import ClusterImage
from ..metadata.topic_configs import BrokerSettings
from ..seam import Clock, OnFatal, TaskScope, frozen
from ..wire import ErrorCode
from .classic_group import ClassicGroup
from .consumer.group import ConsumerGroup
from .consumer.seen_topics import SeenTopics
from .consumer.settings import ConsumerGroupSettings
from .consumer.topic_patterns import TopicPatterns
from .effects import Effect, JoinAnswer, Persist, SyncAnswer
from .expiry import expired_records
from .log_records import GroupRecord, LogRecord, OffsetRecord, decode, group_value
from .offsets_partition import OffsetsPartition
from .settings import GroupSettings
from .store import OFFSETS_TOPIC, Appended, LostRecords, OffsetStore, partition_for
from .writer import OnDone, PartitionWriter

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer", JoinAnswer, SyncAnswer)
RELOAD_DELAY_S = 0.1
"""Pause before a partition whose log could not be read is read again."""

NOTHING_STATIC: Mapping[str, str] = MappingProxyType({})
"""What a node was started with is in its `GroupSettings`."""

EXPIRY_GROUPS_PER_TURN = 100
"""A group with few offsets takes some microseconds to judge (RULES F1)."""

TIMER_IS_EARLY_MS = 1
"""The loop may call a timer up to its clock resolution early; the group's time is whole
milliseconds, so a timer that came early would arm itself again at once, for ever."""

APPEND_ERRORS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""What a client is told when the log refuses; all others: COORDINATOR_NOT_AVAILABLE."""


@frozen
class Armed:
    """A group's timer. A loop may not tell when its handle is due: uvloop makes one of what is due
    at once that does not know."""

    deadline_ms: int
    handle: asyncio.Handle


@dataclass(slots=True)
class Held:
    """An offsets partition this node leads, with all that belongs to its leadership."""

    state: OffsetsPartition
    writer: PartitionWriter
    tasks: TaskScope
    timers: dict[str, Armed]
    assigning: dict[str, ConsumerGroup]
    """Groups whose assignment a task sees to."""


class CoordinatorCore(ABC):
    """Leadership, loading, timers and answers; the APIs stand in `GroupCoordinator`."""

    def __init__(
        self,
        *,
        node_id: int,
        store: OffsetStore,
        image: Callable[[], ClusterImage],
        settings: GroupSettings,
        clock: Clock,
        rng: Random,
        on_fatal: OnFatal,
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._image = image
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._on_fatal = on_fatal
        self._held: dict[int, Held] = {}
        self._retiring = TaskScope(on_fatal)
        self._patterns = TopicPatterns()
        self._tokens = itertools.count(1)
        self._joins: dict[int, asyncio.Future[JoinAnswer]] = {}
        self._syncs: dict[int, asyncio.Future[SyncAnswer]] = {}

    # --- leadership ------------------------------------------------------------------------

    def on_leadership(self, partition: int, leader: bool, leader_epoch: int) -> None:
        """This node began or ceased to lead a partition of the offsets topic, in this epoch."""
        held = self._held.get(partition)
        if held is not None and leader and held.state.leader_epoch == leader_epoch:
            return
        if held is not None:
            self._unload(held)
        if leader:
            self._load(partition, leader_epoch)

    def _load(self, partition: int, leader_epoch: int) -> None:
        tasks = TaskScope(self._on_fatal)
        state = OffsetsPartition(partition, leader_epoch, self._settings)
        writer = PartitionWriter(
            partition,
            store=self._store,
            clock=self._clock,
            timeout_ms=self._settings.commit_timeout_ms,
            tasks=tasks,
            on_unknown=lambda: self._reload(held),
        )
        held = Held(state, writer, tasks, timers={}, assigning={})
        self._held[partition] = held
        tasks.spawn(self._replay_log(held), name=f"offsets-load-{partition}")

    async def _replay_log(self, held: Held) -> None:
        """Read until the log's end is committed; only then is "no offset" a true answer."""
        state = held.state
        while True:
            try:
                async for chunk in self._store.read(state.partition):
                    if isinstance(chunk, LostRecords):
                        self._replay_lost(state, chunk)
                        continue
                    for entry in decode(chunk):
                        state.replay(entry, now_ms())
                break
            except LookupError:
                # Leadership is moving; on_leadership will come. Begin anew if it does not.
                state.begin_anew()
                await asyncio.sleep(RELOAD_DELAY_S)
        state.on_replayed()
        state.loaded = True
        for group in state.groups.values():
            self._arm_timer(held, group)
        for consumer_group in state.consumer_groups.values():
            consumer_group.settings = self._consumer_settings(consumer_group.group_id)
            consumer_group.begin_sessions(now_ms())
            self._arm_timer(held, consumer_group)
        held.tasks.spawn(self._expire_offsets(held), name=f"offsets-expiry-{state.partition}")

    def _replay_lost(self, state: OffsetsPartition, lost: LostRecords) -> None:
        logger.error(
            "%s-%d: records %d to %d are lost, and no other replica has them: groups of this "
            "partition may find older positions, or none, and their members join again",
            OFFSETS_TOPIC,
            state.partition,
            lost.first_offset,
            lost.next_offset - 1,
        )
        state.on_lost(lost)

    async def _expire_offsets(self, held: Held) -> None:
        """Now and then look for what nobody needs any more; a few groups in each loop turn."""
        settings, state = self._settings, held.state
        while True:
            await asyncio.sleep(settings.offsets_retention_check_interval_ms / 1000)
            for position, group_id in enumerate(state.names()):
                matches = await self._matches_of(state, group_id)
                self._expire_group(held, group_id, SeenTopics(self._image(), matches))
                if position % EXPIRY_GROUPS_PER_TURN == EXPIRY_GROUPS_PER_TURN - 1:
                    await asyncio.sleep(0)

    async def _matches_of(
        self, state: OffsetsPartition, group_id: str
    ) -> Mapping[str, tuple[str, ...]]:
        group = state.consumer_groups.get(group_id)
        regexes = sorted(group.regexes) if group is not None else []
        return await self._patterns.matching(regexes, self._image().topics)

    def _expire_group(self, held: Held, group_id: str, seen: SeenTopics) -> None:
        records = expired_records(
            held.state,
            group_id,
            seen,
            wall_ms=self._clock.now_ms(),
            retention_ms=self._settings.offsets_retention_ms,
        )
        if not records or not held.writer.has_room(len(records)):
            return

        def settled(appended: Appended) -> None:
            _apply_offsets(held, records, appended)

        if isinstance(records[-1], OffsetRecord):
            self._append(held, records, settled)
        else:
            self._bury(held, group_id)
            self._append_or_reload(held, records, settled)

    def _bury(self, held: Held, group_id: str) -> None:
        """A member that joins while the tombstone is on its way starts a new group."""
        held.state.consumer_groups.pop(group_id, None)
        group = held.state.groups.pop(group_id, None)
        if group is not None:
            self._carry_out(held, group, group.die(ErrorCode.GROUP_ID_NOT_FOUND))

    def _reload(self, held: Held) -> None:
        """An append's outcome is unknown: only the log can tell."""
        state = held.state
        if self._held.get(state.partition) is held:
            self._unload(held)
            self._load(state.partition, state.leader_epoch)

    def _unload(self, held: Held) -> None:
        self._held.pop(held.state.partition, None)
        for timer in held.timers.values():
            timer.handle.cancel()
        held.timers.clear()
        held.writer.close()
        for group in held.state.groups.values():
            self._carry_out(held, group, group.die(ErrorCode.NOT_COORDINATOR))
        self._retiring.spawn(held.tasks.close(), name=f"offsets-unload-{held.state.partition}")

    async def stop(self) -> None:
        """Answer everybody NOT_COORDINATOR and end all tasks."""
        for held in list(self._held.values()):
            self._unload(held)
        await self._retiring.close()

    # --- finding a group -------------------------------------------------------------------

    def _find(self, group_id: str) -> Held | ErrorCode:
        topic = self._image().topics.get(OFFSETS_TOPIC)
        if topic is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition = partition_for(group_id, len(topic.partitions))
        held = self._held.get(partition)
        if held is None:
            # Elected, but the log is still being opened here: nobody else is to be asked.
            elected = topic.partitions[partition].leader == self._node_id
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if elected else ErrorCode.NOT_COORDINATOR
        return held if held.state.loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def _group(self, held: Held, group_id: str) -> ClassicGroup:
        """The group, made when it is not there."""
        group = held.state.groups.get(group_id)
        if group is None:
            group = ClassicGroup(group_id, self._settings)
            held.state.groups[group_id] = group
        return group

    def _consumer_settings(self, group_id: str) -> ConsumerGroupSettings:
        """As they are now: what comes with the image may change at any time."""
        image = self._image()
        broker = BrokerSettings.of(image, NOTHING_STATIC, self._node_id)
        return self._settings.consumer.in_force(configs_of_group(image, group_id), broker)

    # --- what groups ask for -----------------------------------------------------------------

    def _carry_out(self, held: Held, group: ClassicGroup, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, JoinAnswer):
                _answer(self._joins.pop(effect.token, None), effect)
            elif isinstance(effect, SyncAnswer):
                _answer(self._syncs.pop(effect.token, None), effect)
            else:
                self._persist(held, group, effect)
        self._arm_timer(held, group)

    def _persist(self, held: Held, group: ClassicGroup, persist: Persist) -> None:
        group.since_wall_ms = self._clock.now_ms()
        value = group_value(group, persist.assignments, wall_ms=group.since_wall_ms)
        record = GroupRecord(group.group_id, value)

        def on_done(appended: Appended) -> None:
            told = told_to_client(appended.error)
            self._carry_out(held, group, group.on_persisted(persist, told, now_ms()))

        self._append(held, [record], on_done)

    def _append(self, held: Held, records: Sequence[LogRecord], on_done: OnDone) -> None:
        """Hand records to the log; while they are on their way their groups are marked."""
        groups = [record.group_id for record in records]

        def settled(appended: Appended) -> None:
            for group_id in groups:
                held.state.settled(group_id)
            on_done(appended)

        for group_id in groups:
            held.state.sent(group_id)
        held.writer.write(records, settled)

    def _arm_timer(self, held: Held, group: ClassicGroup | ConsumerGroup) -> None:
        deadline_ms = group.next_deadline_ms()
        timer = held.timers.get(group.group_id)
        if timer is not None:
            if timer.deadline_ms == deadline_ms:
                return
            timer.handle.cancel()
            del held.timers[group.group_id]
        if deadline_ms is None or self._held.get(held.state.partition) is not held:
            return
        loop = asyncio.get_running_loop()
        handle = loop.call_at(deadline_ms / 1000, self._on_timer, held, group)
        held.timers[group.group_id] = Armed(deadline_ms, handle)

    def _on_timer(self, held: Held, group: ClassicGroup | ConsumerGroup) -> None:
        try:
            self._let_time_pass(held, group)
        except Exception as error:
            # No task owns a timer: the group would go on without one, and wait for ever.
            self._on_fatal(error)

    def _let_time_pass(self, held: Held, group: ClassicGroup | ConsumerGroup) -> None:
        held.timers.pop(group.group_id, None)
        due_ms = group.next_deadline_ms()
        if due_ms is None or due_ms > now_ms() + TIMER_IS_EARLY_MS:
            # A heartbeat has put it off, and arms the timer only when its records are replicated.
            self._arm_timer(held, group)
            return
        due_ms = max(now_ms(), due_ms)
        if isinstance(group, ConsumerGroup):
            self._fence_overdue(held, group, due_ms)
        else:
            self._carry_out(held, group, group.on_time(due_ms))

    def _on_joiner_gone(self, held: Held, group: ClassicGroup, token: int) -> None:
        try:
            self._carry_out(held, group, group.on_joiner_gone(token, now_ms()))
        except Exception as error:
            # No task owns the end of a connection.
            self._on_fatal(error)

    # --- groups of the consumer protocol -----------------------------------------------------

    def _append_or_reload(
        self,
        held: Held,
        records: Sequence[LogRecord],
        on_done: OnDone = lambda appended: None,
    ) -> None:
        """Write what is in force here already: if it can not be written, the log is right."""

        def settled(appended: Appended) -> None:
            if appended.error is not ErrorCode.NONE:
                self._reload(held)
            on_done(appended)

        self._append(held, records, settled)

    async def _settle(self, held: Held, records: Sequence[LogRecord]) -> ErrorCode:
        """Wait until these records, and all that were written before them, are replicated."""
        return await _written(partial(self._append_or_reload, held, records))

    @abstractmethod
    def _fence_overdue(self, held: Held, group: ConsumerGroup, due_ms: int) -> None: ...

    async def _write(self, held: Held, records: list[LogRecord]) -> ErrorCode:
        """Write and wait; committed offsets are in force, in log order, when this returns."""
        return await _written(_in_force_when_written(held, records, partial(self._append, held)))

    async def _write_burial(self, held: Held, records: list[LogRecord]) -> ErrorCode:
        """As `_write`, for a group that is gone here already: if its tombstones can not be
        written, it is not gone."""
        append = partial(self._append_or_reload, held)
        return await _written(_in_force_when_written(held, records, append))

    def _expect_join(self) -> tuple[int, asyncio.Future[JoinAnswer]]:
        token = next(self._tokens)
        future: asyncio.Future[JoinAnswer] = asyncio.get_running_loop().create_future()
        self._joins[token] = future
        return token, future

    def _expect_sync(self) -> tuple[int, asyncio.Future[SyncAnswer]]:
        token = next(self._tokens)
        future: asyncio.Future[SyncAnswer] = asyncio.get_running_loop().create_future()
        self._syncs[token] = future
        return token, future


def _in_force_when_written(
    held: Held,
    records: Sequence[LogRecord],
    append: Callable[[Sequence[LogRecord], OnDone], None],
) -> Callable[[OnDone], None]:
    def write(on_done: OnDone) -> None:
        def settled(appended: Appended) -> None:
            _apply_offsets(held, records, appended)
            on_done(appended)

        append(records, settled)

    return write


async def _written(write: Callable[[OnDone], None]) -> ErrorCode:
    """What the client is told of a write that has begun, when it is through."""
    done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

    def on_done(appended: Appended) -> None:
        if not done.done():
            done.set_result(told_to_client(appended.error))

    write(on_done)
    return await done


def _apply_offsets(held: Held, records: Sequence[LogRecord], appended: Appended) -> None:
    """Put replicated commits in force. Groups are changed before their records are written."""
    if appended.error is ErrorCode.NONE:
        for log_offset, record in enumerate(records, appended.base_offset):
            if isinstance(record, OffsetRecord):
                held.state.apply_offset(record, log_offset=log_offset)


def _answer(future: asyncio.Future[Answer] | None, answer: Answer) -> None:
    if future is not None and not future.done():
        future.set_result(answer)


def now_ms() -> int:
    """The loop's time in whole milliseconds."""
    return int(asyncio.get_running_loop().time() * 1000)


def told_to_client(error: ErrorCode) -> ErrorCode:
    """The coordinator's answer for an append's error."""
    if error is ErrorCode.NONE:
        return error
    return APPEND_ERRORS.get(error, ErrorCode.COORDINATOR_NOT_AVAILABLE)
