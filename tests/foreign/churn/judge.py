"""What the members of one group said of themselves, and whether it can all be true.

Any client's member can play: it says in one line of JSON each time what has happened to it (`Event`
has the words), on the system's monotonic clock, which processes and languages share. Whoever says
`taken` does so after the group gave it those partitions, whoever says `given up` before the group
hears of it, so that in good order no two own a partition at any instant.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class What(StrEnum):
    TAKEN = "taken"
    """These partitions came to those it had."""
    GIVEN_UP = "given up"
    LOST = "lost"
    """It was thrown out, and learns so later than the others: they were of another generation."""
    PROCESSED = "processed"
    """These records, which it has not committed yet."""
    COMMITTED = "committed"
    """The coordinator has acknowledged these positions."""
    DEAD = "dead"
    """It has left or was killed."""
    FAILED = "failed"
    """Its client gave up. `member_id` tells why."""


class Position(NamedTuple):
    partition: int
    offset: int


@dataclass(frozen=True, order=True)
class Event:
    seconds: float
    name: str
    """Ours, not the group's."""
    what: What
    partitions: tuple[int, ...] = ()
    generation: int = -1
    """Or member epoch."""
    member_id: str = ""
    positions: tuple[Position, ...] = ()

    @staticmethod
    def of(line: str) -> Event:
        said = json.loads(line)
        return Event(
            said["seconds"],
            said["name"],
            What(said["what"]),
            tuple(said.get("partitions", ())),
            said.get("generation", -1),
            said.get("member_id", ""),
            tuple(Position(*each) for each in said.get("positions", ())),
        )


@dataclass
class Verdict:
    clashes: dict[tuple[str, int], str] = field(default_factory=dict)
    """(who owned it, partition) -> who owned it at the same time. Both were members of the group
    then: the first was taken for one later, under the same id."""
    shared: list[str] = field(default_factory=list)
    """Partitions that had two owners in one generation, or records that two processed in one."""
    strays: list[str] = field(default_factory=list)
    """Records processed by one who did not own their partition."""
    skipped: list[str] = field(default_factory=list)
    """Records that nobody had processed when a later one was."""
    steps_back: list[str] = field(default_factory=list)
    """New owners that began before what had been committed when they came."""
    failures: list[str] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    """By partition: everything below was processed, but for what was skipped."""
    takeovers: list[float] = field(default_factory=list)
    """Seconds from a member's death to another's taking one of its partitions."""

    @property
    def complaints(self) -> dict[str, object]:
        """Empty when all is well."""
        found: dict[str, object] = {
            "two owners at a time": self.clashes,
            "two owners in a generation": self.shared,
            "processed without owning": self.strays,
            "skipped": self.skipped,
            "commits went back": self.steps_back,
            "failed": self.failures,
        }
        return {what: which for what, which in found.items() if which}


def judge(events: Iterable[Event]) -> Verdict:
    judgement = _Judgement()
    for event in sorted(events):
        judgement.on(event)
    return judgement.verdict


@dataclass
class _Member:
    member_id: str = ""
    generation: int = -1
    owned: set[int] = field(default_factory=set)
    begins: dict[int, int] = field(default_factory=dict)
    """Partitions taken and not read yet -> what was committed then."""
    worked_under_suspicion: list[tuple[str, int]] = field(default_factory=list)
    """What it was suspected of when it processed the records that it commits next."""


class _Judgement:
    def __init__(self) -> None:
        self.verdict = Verdict()
        self._members: dict[str, _Member] = {}
        self._owners: dict[int, str] = {}
        self._committed: dict[int, int] = {}
        self._owner_in: dict[tuple[int, int], str] = {}
        """(generation, partition) -> owner."""
        self._processor_in: dict[tuple[int, Position], str] = {}
        self._orphaned: dict[int, float] = {}
        """Partition -> when its owner died."""
        self._suspicions: dict[tuple[str, int], str] = {}
        """As clashes, but for whom it is open whether he was thrown out and has not heard of it."""

    def on(self, event: Event) -> None:
        member = self._members.setdefault(event.name, _Member())
        match event.what:
            case What.TAKEN:
                self._on_taken(member, event)
            case What.GIVEN_UP:
                self._part(member, event.name, event.partitions)
            case What.LOST:
                self._drop_suspicions(event.name)
                self._part(member, event.name, event.partitions)
            case What.PROCESSED:
                self._on_processed(member, event)
            case What.COMMITTED:
                self._on_committed(member, event)
            case What.DEAD:
                self._drop_suspicions(event.name)
                self._orphaned |= dict.fromkeys(member.owned, event.seconds)
                self._part(member, event.name, tuple(member.owned))
            case What.FAILED:
                self.verdict.failures.append(f"{event.name}: {event.member_id}")

    def _on_taken(self, member: _Member, event: Event) -> None:
        if event.member_id == member.member_id:
            self._confirm(self._suspected(event.name))
        else:
            # Under another id it is new to the group: it had been thrown out.
            self._drop_suspicions(event.name)
        member.member_id, member.generation = event.member_id, event.generation
        for partition in event.partitions:
            if partition not in member.owned:
                member.begins[partition] = self._committed.get(partition, 0)
            member.owned.add(partition)
            if (since := self._orphaned.pop(partition, None)) is not None:
                self.verdict.takeovers.append(event.seconds - since)
            owner = self._owners.get(partition, event.name)
            if owner != event.name:
                self._suspicions[owner, partition] = event.name
            self._owners[partition] = event.name
        if event.generation >= 0:
            for partition in member.owned:
                key = event.generation, partition
                owner = self._owner_in.setdefault(key, event.name)
                if owner != event.name:
                    self.verdict.shared.append(
                        f"{partition} in {event.generation}: {owner} and {event.name}"
                    )

    def _on_processed(self, member: _Member, event: Event) -> None:
        ends = self.verdict.ends
        member.worked_under_suspicion = self._suspected(event.name)
        for position in event.positions:
            partition, offset = position
            what = f"{partition}:{offset} by {event.name} in {member.generation}"
            if partition not in member.owned:
                self.verdict.strays.append(what)
            if member.generation >= 0:
                key = member.generation, position
                other = self._processor_in.setdefault(key, event.name)
                if other != event.name:
                    self.verdict.shared.append(f"{what} and by {other}")
            begins = member.begins.pop(partition, 0)
            if offset < begins:
                self.verdict.steps_back.append(f"{what}, although {begins} was committed")
            if offset > ends.get(partition, 0):
                self.verdict.skipped.append(f"{what}, after {ends.get(partition, 0)}")
            ends[partition] = max(ends.get(partition, 0), offset + 1)

    def _on_committed(self, member: _Member, event: Event) -> None:
        # The coordinator refuses whom it has thrown out.
        self._confirm(member.worked_under_suspicion)
        for partition, offset in event.positions:
            self._committed[partition] = max(self._committed.get(partition, 0), offset)

    def _part(self, member: _Member, name: str, partitions: tuple[int, ...]) -> None:
        for partition in partitions:
            member.owned.discard(partition)
            member.begins.pop(partition, None)
            if self._owners.get(partition) == name:
                del self._owners[partition]

    def _suspected(self, name: str) -> list[tuple[str, int]]:
        return [each for each in self._suspicions if each[0] == name]

    def _confirm(self, suspicions: list[tuple[str, int]]) -> None:
        for each in suspicions:
            if (other := self._suspicions.pop(each, None)) is not None:
                self.verdict.clashes[each] = other

    def _drop_suspicions(self, name: str) -> None:
        for each in self._suspected(name):
            del self._suspicions[each]
