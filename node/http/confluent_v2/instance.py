"""One consumer instance: a member of its group, or a reader of partitions that it was told to read.

Polls wait for each other; everything else may happen meanwhile. A task of its own keeps the
membership. What a poll gives out moves the positions in the same turn of the loop in which it is
decided, so that a poll that is cut off has moved nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import orjson

from ....seam import TaskScope, frozen
from ....wire import ErrorCode
from ..admission import Room
from ..bodies import worked
from ..errors import ApiError, from_kafka, no_partition, no_topic
from ..leaders import Leaders
from ..partition_ends import EARLIEST as BEGINNING
from ..partition_ends import LATEST as END
from ..partition_ends import offset_at
from ..ports import HttpNode
from .formats import Format, record_out
from .group_link import CommittedOffset, GroupLink
from .instance_config import EARLIEST, LATEST, InstanceConfig
from .membership import Membership, Place, Standing
from .positions import Positions
from .reader import Fetched, OutOfRange, Reading, Wanted, read, until_there_is_more

log = logging.getLogger(__name__)

LEAST_POLL_S = 0.1
"""A poll without patience still gets its answer from the leaders, if they are quick."""

AUTO_COMMIT_S = 5.0
"""Kafka's `auto.commit.interval.ms`."""

JOIN_S = 5.0
"""How long a request that needs partitions waits for the group to give some."""

HURRY_S = 0.3
"""Between heartbeats while somebody waits for partitions, and after one without an answer."""

LEAVE_S = 2.0

TopicPartition = tuple[str, int]

_OUT_OF_THE_GROUP = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


@frozen
class Polled:
    """Records as JSON, and the number by which they can be taken back; 0: there are none."""

    body: bytes
    delivery: int


EMPTY = Polled(b"[]", 0)


class Instance:
    """Raises ApiError. `start` is called once, `close` at the end."""

    def __init__(
        self,
        node: HttpNode,
        leaders: Leaders,
        group_id: str,
        name: str,
        config: InstanceConfig,
        member_id: UUID,
        room: Room,
    ) -> None:
        """`room`: memory for records on their way, shared by all instances of the node."""
        self.group_id = group_id
        self.name = name
        self.config = config
        self._node = node
        self._leaders = leaders
        self._room = room
        self._link = GroupLink(node, leaders, group_id, client_id=name)
        self._membership = Membership(group_id, str(member_id))
        self._positions = Positions()
        self._manual = False
        """It reads what it was assigned, and is no member."""
        self._tasks = TaskScope(self._failed)
        self._turn = asyncio.Lock()
        self._speaking = asyncio.Lock()
        self._beat_due = asyncio.Event()
        self._changed = asyncio.Event()
        """Set when partitions came or a refusal did."""
        self._polls_in_need = 0
        self._auto_committed_at = 0.0
        self._auto_commit: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._tasks.spawn(self._keep_membership(), name=f"consumer {self.name}")

    async def close(self, *, commit: bool) -> None:
        """Leave the group. `commit`: its client ends it in order, so what was given out is read."""
        try:
            async with asyncio.timeout(LEAVE_S):
                if commit and self.config.auto_commit:
                    await self._commit_quietly(self._positions.to_commit())
                await self._leave()
                await self._tasks.close()
        except TimeoutError:
            log.info("consumer %s of %s: left without a goodbye", self.name, self.group_id)
            await self._tasks.close()

    def _failed(self, error: BaseException) -> None:
        log.error("consumer %s of %s failed", self.name, self.group_id, exc_info=error)

    # What it reads

    async def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        if self._manual and self._positions.owned():
            raise _mixed("partitions are assigned to this instance")
        self._manual = False
        self._membership.subscribe(topics, pattern)
        self._changed.clear()
        self._beat_due.set()

    def subscription(self) -> dict[str, Any]:
        """As Strimzi's bridge says it: topics, and the partitions that came of them."""
        by_topic: dict[str, list[int]] = {}
        for topic, partition in self.assignment():
            by_topic.setdefault(topic, []).append(partition)
        topics = list(self._membership.topics)
        if self._membership.pattern is not None:
            topics = sorted(by_topic)
        return {
            "topics": topics,
            "partitions": [{topic: numbers} for topic, numbers in sorted(by_topic.items())],
        }

    async def unsubscribe(self) -> None:
        """Partitions that were assigned by hand go, too, as in Kafka."""
        if self.config.auto_commit:
            await self._commit_quietly(self._positions.to_commit())
        self._positions.give_up(self._positions.owned())
        self._manual = False
        await self._leave()

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        if self._membership.subscribed:
            raise _mixed("this instance is subscribed to topics")
        places = [self._place(*one) for one in partitions]
        self._manual = True
        self._positions.give_up([one for one in self._positions.owned() if one not in places])
        self._positions.own(places)

    def assignment(self) -> list[TopicPartition]:
        names = self._node.image().topic_names
        return sorted(
            (names[topic_id], partition)
            for topic_id, partition in self._positions.owned()
            if topic_id in names
        )

    # Records

    async def poll(self, timeout_ms: int | None, max_bytes: int, wanted: Format) -> Polled:
        """Never later than its time, however long joining, leaders or the coordinator take."""
        if wanted is not self.config.format:
            raise ApiError(
                406,
                f"this instance gives out {self.config.format}, not {wanted}",
                error_code=40601,
            )
        if not self._manual and not self._membership.subscribed:
            raise _illegal("this instance is neither subscribed nor assigned anything")
        timeout_ms = self.config.poll_ms if timeout_ms is None else timeout_ms
        until = asyncio.get_running_loop().time() + max(LEAST_POLL_S, timeout_ms / 1000)
        try:
            async with asyncio.timeout_at(until), self._turn:
                self._commit_in_passing()
                return await self._poll(max_bytes, until)
        except TimeoutError:
            return EMPTY

    async def _poll(self, max_bytes: int, until: float) -> Polled:
        while True:
            await self._partitions_come()
            await self._find_positions()
            wanted = self._wanted()
            if not wanted:
                # All its topics were deleted; the group will say so.
                await asyncio.sleep(HURRY_S)
                continue
            reading = Reading(max_bytes, self.config.fetch_min_bytes, self.config.read_committed)
            # The batches as fetched, decoded, as JSON, and once more on their way.
            async with self._room.taken(4 * max_bytes):
                found = await read(self._node, wanted, reading)
                polled = await self._give_out(found, max_bytes)
            if polled is not None:
                return polled
            if not found:
                await until_there_is_more(self._node, wanted, reading, until)
                if asyncio.get_running_loop().time() >= until:
                    return EMPTY

    async def _give_out(
        self, found: Sequence[Fetched | OutOfRange], max_bytes: int
    ) -> Polled | None:
        """None when there was nothing to show; the positions are past it then."""
        for one in found:
            if isinstance(one, OutOfRange) and self._positions.at(one.wanted.place) is not None:
                self._positions.forget(one.wanted.place)
        fetched = [one for one in found if isinstance(one, Fetched)]
        size = sum(
            len(out.record.key or b"") + len(out.record.value or b"")
            for one in fetched
            for out in one.records.records
        )
        rendered = await worked(size, partial(_rendered, fetched, max_bytes, self.config.format))
        # From here to the end nothing else runs.
        after: dict[Place, int] = {}
        texts: list[bytes] = []
        problem: ApiError | None = None
        for part in rendered:
            wanted = part.fetched.wanted
            if self._positions.at(wanted.place) != wanted.offset:
                continue  # it was sought, or belongs to somebody else now
            if part.texts:
                after[wanted.place] = part.next_offset
                texts += part.texts
            elif part.problem is None:
                self._positions.skip(wanted.place, wanted.offset, part.next_offset)
            problem = problem or part.problem
        if not texts and problem is not None:
            raise problem
        if not texts:
            return None
        delivery = self._positions.deliver(after)
        return Polled(b"[" + b",".join(texts) + b"]", delivery.number)

    def take_back(self, delivery: int) -> None:
        self._positions.take_back(delivery)

    def _wanted(self) -> list[Wanted]:
        names = self._node.image().topic_names
        found = []
        for place in self._positions.in_turn():
            offset = self._positions.at(place)
            if offset is not None and place[0] in names:
                found.append(Wanted(place, names[place[0]], offset))
        return found

    async def _partitions_come(self) -> None:
        """Returns when there are some; the caller bounds the wait."""
        self._polls_in_need += 1
        try:
            while not self._positions.owned():
                if self._membership.standing is Standing.REFUSED:
                    raise self._refusal()
                self._changed.clear()
                self._beat_due.set()
                await self._changed.wait()
        finally:
            self._polls_in_need -= 1

    def _refusal(self) -> ApiError:
        assert self._membership.refusal is not None
        error, message = self._membership.refusal
        # The next one who asks makes it try again.
        self._membership.subscribe(self._membership.topics, self._membership.pattern)
        return from_kafka(error, message)

    async def _find_positions(self) -> None:
        unknown = self._positions.unknown()
        if not unknown:
            return
        committed = await self._link.committed(unknown)
        names = self._node.image().topic_names
        for place in unknown:
            if place in committed:
                self._positions.begin(place, committed[place].offset)
            elif place[0] in names:
                self._positions.begin(place, await self._reset((names[place[0]], place[1])))

    async def _reset(self, partition: TopicPartition) -> int:
        if self.config.reset not in (EARLIEST, LATEST):
            raise ApiError(
                422,
                f"nothing is committed for {partition[0]}-{partition[1]}, "
                "and auto.offset.reset is none",
                hint="seek, or commit an offset",
            )
        end = BEGINNING if self.config.reset == EARLIEST else END
        return await offset_at(self._node, self._leaders, partition, end)

    # Offsets

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset] | None) -> None:
        """None: of what was given out."""
        if offsets is None:
            wanted = {
                place: CommittedOffset(offset)
                for place, offset in self._positions.to_commit().items()
            }
        else:
            wanted = {self._place(*where): committed for where, committed in offsets.items()}
        if wanted:
            await self._commit(wanted)

    async def _commit(self, offsets: Mapping[Place, CommittedOffset]) -> None:
        try:
            await self._commit_as_it_is(offsets)
        except ApiError as error:
            if error.kafka_error not in _OUT_OF_THE_GROUP:
                raise
            self._beat_due.set()
            raise _illegal(
                "the group has given partitions to another member meanwhile; "
                "what was not committed is given out again"
            ) from None
        self._positions.note_committed({place: one.offset for place, one in offsets.items()})

    async def _commit_as_it_is(self, offsets: Mapping[Place, CommittedOffset]) -> None:
        """As the member in its epoch, or as nobody."""
        for last in (False, True):
            member = self._membership.standing is Standing.MEMBER
            try:
                return await self._link.commit(
                    offsets,
                    member_id=self._membership.member_id if member else "",
                    epoch=self._membership.epoch if member else -1,
                )
            except ApiError as error:
                if last or error.kafka_error is not ErrorCode.STALE_MEMBER_EPOCH:
                    raise
            # A beat under way may have brought the member into its next epoch meanwhile.
            async with self._speaking:
                pass

    async def committed(
        self, partitions: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, CommittedOffset]:
        if partitions is None:
            partitions = self.assignment()
        places = {self._place(*one): one for one in partitions}
        found = await self._link.committed(places)
        return {places[place]: committed for place, committed in found.items() if place in places}

    async def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        places = await self._owned_places(offsets)
        for where, place in places.items():
            self._positions.seek(place, offsets[where])

    async def seek_to(self, timestamps: Mapping[TopicPartition, int]) -> None:
        """A time, or `BEGINNING` or `END`; the end where nothing is that young."""
        places = await self._owned_places(timestamps)
        found = {}
        for where in places:
            offset = await offset_at(self._node, self._leaders, where, timestamps[where])
            if offset < 0:
                offset = await offset_at(self._node, self._leaders, where, END)
            found[where] = offset
        await self.seek(found)

    async def _owned_places(
        self, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Place]:
        places = {where: self._place(*where) for where in wanted}
        if self._membership.subscribed and not self._positions.owned():
            try:
                async with asyncio.timeout(JOIN_S):
                    await self._partitions_come()
            except TimeoutError:
                log.debug("consumer %s was given no partitions yet", self.name)
        for (topic, partition), place in places.items():
            if not self._positions.owns(place):
                raise ApiError(
                    404, f"{topic}-{partition} is not assigned to this instance", error_code=40402
                )
        return places

    def _place(self, topic: str, partition: int) -> Place:
        found = self._node.image().topics.get(topic)
        if found is None:
            raise no_topic(topic)
        if partition >= len(found.partitions):
            raise no_partition(topic, partition, len(found.partitions))
        return found.topic_id, partition

    def _commit_in_passing(self) -> None:
        """What earlier answers gave out, every few seconds, without delaying this one."""
        now = asyncio.get_running_loop().time()
        running = self._auto_commit is not None and not self._auto_commit.done()
        if not self.config.auto_commit or running or now < self._auto_committed_at + AUTO_COMMIT_S:
            return
        offsets = self._positions.to_commit()
        if offsets:
            self._auto_committed_at = now
            self._auto_commit = self._tasks.spawn(
                self._commit_quietly(offsets), name=f"commit of consumer {self.name}"
            )

    async def _commit_quietly(self, offsets: Mapping[Place, int]) -> None:
        if not offsets:
            return
        try:
            await self._commit({place: CommittedOffset(at) for place, at in offsets.items()})
        except ApiError as error:
            log.info("consumer %s of %s: not committed: %s", self.name, self.group_id, error)

    # Membership

    async def _keep_membership(self) -> None:
        while True:
            if not self._membership.subscribed or self._membership.refusal is not None:
                self._changed.set()
                await self._beat_due.wait()
            self._beat_due.clear()
            if not self._membership.subscribed:
                continue
            interval_s = await self._beat()
            if self._polls_in_need and not self._positions.owned():
                interval_s = min(interval_s, HURRY_S)
            try:
                async with asyncio.timeout(interval_s):
                    await self._beat_due.wait()
            except TimeoutError:
                continue
            # Polls that wait ask for a beat, but not more often than this.
            await asyncio.sleep(HURRY_S if self._polls_in_need else 0)

    async def _beat(self) -> float:
        """Seconds until the next one is due."""
        try:
            async with self._speaking:
                answer = await self._link.beat(self._membership.beat())
        except ApiError as error:
            log.debug("consumer %s of %s: no heartbeat: %s", self.name, self.group_id, error)
            return HURRY_S
        heard = self._membership.heard(answer)
        given_up = self._positions.to_commit(sorted(heard.revoked))
        self._positions.give_up(heard.revoked)
        self._positions.own(heard.added)
        if heard.added or self._membership.refusal is not None:
            self._changed.set()
        if given_up and self.config.auto_commit and self._membership.standing is Standing.MEMBER:
            # Before the next beat says that they are free.
            await self._commit_quietly(given_up)
        if heard.beat_again:
            return 0.0
        if answer.error_code:
            return HURRY_S
        return answer.heartbeat_interval_ms / 1000

    async def _leave(self) -> None:
        request = self._membership.leave()
        self._changed.set()
        if request is None:
            return
        try:
            # Behind the beat that is under way: one that came after it would join anew.
            async with self._speaking:
                await self._link.beat(request)
        except ApiError as error:
            log.info("consumer %s of %s: %s", self.name, self.group_id, error)


@frozen
class _Rendered:
    fetched: Fetched
    texts: list[bytes]
    next_offset: int
    """Behind what `texts` holds."""
    problem: ApiError | None = None
    """Why there are no more of them."""


def _rendered(fetched: Sequence[Fetched], max_bytes: int, wanted: Format) -> list[_Rendered]:
    """At least one record, and no more than `max_bytes` of keys and values beyond it."""
    found: list[_Rendered] = []
    size = 0
    full = False
    for one in fetched:
        texts: list[bytes] = []
        next_offset = one.wanted.offset
        problem = None
        for out in one.records.records:
            own = len(out.record.key or b"") + len(out.record.value or b"")
            full = full or (size > 0 and size + own > max_bytes)
            if full:
                break
            try:
                document = record_out(out, one.wanted.topic, one.wanted.place[1], wanted)
            except ApiError as error:
                problem = error
                break
            texts.append(orjson.dumps(document))
            size += own
            next_offset = out.record.offset + 1
        else:
            next_offset = one.records.next_offset
        found.append(_Rendered(one, texts, next_offset, problem))
    return found


def _mixed(sentence: str) -> ApiError:
    return ApiError(
        409,
        f"{sentence}; subscriptions and assignments exclude each other",
        error_code=40903,
        hint="DELETE the subscription first",
    )


def _illegal(sentence: str) -> ApiError:
    return ApiError(409, sentence, error_code=40903)
