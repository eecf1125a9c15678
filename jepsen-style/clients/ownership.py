"""Partitions in the hands of one member: where it goes on, what it polls, what it commits.

What the history says of it:

* `committed` ends only when a commit of the same generation was taken: a coordinator that was
  deposed without knowing it may answer old offsets, and then no commit of this generation can
  succeed. Without such a commit nobody knows, and the read says nothing;
* polls are of the process that was given the partitions, which is how a checker knows whose they
  are; a generation has a process of its own, since positions go back to what is committed;
* `commit`, with the generation in which it was made.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ..history import Outcome, outcome_of_error
from .cluster import NoAnswer, NotAsked
from .consumer import Consumer
from .coordinated import Gone, Member
from .requests import TopicPartition, error_name

POLLS_PER_SESSION = 8
NO_OFFSET = -1

KeepAlive = Callable[[], Awaitable[None]]
"""Called after each poll. Raises Gone, NotAsked or NoAnswer when the generation is over."""


class Ownership:
    """`begin`, then `work`, and `end` whatever came of them."""

    def __init__(
        self, member: Member, process: int, generation_id: int, owned: Sequence[TopicPartition]
    ) -> None:
        self._member = member
        self._group = member.group
        self._journal = member.journal
        self._process = process
        self._generation_id = generation_id
        self._owned = tuple(owned)
        self._commits = self._journal.process()
        self._done: dict[TopicPartition, int] = {}
        """Committed, as far as this member knows."""
        self._positions: Mapping[TopicPartition, int] = {}
        self._reading: tuple[int, list[list[object]]] | None = None
        """The process and the answer of a read that no commit has confirmed yet."""

    async def begin(self) -> None:
        """Hear where to go on. Raises Gone, NotAsked or NoAnswer."""
        if not self._owned:
            return
        process = self._journal.process()
        asked: list[list[object]] = [
            ["committed", self._group.called(one), one.key] for one in self._owned
        ]
        self._journal.ask(process, "committed", asked)
        self._reading = (process, asked)
        error, offsets = await self._member.fetch_offsets(self._owned)
        self._member.refuse(error)
        told: list[list[object]] = [
            [*micro, None if offsets[one] == NO_OFFSET else offsets[one]]
            for micro, one in zip(asked, self._owned, strict=True)
        ]
        self._reading = (process, told)
        self._done = {one: max(0, offsets[one]) for one in self._owned}

    async def take_over(self) -> None:
        """Commit what was found: only who owns the partitions can (see the module). Raises Gone,
        NotAsked or NoAnswer."""
        await self._commit(dict(self._done))

    async def work(self, goes_on: Callable[[], bool], keep_alive: KeepAlive) -> None:
        """Poll and commit. Raises Gone, NotAsked or NoAnswer."""
        wait_s = self._group.session_timeout_s / POLLS_PER_SESSION
        consumer = Consumer(
            self._member.client,
            self._journal,
            self._owned,
            max_wait_s=wait_s,
            process=self._process,
        )
        consumer.positions.update(self._done)
        self._positions = consumer.positions
        while goes_on():
            if self._owned:
                await consumer.poll()
            else:
                await asyncio.sleep(wait_s)
            await self._commit(
                {one: at for one, at in consumer.positions.items() if at > self._done.get(one, 0)}
            )
            await keep_alive()

    def end(self) -> None:
        self._confirm(Outcome.INFO)

    async def commit_late(self) -> None:
        """What was owned, whoever owns it now: to be refused once the group has gone on."""
        with contextlib.suppress(Gone, NotAsked, NoAnswer):
            await self._commit(self._positions)

    def _confirm(self, outcome: Outcome) -> None:
        if self._reading is not None:
            process, told = self._reading
            self._journal.answer(process, outcome, told)
            self._reading = None

    async def _commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Raises Gone, NotAsked or NoAnswer."""
        member = self._member
        if not offsets:
            return
        micros: list[list[object]] = [
            ["commit", self._group.called(one), one.key, at, self._generation_id]
            for one, at in offsets.items()
        ]
        self._journal.ask(self._commits, "commit", micros)
        try:
            answered = await member.commit_offsets(self._generation_id, offsets)
        except NotAsked:
            self._journal.answer(self._commits, Outcome.FAIL, micros)
            raise
        except (NoAnswer, asyncio.CancelledError):
            self._journal.answer(self._commits, Outcome.INFO, micros)
            raise
        errors = [code for code in answered.values() if code]
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
