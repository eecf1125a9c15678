"""Was the promise still in force? One answer for each record that is missing (RULES V1, V2).

The promise is conditional: an acknowledged record stays while one in-sync replica that holds it
stays. *Holders* are the committed ISR at the acknowledgement. A fault that takes a suffix of the
disk (wiped or damaged in both modes; power cut with the page cache) ends a holder; a kill, a pause
or a restart never does. A replica that re-enters the ISR holds the record again, provided that a
holder was still there to copy from. The condition fails at the first instant when no member of ISR
or ELR is a holder.

When exactly a change of the ISR took effect is known only between its proposal and its first
observation. So every placement that the history allows is followed at once, as a set of states:
*violation* needs the condition to hold for all of them, *outside* needs it to fail for all.

Which faults take records depends on what was promised of the topic (`promises`), and so does a
second witness: where fewer disks were hurt than acknowledge a record, somebody kept it, whatever
became of the ISR, and a cluster that forgot who that was has no excuse. That counts for synced
topics only. With the page cache a replica that merely ended in disorder is rightly no member any
more (RULES C1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any

from ...history import History
from ...schedule.kinds import KINDS
from .observations import observed
from .promises import Mode, Promises

BOTH_MODES = frozenset(Mode)
TAKES_A_SUFFIX: Mapping[str, frozenset[Mode]] = {
    **dict.fromkeys(("wipe", "damage", "truncate", "corrupt"), BOTH_MODES),
    # As schedules name them.
    **{name: BOTH_MODES for name, kind in KINDS.items() if kind.damages},
    **{name: frozenset({Mode.PAGE_CACHE}) for name, kind in KINDS.items() if kind.cuts_power},
}
"""Fault to the modes in which it can take acknowledged records from a node's disk."""
DISQUALIFIES = frozenset({"failed-sync", "write-error", "read-error", "full-disk"})
"""Takes nothing that was synced, and may yet end a replica's membership in ISR and ELR (C1, C4)."""


class Guarantee(Enum):
    """The verdict of a run on its promise; the order is from good to bad."""

    HELD = "held"
    OUTSIDE = "outside the guarantee"
    UNDECIDED = "undecided"
    VIOLATION = "violation"


@dataclass(frozen=True, slots=True)
class Ruling:
    """On one missing record. `place` is the instant at which the condition (may have) failed, in
    the earliest placement of the changes; `latest` is the instant in the latest one.
    """

    guarantee: Guarantee
    reason: str
    place: int | None = None
    latest: int | None = None

    def before(self, shown: int) -> Ruling:
        """What remains of it for an anomaly that was shown at this place: a failure that came
        later is no excuse, and one that came later in some placement only is a doubtful one.
        """
        if self.place is None or self.latest is None:
            return self
        if self.place > shown:
            reason = f"{self.reason}, which was after event {shown}"
            return Ruling(Guarantee.VIOLATION, reason, self.place, self.latest)
        if self.latest > shown:
            reason = f"{self.reason}, or after event {shown}"
            return Ruling(Guarantee.UNDECIDED, reason, self.place, self.latest)
        return self


@dataclass(frozen=True, slots=True)
class Membership:
    """One committed change: who counts, effective somewhere in proposed..observed."""

    members: frozenset[int]
    isr: frozenset[int]
    proposed: int
    observed: int
    epoch: int | None = None
    """Of the partition: it counts the changes. None: the observer did not tell."""


@dataclass(slots=True)
class Ledger:
    """The history of one run's memberships and faults."""

    changes: dict[str, list[Membership]] = field(default_factory=dict)
    faults: list[tuple[int, str, int, tuple[str, ...]]] = field(default_factory=list)
    """(place, kind, node, keys; none: all keys of the node)."""
    promises: Promises = field(default_factory=Promises)
    leaderless_at_end: frozenset[str] = frozenset()
    files_read: frozenset[str] = frozenset()
    """Keys whose replicas' files were read at the end."""

    @classmethod
    def of(cls, history: History) -> Ledger:
        """From the observations `isr`, `leader`, `fault`, `durability` and `replica`."""
        ledger = cls(promises=Promises.of(history))
        for place, seen in observed(history, "isr"):
            isr = frozenset(seen["isr"])
            ledger.changes.setdefault(seen["key"], []).append(
                Membership(
                    members=isr | frozenset(seen.get("elr") or ()),
                    isr=isr,
                    proposed=seen.get("proposed", place),
                    observed=place,
                    epoch=seen.get("partition_epoch"),
                )
            )
        for place, seen in observed(history, "fault"):
            keys = tuple(seen.get("keys") or ())
            for node in seen["nodes"] if "nodes" in seen else (seen["node"],):
                ledger.faults.append((place, seen["kind"], node, keys))
        leader: dict[str, Any] = {}
        for _, seen in observed(history, "leader"):
            leader[seen["key"]] = seen["leader"]
        ledger.leaderless_at_end = frozenset(key for key, node in leader.items() if node is None)
        ledger.files_read = frozenset(seen["key"] for _, seen in observed(history, "replica"))
        return ledger

    def takes_suffix(self, kind: str, key: str) -> bool:
        return self.promises.of_key(key).mode in TAKES_A_SUFFIX.get(kind, frozenset())

    def _strikes(self, key: str) -> Iterator[tuple[int, str, int]]:
        """(place, kind, node) of each fault that strikes this key."""
        for place, kind, node, keys in self.faults:
            if not keys or key in keys:
                yield place, kind, node

    def _kept_by_number(self, key: str) -> str:
        """Why somebody must have kept each record of the key; empty where that does not follow."""
        promise = self.promises.of_key(key)
        least = promise.least_holders
        if least is None or promise.mode is not Mode.SYNCED:
            return ""
        hurt = {
            node
            for _, kind, node in self._strikes(key)
            if self.takes_suffix(kind, key) or kind in DISQUALIFIES
        }
        if len(hurt) >= least:
            return ""
        return f"{least} replicas or more held the record; disks that were ever hurt: {len(hurt)}"

    def rule(self, key: str, acked_at: int) -> Ruling:
        """On a record of the key whose acknowledgement was seen at place `acked_at`."""
        if key in self.leaderless_at_end and key not in self.files_read:
            reason = "the partition had no leader at the end and no file was read"
            return Ruling(Guarantee.UNDECIDED, reason)
        if reason := self._kept_by_number(key):
            return Ruling(Guarantee.VIOLATION, reason)
        changes = self.changes.get(key)
        if not changes:
            # No snapshot at all: without a fault that takes records nothing excuses the loss.
            if any(self.takes_suffix(kind, key) for _, kind, _ in self._strikes(key)):
                return Ruling(Guarantee.UNDECIDED, "the ISR was never observed")
            return Ruling(Guarantee.VIOLATION, "no fault took a disk")
        return self._follow(key, changes, acked_at)

    def _follow(self, key: str, changes: list[Membership], acked_at: int) -> Ruling:
        """Every placement at once: a state is (change in force, holders, failed at)."""
        events: list[tuple[int, int, int]] = [(acked_at, ACK, 0)]
        """(place, sort, number of a change or of a node)."""
        for number, change in enumerate(changes):
            events.append((change.proposed, PROPOSED, number))
            events.append((change.observed, OBSERVED, number))
        for place, kind, node in self._strikes(key):
            if self.takes_suffix(kind, key):
                events.append((place, FAULT, node))
        events.sort()
        states: set[State] = {(0, None, None)}
        allowed = 0  # the newest change that may be in force
        for place, sort, number in events:
            if sort == PROPOSED:
                allowed = max(allowed, number)
            # Between events, any change that was proposed may come into force.
            states = {
                later for state in states for later in advanced(state, changes, allowed, place)
            }
            if sort == OBSERVED:
                states = {state for state in states if state[0] >= number} or {
                    (number, holders, failed) for _, holders, failed in states
                }
            elif sort == ACK:
                states = {
                    (at, changes[at].isr, failed_at(changes[at], changes[at].isr, place))
                    for at, _, _ in states
                }
            elif sort == FAULT:
                states = {struck(state, changes, number, place) for state in states}
        failures = [failed for _, _, failed in states]
        if all(failed is None for failed in failures):
            reason = "a member of ISR or ELR held the record all the time"
            return Ruling(Guarantee.VIOLATION, reason)
        places = [failed for failed in failures if failed is not None]
        reason = f"no member of ISR or ELR held it any more at event {min(places)}"
        if unseen := passed_over(changes, acked_at):
            doubt = f"{reason}, unless before {unseen}, when changes of the ISR were not observed"
            return Ruling(Guarantee.UNDECIDED, doubt, min(places), max(places))
        if len(places) == len(failures):
            return Ruling(Guarantee.OUTSIDE, reason, min(places), max(places))
        doubt = f"{reason}, if the ISR changed late; not if early"
        return Ruling(Guarantee.UNDECIDED, doubt, min(places), max(places))


PROPOSED, FAULT, ACK, OBSERVED = range(4)
"""Sorts of events of a ledger, in the order in which they count within one instant."""

State = tuple[int, frozenset[int] | None, int | None]
"""(number of the change in force, holders or None before the acknowledgement, place of failure)."""


def advanced(state: State, changes: list[Membership], allowed: int, place: int) -> list[State]:
    """The state itself, and those after each further change that may have come into force."""
    found = [state]
    at, holders, failed = state
    while at < allowed:
        entered = changes[at + 1].isr - changes[at].isr
        at += 1
        if holders is not None:
            # Who enters by the very change that ends the last holder was elected, and copied none.
            if failed is None:
                failed = failed_at(changes[at], holders, place)
            holders |= entered
        found.append((at, holders, failed))
    return found


def struck(state: State, changes: list[Membership], node: int, place: int) -> State:
    at, holders, failed = state
    if holders is None:
        return state
    left = holders - {node}
    return at, left, failed if failed is not None else failed_at(changes[at], left, place)


def passed_over(changes: list[Membership], since: int) -> int | None:
    """The first event from `since` on at which an observer found that it had missed a change: a
    replica may have entered again meanwhile.
    """
    for before, after in pairwise(changes):
        if before.epoch is None or after.epoch is None or after.observed < since:
            continue
        if after.epoch > before.epoch + 1:
            return after.observed
    return None


def failed_at(change: Membership, holders: frozenset[int], place: int) -> int | None:
    return None if change.members & holders else place
