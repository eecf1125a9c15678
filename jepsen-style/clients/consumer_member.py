"""A member of a consumer group by the consumer protocol (KIP-848).

The coordinator tells it with each heartbeat what it shall hold. What it shall not hold any more, it
goes on with until its last poll is committed; then it says that it has given it up, and another
member is told. So partitions change hands one by one, each a `Part` with a generation of its own:
the member epoch in which it was told of it. What the history says of a part is an `assignment` from
before its first commit was taken to after: an answer may come from a coordinator that was deposed
without knowing it, or come late, but nobody can commit what another owns.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from random import Random

from ..history import Outcome
from . import consumer_group_requests as requests
from .cluster import RETRY_S, ClusterClient, NoAnswer, NotAsked
from .consumer_group_requests import JOINING_EPOCH, LEAVING_EPOCH, NO_TOPIC_ID, Beat, Owned
from .coordinated import Gone, Group, Member
from .journal import Journal
from .ownership import Ownership
from .requests import Api, TopicPartition


class Part:
    """One partition, from being told of it until it is given up."""

    def __init__(self, member: ConsumerMember, partition: TopicPartition, epoch: int) -> None:
        self.gives_up = False
        """Set to have it commit what it has read, and end."""
        self.owns: Ownership | None = None
        self._member = member
        self._partition = partition
        self._epoch = epoch
        self.task = asyncio.get_running_loop().create_task(self._hold())

    async def _hold(self) -> None:
        while not self.gives_up:
            try:
                await self._own()
            except (Gone, NotAsked, NoAnswer):
                # Whether it is still a member, its heartbeats tell.
                await asyncio.sleep(RETRY_S)

    async def _own(self) -> None:
        """Raises Gone, NotAsked or NoAnswer."""
        journal, partition = self._member.journal, self._partition
        process = journal.process()
        asked = ["assignment", self._member.group.called(partition)]
        journal.ask(process, "assignment", [asked])
        told: list[object] | None = None
        self.owns = Ownership(self._member, process, self._epoch, [partition])
        try:
            await self.owns.begin()
            await self.owns.take_over()
            told = [*asked, self._epoch, self._member.member_id, [partition.key]]
        finally:
            self.owns.end()
            outcome = Outcome.INFO if told is None else Outcome.OK
            journal.answer(process, outcome, [told or asked])
        await self.owns.work(lambda: not self.gives_up, _at_once)


async def _at_once() -> None:
    """The member's heartbeats go on beside its parts."""


class ConsumerMember(Member):
    def __init__(self, group: Group, client: ClusterClient, journal: Journal, dice: Random) -> None:
        super().__init__(group, client, journal, dice)
        self.member_id = ""
        self._epoch = JOINING_EPOCH
        self._topic_id = NO_TOPIC_ID
        self._told: dict[TopicPartition, int] = {}
        """What it shall hold, and the epoch in which it was first told so."""
        self._parts: dict[TopicPartition, Part] = {}
        self._said: list[TopicPartition] | None = None
        """What it has told the coordinator to hold; None: who knows what has been heard."""

    async def run(self) -> None:
        try:
            while not self.stopping:
                await self._live()
        finally:
            for part in self._parts.values():
                part.task.cancel()

    async def _live(self) -> None:
        self.begin_life()
        self.member_id = f"{self.dice.getrandbits(64):016x}"
        self._epoch = JOINING_EPOCH
        while self.lives:
            try:
                beat = await self._beat()
            except Gone:
                await self._abandon()
                self._epoch = JOINING_EPOCH
                await asyncio.sleep(RETRY_S)
            except (NotAsked, NoAnswer):
                self._said = None
                await asyncio.sleep(RETRY_S)
            else:
                await self._reconcile(beat)
        if self.settled or self.stopping or self.dice.random() < 0.5:
            await self._leave()
            await asyncio.sleep(self.dice.random() * self.group.session_timeout_s)
        else:
            await self._stop_without_a_word()

    async def _beat(self) -> Beat:
        """Raises Gone, NotAsked or NoAnswer."""
        held = list(self._parts)
        everything = self._said is None or self._epoch == JOINING_EPOCH
        body = requests.heartbeat_request(
            self.group.name,
            self.member_id,
            self._epoch,
            topics=[self.group.topic] if everything else None,
            rebalance_timeout_ms=int(self.group.session_timeout_s * 1000) if everything else -1,
            owned=self._owned() if everything or held != self._said else None,
        )
        answer = await self.ask(Api.CONSUMER_GROUP_HEARTBEAT, body)
        beat = requests.heartbeat_response(answer)
        self.refuse(beat.error)
        self._said = held
        self._epoch = beat.member_epoch
        return beat

    def _owned(self) -> list[Owned]:
        numbers = tuple(partition.partition for partition in self._parts)
        return [Owned(self._topic_id, numbers)] if numbers else []

    async def _reconcile(self, beat: Beat) -> None:
        """Take what is told, give up the rest, and wait until the next heartbeat is due."""
        for owned in beat.assignment or ():
            self._topic_id = owned.topic_id
        if beat.assignment is not None:
            self._told = {
                one: self._told.get(one, beat.member_epoch)
                for owned in beat.assignment
                for one in (TopicPartition(self.group.topic, n) for n in owned.partitions)
            }
        for one, part in self._parts.items():
            part.gives_up = part.gives_up or one not in self._told
        for one, epoch in self._told.items():
            if one not in self._parts:
                self._parts[one] = Part(self, one, epoch)
                self.rebalances += 1
        leaving = [part.task for part in self._parts.values() if part.gives_up]
        if leaving:
            await asyncio.wait(leaving, timeout=beat.interval_ms / 1000)
        elif list(self._parts) == self._said:
            await asyncio.sleep(beat.interval_ms / 1000)
        for one, part in list(self._parts.items()):
            if part.task.done():
                part.task.result()
                del self._parts[one]

    async def _abandon(self) -> None:
        """Nothing is the member's any more."""
        for part in self._parts.values():
            part.task.cancel()
        for part in self._parts.values():
            with contextlib.suppress(asyncio.CancelledError):
                await part.task
        self._parts.clear()
        self._told.clear()

    async def _leave(self) -> None:
        for part in self._parts.values():
            part.gives_up = True
        for part in self._parts.values():
            await part.task
        self._parts.clear()
        self._told.clear()
        body = requests.heartbeat_request(self.group.name, self.member_id, LEAVING_EPOCH)
        # Unheard, the coordinator finds out by its session.
        with contextlib.suppress(NotAsked, NoAnswer):
            await self.ask(Api.CONSUMER_GROUP_HEARTBEAT, body)

    async def _stop_without_a_word(self) -> None:
        """And come back with commits of what it owned long ago, as who was stalled does."""
        owned = [part.owns for part in self._parts.values() if part.owns is not None]
        await self._abandon()
        await asyncio.sleep(self.dice.uniform(0.5, 2.0) * self.group.session_timeout_s)
        for owns in owned:
            await owns.commit_late()

    async def fetch_offsets(
        self, partitions: tuple[TopicPartition, ...]
    ) -> tuple[int, Mapping[TopicPartition, int]]:
        body = requests.offset_fetch_request(
            self.group.name, self._epoch, self.member_id, partitions
        )
        answer = await self.ask(Api.OFFSET_FETCH, body, version=requests.FETCH_VERSION)
        return requests.offset_fetch_response(answer)

    async def commit_offsets(
        self, generation_id: int, offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        """In the member's epoch of now, whatever the part's generation is."""
        body = requests.offset_commit_request(self.group.name, self._epoch, self.member_id, offsets)
        answer = await self.ask(Api.OFFSET_COMMIT, body, version=requests.COMMIT_VERSION)
        return requests.offset_commit_response(answer)
