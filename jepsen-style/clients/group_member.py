"""A member of a consumer group, by the classic protocol with eager rebalances.

It joins, is given partitions, goes on where the group had committed, commits what it was given, and
leaves or just stops, to come back as somebody else. The history has `assignment` from the request
to join on: a later generation may be known elsewhere before the answer comes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from random import Random

from ..history import Outcome
from . import group_requests as groups
from .cluster import RETRY_S, ClusterClient, NoAnswer, NotAsked
from .coordinated import GRACE_S, Gone, Group, Member
from .group_requests import Joined
from .journal import Journal
from .ownership import KeepAlive, Ownership
from .requests import Api, TopicPartition, error_name

HEARTBEATS_PER_SESSION = 4


class GroupMember(Member):
    def __init__(self, group: Group, client: ClusterClient, journal: Journal, dice: Random) -> None:
        super().__init__(group, client, journal, dice)
        self._member_id = ""
        self._owns: Ownership | None = None
        """What it owned last."""

    async def run(self) -> None:
        while not self.stopping:
            await self._live()
        await self._leave()

    async def _live(self) -> None:
        self.begin_life()
        while self.lives:
            process = self.journal.process()
            self.journal.ask(process, "assignment", [["assignment", self.group.name]])
            try:
                generation_id, owned = await self._join()
            except (Gone, NotAsked, NoAnswer) as error:
                self.journal.answer(process, Outcome.INFO, [["assignment", self.group.name]])
                self._forget(error)
                await asyncio.sleep(RETRY_S)
                continue
            keys = [partition.key for partition in owned]
            told = ["assignment", self.group.name, generation_id, self._member_id, keys]
            self.journal.answer(process, Outcome.OK, [told])
            self.rebalances += 1
            self._owns = Ownership(self, process, generation_id, owned)
            await self._own(self._owns, generation_id)
        if not self.settled and not self.stopping:
            await self._end_this_life()

    async def _own(self, owns: Ownership, generation_id: int) -> None:
        """Until the group goes on without it, or its own time is over."""
        try:
            await owns.begin()
            await owns.work(lambda: self.lives, self._heartbeats(generation_id))
        except (Gone, NotAsked, NoAnswer) as error:
            self._forget(error)
        finally:
            owns.end()

    def _heartbeats(self, generation_id: int) -> KeepAlive:
        now = asyncio.get_running_loop().time
        beat_s = self.group.session_timeout_s / HEARTBEATS_PER_SESSION
        body = groups.heartbeat_request(self.group.name, generation_id, self._member_id)
        heard = now()

        async def beat() -> None:
            nonlocal heard
            if now() - heard >= beat_s:
                self.refuse(groups.plain_response(await self.ask(Api.HEARTBEAT, body)))
                heard = now()

        return beat

    async def _end_this_life(self) -> None:
        if self.dice.random() < 0.5:
            await self._leave()
            await asyncio.sleep(self.dice.random() * self.group.session_timeout_s)
            return
        # It stops without a word, and the coordinator finds out by its session; or it was only
        # stalled, and comes back with a commit of what it owned long ago.
        if self._owns is not None:
            await asyncio.sleep(self.dice.uniform(0.5, 2.0) * self.group.session_timeout_s)
            await self._owns.commit_late()
        self._member_id = ""

    def _forget(self, error: Exception) -> None:
        if isinstance(error, Gone):
            if error.forgotten:
                self._member_id = ""
        else:
            self._coordinator = None

    # Asking the coordinator

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

    async def fetch_offsets(
        self, partitions: tuple[TopicPartition, ...]
    ) -> tuple[int, Mapping[TopicPartition, int]]:
        body = groups.offset_fetch_request(self.group.name, partitions)
        return groups.offset_fetch_response(await self.ask(Api.OFFSET_FETCH, body))

    async def commit_offsets(
        self, generation_id: int, offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        body = groups.offset_commit_request(
            self.group.name, generation_id, self._member_id, offsets
        )
        return groups.offset_commit_response(await self.ask(Api.OFFSET_COMMIT, body))
