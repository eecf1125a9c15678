"""What members of a consumer group have in common: they ask its coordinator, and come and go."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from . import group_requests as groups
from .cluster import ClusterClient, NoAnswer, NotAsked
from .journal import Journal
from .primitives import Reader, Writer
from .requests import Api, TopicPartition, error_name

GRACE_S = 2.0
"""Longest wait for an answer, beyond what a rebalance may take."""

JOINS_AGAIN = frozenset(
    {
        "FENCED_MEMBER_EPOCH",
        "ILLEGAL_GENERATION",
        "MEMBER_ID_REQUIRED",
        "REBALANCE_IN_PROGRESS",
        "UNKNOWN_MEMBER_ID",
    }
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

STALE = "STALE_MEMBER_EPOCH"
"""The member has a newer epoch, of which its next heartbeat tells it."""


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
    consumer_protocol: bool = False
    """KIP-848, instead of the classic one."""

    def called(self, partition: TopicPartition) -> str:
        """Its name in the history. By the consumer protocol partitions change hands one by one,
        each at an epoch of its own: to a checker each is a group with generations of its own."""
        return f"{self.name}:{partition.key}" if self.consumer_protocol else self.name


class Gone(Exception):
    """This generation is over for the member; whether it may join by its old name."""

    def __init__(self, *, forgotten: bool = False) -> None:
        super().__init__()
        self.forgotten = forgotten


class Coordinated:
    """Somebody who asks the coordinator of a group."""

    def __init__(self, group: Group, client: ClusterClient, journal: Journal) -> None:
        self.group = group
        self.client = client
        self.journal = journal
        self._coordinator: int | None = None

    async def ask(
        self, api: Api, body: Writer, *, within: float = GRACE_S, version: int | None = None
    ) -> Reader:
        """Raises NotAsked or NoAnswer."""
        if self._coordinator is None:
            self._coordinator = await self._find()
        try:
            return await self.client.ask(
                self._coordinator, api, body, within=within, version=version
            )
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
        if error == STALE:
            raise NotAsked(error)
        if error in ASKS_AGAIN:
            self._coordinator = None
            raise NotAsked(error)
        if code:
            raise Refused(error)


class Member(Coordinated, ABC):
    """One member after the other, none of them at the same time as another; `run` is theirs."""

    def __init__(self, group: Group, client: ClusterClient, journal: Journal, dice: Random) -> None:
        super().__init__(group, client, journal)
        self.committed: dict[TopicPartition, int] = {}
        """The highest that it was told to be committed."""
        self.rebalances = 0
        """Generations in which it had a part."""
        self.settled = False
        """Set to have it neither leave nor stop any more."""
        self.stopping = False
        self.dice = dice
        self._end = 0.0
        """Of this life, on the loop's clock."""

    @property
    def lives(self) -> bool:
        now = asyncio.get_running_loop().time()
        return not self.stopping and (self.settled or now < self._end)

    def begin_life(self) -> None:
        now = asyncio.get_running_loop().time()
        self._end = now + self.dice.expovariate(1 / self.group.life_s)

    @abstractmethod
    async def fetch_offsets(
        self, partitions: tuple[TopicPartition, ...]
    ) -> tuple[int, Mapping[TopicPartition, int]]:
        """(error, what the group has committed; -1 for nothing). Raises NotAsked or NoAnswer."""

    @abstractmethod
    async def commit_offsets(
        self, generation_id: int, offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        """The error of each partition. Raises NotAsked or NoAnswer."""

    @abstractmethod
    async def run(self) -> None:
        """Until `stopping` is set; it leaves then."""
