"""A consumer group of the schedule: its members, and how it ends.

At the end nobody leaves any more, the group catches up with all that was acknowledged, its members
leave, and somebody who is no member reads what it has committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from ..clients import (
    ClusterClient,
    ConsumerMember,
    Coordinated,
    GroupMember,
    Journal,
    Member,
    TopicPartition,
    requests,
)
from ..clients import Group as MemberOf
from ..clients import group_requests as groups
from ..clients.cluster import RETRY_S, NoAnswer, NotAsked
from ..clients.requests import Api
from ..history import Outcome
from ..schedule import Group
from ..simulation.dice import stream

Work = Callable[[ClusterClient], Coroutine[Any, Any, None]]
Spawn = Callable[[Work], asyncio.Task[None]]

LATEST = -1


class GroupWork:
    def __init__(
        self,
        chosen: Group,
        partitions: Sequence[TopicPartition],
        journal: Journal,
        spawn: Spawn,
        seed: int,
    ) -> None:
        self.members: list[Member] = []
        self._group = MemberOf(
            chosen.name,
            chosen.topic,
            tuple(partitions),
            session_timeout_s=chosen.session_timeout_ms / 1000,
            life_s=chosen.life_ms / 1000,
            consumer_protocol=chosen.consumer_protocol,
        )
        self._count = chosen.members
        self._journal = journal
        self._spawn = spawn
        self._seed = seed
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def group_id(self) -> str:
        return self._group.name

    @property
    def rebalances(self) -> int:
        """Generations, counted for each member that had a part in one."""
        return sum(member.rebalances for member in self.members)

    def start(self) -> None:
        for number in range(self._count):
            self._tasks.append(self._spawn(self._member(number)))

    def _member(self, number: int) -> Work:
        async def belong(client: ClusterClient) -> None:
            dice = stream(self._seed, f"member:{self._group.name}:{number}")
            kind = ConsumerMember if self._group.consumer_protocol else GroupMember
            member: Member = kind(self._group, client, self._journal, dice)
            self.members.append(member)
            await member.run()

        return belong

    def finish(self) -> None:
        """To be called when nobody produces any more."""
        for member in self.members:
            member.settled = True
        self._tasks.append(self._spawn(self._finish))

    def done(self) -> bool:
        """Raises what a member did not expect."""
        for task in self._tasks:
            if task.done():
                task.result()
        return all(task.done() for task in self._tasks)

    def state(self) -> str:
        return f"group {self._group.name} has committed {self._committed()}"

    def _committed(self) -> dict[str, int]:
        return {
            one.key: max((member.committed.get(one, 0) for member in self.members), default=0)
            for one in self._group.partitions
        }

    async def _finish(self, client: ClusterClient) -> None:
        ends = {one.key: await self._end(client, one) for one in self._group.partitions}
        while any(self._committed()[key] < end for key, end in ends.items()):  # noqa: ASYNC110
            await asyncio.sleep(RETRY_S)
        for name, keys in self.names().items():
            told = {"group": name, "ends": {key: ends[key] for key in keys}}
            self._journal.observe("observer", "group-done", told)
        for member in self.members:
            member.stopping = True
        await self._read_committed(client)

    def names(self) -> dict[str, list[str]]:
        """By the name that the history has for them: keys."""
        names: dict[str, list[str]] = {}
        for one in self._group.partitions:
            names.setdefault(self._group.called(one), []).append(one.key)
        return names

    async def _end(self, client: ClusterClient, partition: TopicPartition) -> int:
        body = requests.list_offsets_request(partition, LATEST)
        while True:
            try:
                leader = (await client.leader(partition)).leader
                answer = await client.ask(leader, Api.LIST_OFFSETS, body)
                error, offset = requests.list_offsets_response(answer)
                if not error:
                    return offset
            except (NotAsked, NoAnswer):
                pass
            await client.look_again(partition)

    async def _read_committed(self, client: ClusterClient) -> None:
        """By nobody: there is no member whose commit could confirm it, and no fault any more."""
        group = self._group
        nobody = Coordinated(group, client, self._journal)
        body = groups.offset_fetch_request(group.name, group.partitions)
        while True:
            process = self._journal.process()
            asked = [["committed", group.called(one), one.key] for one in group.partitions]
            self._journal.ask(process, "committed", asked)
            try:
                answer = await nobody.ask(Api.OFFSET_FETCH, body)
                error, offsets = groups.offset_fetch_response(answer)
                nobody.refuse(error)
            except (NotAsked, NoAnswer):
                self._journal.answer(process, Outcome.INFO, asked)
                await asyncio.sleep(RETRY_S)
                continue
            told = [
                [*micro, offsets[one] if offsets[one] >= 0 else None]
                for micro, one in zip(asked, group.partitions, strict=True)
            ]
            self._journal.answer(process, Outcome.OK, told)
            return
