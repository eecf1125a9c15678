"""A member of a consumer group, by the classic protocol with eager rebalances.

It joins, is given partitions, goes on where the group had committed, commits what it was given, and
leaves or just stops, to come back as somebody else. What the history says of it:

* `assignment`, from the request to join on: a later generation may be known elsewhere before the
  answer comes. The polls that follow are of the same process, which is how a checker knows whose
  they are; each generation has a process of its own, since positions go back to what is committed;
* `commit`, with the generation in which it was made;
* `committed`, which ends only when a commit of the same generation was taken: a coordinator that
  was deposed without knowing it may answer old offsets, and then no commit of this generation can
  succeed. Without such a commit nobody knows, and the read says nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from ..history import Outcome, outcome_of_error
from . import group_requests as groups
from .cluster import RETRY_S, ClusterClient, NoAnswer, NotAsked
from .consumer import Consumer
from .group_requests import Joined
from .journal import Journal
from .primitives import Reader, Writer
from .requests import Api, TopicPartition, error_name

GRACE_S = 2.0
"""Beyond the longest wait of a rebalance, for an answer."""
HEARTBEATS_PER_SESSION = 4
NO_OFFSET = -1

JOINS_AGAIN = frozenset(
    {"ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "MEMBER_ID_REQUIRED"}
)
"""The group has gone on without this member, or is about to."""


ASKS_AGAIN = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "KAFKA_STORAGE_ERROR",
        "NOT_COORDINATOR",
        "NOT_ENOUGH_REPLICAS",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_SERVER_ERROR",
    }
)
"""Another node coordinates, or this one cannot now."""


class Refused(Exception):
    """For a reason that no fault explains."""


class Group(NamedTuple):
    """Times in seconds."""

    name: str
    topic: str
    partitions: tuple[TopicPartition, ...]
    session_timeout_s: float
    life_s: float
    """How long a member stays, on the average."""


class Gone(Exception):
    """This generation is over for the member; whether it may join by its old name."""

    def __init__(self, *, forgotten: bool = False) -> None:
        super().__init__()
        self.forgotten = forgotten


class GroupMember:
    """One member after the other, none of them at the same time as another."""

    def __init__(self, group: Group, client: ClusterClient, journal: Journal, dice: Random) -> None:
        self.group = group
        self.committed: dict[TopicPartition, int] = {}
        """The highest that it was told to be committed."""
        self.rebalances = 0
        """Generations in which it had a part."""
        self.settled = False
        """Set to have it neither leave nor stop any more."""
        self.stopping = False
        self.client = client
        self.journal = journal
        self._dice = dice
        self._coordinator: int | None = None
        self._member_id = ""
        self._owns: _Ownership | None = None
        """What it owned last."""

    async def run(self) -> None:
        """Until `stopping` is set; it leaves then."""
        while not self.stopping:
            await self._live()
        await self._leave()

    async def _live(self) -> None:
        now = asyncio.get_running_loop().time
        end = now() + self._dice.expovariate(1 / self.group.life_s)
        while not self.stopping and (self.settled or now() < end):
            process = self.journal.process()
            self.journal.ask(process, "assignment", [["assignment", self.group.name]])
            try:
                generation_id, owned = await self._join()
            except (Gone, NotAsked, NoAnswer) as error:
                self.journal.answer(process, Outcome.INFO, [["assignment", self.group.name]])
                self.forget(error)
                await asyncio.sleep(RETRY_S)
                continue
            keys = [partition.key for partition in owned]
            told = ["assignment", self.group.name, generation_id, self._member_id, keys]
            self.journal.answer(process, Outcome.OK, [told])
            self.rebalances += 1
            self._owns = _Ownership(self, process, generation_id, owned, end)
            await self._owns.last()
        if not self.settled and not self.stopping:
            await self._end_this_life()

    async def _end_this_life(self) -> None:
        if self._dice.random() < 0.5:
            await self._leave()
            await asyncio.sleep(self._dice.random() * self.group.session_timeout_s)
            return
        # It stops without a word, and the coordinator finds out by its session; or it was only
        # stalled, and comes back with a commit of what it owned long ago.
        if self._owns is not None:
            await asyncio.sleep(self._dice.uniform(0.5, 2.0) * self.group.session_timeout_s)
            await self._owns.commit_late()
        self._member_id = ""

    def forget(self, error: Exception) -> None:
        if isinstance(error, Gone):
            if error.forgotten:
                self._member_id = ""
        else:
            self._coordinator = None

    # Asking the coordinator

    async def ask(self, api: Api, body: Writer, *, within: float = GRACE_S) -> Reader:
        """Raises NotAsked or NoAnswer."""
        if self._coordinator is None:
            self._coordinator = await self._find()
        try:
            return await self.client.ask(self._coordinator, api, body, within=within)
        except (NotAsked, NoAnswer):
            self._coordinator = None
            raise

    async def _find(self) -> int:
        body = groups.find_coordinator_request(self.group.name)
        try:
            answer = await self.client.ask_any(Api.FIND_COORDINATOR, body)
        except NoAnswer as error:
            raise NotAsked(str(error)) from error
        code, node_id = groups.find_coordinator_response(answer)
        if code:
            raise NotAsked(error_name(code))
        return node_id

    def refuse(self, code: int) -> None:
        """Raises Gone or NotAsked for an error; Refused for one that should not be."""
        error = error_name(code)
        if error in JOINS_AGAIN:
            raise Gone(forgotten=error == "UNKNOWN_MEMBER_ID")
        if error in ASKS_AGAIN:
            self._coordinator = None
            raise NotAsked(error)
        if code:
            raise Refused(error)

    async def _join(self) -> tuple[int, tuple[TopicPartition, ...]]:
        """(generation, what the member owns in it). Raises Gone, NotAsked or NoAnswer."""
        session_ms = int(self.group.session_timeout_s * 1000)
        body = groups.join_group_request(
            self.group.name,
            self._member_id,
            self.group.topic,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=session_ms,
        )
        wait_s = self.group.session_timeout_s + GRACE_S
        joined = groups.join_group_response(await self.ask(Api.JOIN_GROUP, body, within=wait_s))
        if error_name(joined.error) == "MEMBER_ID_REQUIRED":
            self._member_id = joined.member_id
            raise Gone
        self.refuse(joined.error)
        self._member_id = joined.member_id
        body = groups.sync_group_request(
            self.group.name, joined.generation_id, self._member_id, self._shared_out(joined)
        )
        answer = await self.ask(Api.SYNC_GROUP, body, within=wait_s)
        error, owned = groups.sync_group_response(answer)
        self.refuse(error)
        return joined.generation_id, owned

    def _shared_out(self, joined: Joined) -> Mapping[str, Sequence[TopicPartition]]:
        """The leader deals the partitions out in turn; the others say nothing."""
        members = sorted(joined.members)
        if not joined.leads:
            return {}
        return {
            member: self.group.partitions[place :: len(members)]
            for place, member in enumerate(members)
        }

    async def _leave(self) -> None:
        if self._member_id:
            body = groups.leave_group_request(self.group.name, self._member_id)
            # Unheard, the coordinator finds out by its session.
            with contextlib.suppress(NotAsked, NoAnswer):
                await self.ask(Api.LEAVE_GROUP, body)
            self._member_id = ""

    def heartbeat(self, generation_id: int) -> Writer:
        return groups.heartbeat_request(self.group.name, generation_id, self._member_id)

    def commit(self, generation_id: int, offsets: Mapping[TopicPartition, int]) -> Writer:
        return groups.offset_commit_request(
            self.group.name, generation_id, self._member_id, offsets
        )


class _Ownership:
    """What a member does in one generation."""

    def __init__(
        self,
        member: GroupMember,
        process: int,
        generation_id: int,
        owned: Sequence[TopicPartition],
        end: float,
    ) -> None:
        self._member = member
        self._journal = member.journal
        self._process = process
        self._generation_id = generation_id
        self._owned = owned
        self._end = end
        self._commits = self._journal.process()
        self._done: dict[TopicPartition, int] = {}
        """Committed, as far as this member knows."""
        self._positions: Mapping[TopicPartition, int] = {}
        self._reading: tuple[int, list[list[object]]] | None = None
        """The process and the answer of a read that no commit has confirmed yet."""

    async def last(self) -> None:
        """Until the group goes on without it, or its own time is over."""
        member = self._member
        now = asyncio.get_running_loop().time
        beat_s = member.group.session_timeout_s / HEARTBEATS_PER_SESSION
        try:
            await self._read_committed()
            consumer = Consumer(
                member.client,
                self._journal,
                self._owned,
                max_wait_s=beat_s / 2,
                process=self._process,
            )
            consumer.positions.update(self._done)
            self._positions = consumer.positions
            heard = now()
            while not member.stopping and (member.settled or now() < self._end):
                if self._owned:
                    await consumer.poll()
                else:
                    await asyncio.sleep(beat_s / 2)
                await self._commit(
                    {
                        one: at
                        for one, at in consumer.positions.items()
                        if at > self._done.get(one, 0)
                    }
                )
                if now() - heard >= beat_s:
                    answer = await member.ask(Api.HEARTBEAT, member.heartbeat(self._generation_id))
                    member.refuse(groups.plain_response(answer))
                    heard = now()
        except (Gone, NotAsked, NoAnswer) as error:
            member.forget(error)
        finally:
            self._confirm(Outcome.INFO)

    async def _read_committed(self) -> None:
        """Where to go on. Raises Gone, NotAsked or NoAnswer."""
        if not self._owned:
            return
        name, process = self._member.group.name, self._journal.process()
        asked: list[list[object]] = [["committed", name, one.key] for one in self._owned]
        self._journal.ask(process, "committed", asked)
        self._reading = (process, asked)
        body = groups.offset_fetch_request(name, self._owned)
        answer = await self._member.ask(Api.OFFSET_FETCH, body)
        error, offsets = groups.offset_fetch_response(answer)
        self._member.refuse(error)
        told: list[list[object]] = [
            ["committed", name, one.key, None if offsets[one] == NO_OFFSET else offsets[one]]
            for one in self._owned
        ]
        self._reading = (process, told)
        self._done = {one: max(0, offsets[one]) for one in self._owned}

    def _confirm(self, outcome: Outcome) -> None:
        if self._reading is not None:
            process, told = self._reading
            self._journal.answer(process, outcome, told)
            self._reading = None

    async def commit_late(self) -> None:
        """What was owned, whoever owns it now: to be refused once the group has gone on."""
        with contextlib.suppress(Gone, NotAsked, NoAnswer):
            await self._commit(self._positions)

    async def _commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Raises Gone, NotAsked or NoAnswer."""
        member = self._member
        if not offsets:
            return
        micros: list[list[object]] = [
            ["commit", member.group.name, one.key, at, self._generation_id]
            for one, at in offsets.items()
        ]
        self._journal.ask(self._commits, "commit", micros)
        try:
            answer = await member.ask(
                Api.OFFSET_COMMIT, member.commit(self._generation_id, offsets)
            )
        except NotAsked:
            self._journal.answer(self._commits, Outcome.FAIL, micros)
            raise
        except (NoAnswer, asyncio.CancelledError):
            self._journal.answer(self._commits, Outcome.INFO, micros)
            raise
        errors = [code for code in groups.offset_commit_response(answer).values() if code]
        outcomes = {outcome_of_error(error_name(code)) for code in errors} or {Outcome.OK}
        outcome = outcomes.pop() if len(outcomes) == 1 else Outcome.INFO
        self._journal.answer(self._commits, outcome, micros)
        if outcome is Outcome.INFO:
            self._commits = self._journal.process()
        for code in errors:
            member.refuse(code)
        self._confirm(Outcome.OK)
        self._done |= offsets
        for one, at in offsets.items():
            member.committed[one] = max(at, member.committed.get(one, 0))
