"""A consumer group of the new protocol (KIP-848). No I/O, no clock of its own.

    heartbeat: 1. the member is made or updated; new topics or members begin a new epoch
               2. a new epoch gets a target assignment; that of a large group waits for others
                  who join, and takes several slices
               3. the member moves one step towards its target

Every change is in force here at once and comes back as records; the coordinator answers when they
are replicated, and reads the group anew from its log when they may not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from functools import partial
from uuid import UUID

from ...seam import frozen
from ...wire import ErrorCode
from .assigning import Assigning
from .assignors import ASSIGNORS
from .census import Census
from .deadlines import Deadlines, Wait
from .member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
    MemberState,
    Subscribed,
)
from .pace import assignment_wait_ms, next_interval_ms
from .partition_sets import NOTHING, PartitionSet, overlap, size, united, without
from .reconciliation import next_step
from .records import (
    ConsumerRecord,
    current_record,
    epoch_record,
    group_tombstones,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
)
from .refusal import Refused
from .seen_topics import SeenTopics
from .settings import ConsumerGroupSettings


class GroupPhase(Enum):
    """The values are the names that ConsumerGroupDescribe and ListGroups show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """An epoch began that has no target yet."""
    RECONCILING = "Reconciling"
    """Members are on their way to the target."""
    STABLE = "Stable"


@frozen
class Beat:
    """A ConsumerGroupHeartbeat; None and -1: "as before"."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: PartitionSet | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def is_full(self) -> bool:
        """Sent when joining and after errors: the member wants to be told everything."""
        said = self.rebalance_timeout_ms != -1 and self.owned is not None
        return self.epoch == JOINING_EPOCH or (said and self.topics is not None)


class ConsumerGroup:
    def __init__(self, group_id: str, settings: ConsumerGroupSettings) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.assignment_epoch = 0
        self.topics_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, PartitionSet] = {}
        self.settings = settings
        """May change between two heartbeats."""
        self._static: dict[str, str] = {}
        """Instance id -> member id now holding its place."""
        self._census = Census()
        """Of all `members`."""
        self._holders: dict[int, dict[int, str]] = {}
        """Topic id (whose number has the quicker hash) and partition -> the member that holds it or
        has yet to give it up."""
        self._deadlines = Deadlines()
        self._untaken: dict[str, PartitionSet] = {}
        """By member: what it has been told of and not yet reported. Its process may still be busy
        with the records before (librdkafka goes on to send heartbeats meanwhile), take these up
        later, and only then give up what it has been told to. Not in the log: a new coordinator
        waits for every member's first report."""
        self._told_here: dict[str, None] = {}
        """Those of them whom this coordinator has told; others may know since long."""
        self._untold: dict[str, None] = {}
        """Those whom this coordinator has not told anything yet: the last answer of the one before
        may be lost."""
        self._watched_epoch = 0
        self._epoch_since_ms = 0
        """When a heartbeat first met that epoch."""
        self._assigning: Assigning | None = None
        self._assigned_ms: int | None = None
        """When this coordinator last assigned."""
        self._seen_topics: object = None
        """The image's topics when their hash was last compared."""

    @property
    def phase(self) -> GroupPhase:
        if not self.members:
            return GroupPhase.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupPhase.ASSIGNING
        if all(m.reconciled(self.assignment_epoch) for m in self.members.values()):
            return GroupPhase.STABLE
        return GroupPhase.RECONCILING

    @property
    def assignor(self) -> str:
        return self._census.assignor(default=self.settings.assignors[0])

    @property
    def subscriptions(self) -> Iterator[Subscribed]:
        """What its members subscribed to; each once."""
        return self._census.subscriptions

    @property
    def regexes(self) -> frozenset[str]:
        return self._census.regexes

    # --- heartbeats ------------------------------------------------------------------------

    def heartbeat(
        self, beat: Beat, seen: SeenTopics, *, now_ms: int, wall_ms: int
    ) -> tuple[ConsumerMember, PartitionSet | None, list[ConsumerRecord]]:
        """(the member now, its assignment when it is to be told, records).

        Raises:
            Refused: nothing was changed.
        """
        before, replaced = self._beating(beat)
        after = replace(
            before,
            instance_id=_said(beat.instance_id, before.instance_id),
            rack_id=_said(beat.rack_id, before.rack_id),
            rebalance_timeout_ms=(
                before.rebalance_timeout_ms
                if beat.rebalance_timeout_ms == -1
                else beat.rebalance_timeout_ms
            ),
            topics=before.topics if beat.topics is None else tuple(sorted(set(beat.topics))),
            regex=before.regex if beat.regex is None else beat.regex,
            assignor=_said(beat.assignor, before.assignor),
            client_id=beat.client_id,
            client_host=beat.client_host,
            classic=None,
        )
        records = self.replace_static(replaced, before)
        self._note_taken(before, beat)
        # It has yet to hear of its epoch: it is told again, and takes no step it has not seen.
        waits = beat.epoch != before.epoch and beat.owned is None
        moved, more = self.advance(
            before, after, beat.owned, seen, now_ms=now_ms, wall_ms=wall_ms, waits=waits
        )
        self._note_told(before, moved)
        self._untold.pop(moved.member_id, None)
        self._watch_member(before, moved, now_ms)
        # Who is in the epoch before, or reports other partitions, has lost the answer that told it.
        # (librdkafka then says what it owns, but not all the rest that makes a full request.)
        lost = beat.epoch != before.epoch or beat.owned not in (None, moved.assigned)
        # Others may just repeat the heartbeat, and never ask: told again until they report.
        unreported = self._untaken.get(moved.member_id) or moved.revoking
        tell = beat.is_full or lost or unreported or before.assigned != moved.assigned
        return moved, moved.assigned if tell else None, records + more

    def _note_taken(self, before: ConsumerMember, beat: Beat) -> None:
        """It reports one of them, or just what it was told last: it has taken up all of them, or
        will never."""
        untaken = self._untaken.get(before.member_id, NOTHING)
        if beat.epoch == JOINING_EPOCH or (
            beat.owned is not None
            and (beat.owned == before.assigned or overlap(untaken, beat.owned))
        ):
            self._untaken.pop(before.member_id, None)
            self._told_here.pop(before.member_id, None)

    def _note_told(self, before: ConsumerMember, moved: ConsumerMember) -> None:
        new = without(moved.assigned, before.assigned)
        if new:
            old = self._untaken.get(moved.member_id, NOTHING)
            self._untaken[moved.member_id] = united(old, new)
            self._told_here[moved.member_id] = None

    def _beating(self, beat: Beat) -> tuple[ConsumerMember, str | None]:
        """The member that beats, and whose place it takes."""
        joins = beat.epoch == JOINING_EPOCH
        if beat.instance_id is not None:
            return self._beating_static(beat, beat.instance_id, joins)
        member = self.members.get(beat.member_id)
        if member is None:
            return self.newcomer(beat.member_id, joins), None
        if joins:
            return _from_scratch(member), None
        _check_epoch(member, beat)
        return member, None

    def _beating_static(
        self, beat: Beat, instance_id: str, joins: bool
    ) -> tuple[ConsumerMember, str | None]:
        holder = self.static_member(instance_id)
        if not joins:
            member = self.check_static(instance_id, beat.member_id)
            _check_epoch(member, beat)
            return member, None
        if holder is None:
            return self.newcomer(beat.member_id, True), None
        if holder.member_id == beat.member_id:
            return _from_scratch(holder), None
        if holder.classic is None and holder.epoch != STATIC_LEAVING_EPOCH:
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"instance {instance_id!r} is held by member {holder.member_id!r}, which is alive",
            )
        return self.successor(holder, beat.member_id), holder.member_id

    def newcomer(self, member_id: str, joins: bool) -> ConsumerMember:
        if not joins:
            raise Refused(
                ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id!r} is no member of {self.group_id!r}"
            )
        if len(self.members) >= self.settings.max_size:
            raise Refused(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"group {self.group_id!r} has {len(self.members)} members and takes no more",
            )
        return ConsumerMember(member_id)

    def successor(self, holder: ConsumerMember, member_id: str) -> ConsumerMember:
        """Takes the static member's place with all it had (KIP-345)."""
        return replace(
            holder, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH
        )

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        return self.members.get(self._static.get(instance_id or "", ""))

    def check_static(self, instance_id: str, member_id: str) -> ConsumerMember:
        holder = self.static_member(instance_id)
        if holder is None:
            raise Refused(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"no member of {self.group_id!r} has instance id {instance_id!r}",
            )
        if holder.member_id != member_id:
            raise Refused(
                ErrorCode.FENCED_INSTANCE_ID,
                f"instance {instance_id!r} is now held by another member than {member_id!r}",
            )
        return holder

    # --- the three steps -------------------------------------------------------------------

    def replace_static(self, old_id: str | None, new: ConsumerMember) -> list[ConsumerRecord]:
        if old_id is None:
            return []
        target = self._forget_target(old_id, new.member_id)
        self._drop(old_id)
        self._put(new)
        self.targets[new.member_id] = target
        return [
            *member_tombstones(self.group_id, old_id),
            member_record(self.group_id, new),
            target_record(self.group_id, new.member_id, target),
            current_record(self.group_id, new),
        ]

    def advance(
        self,
        before: ConsumerMember,
        after: ConsumerMember,
        owned: PartitionSet | None,
        seen: SeenTopics,
        *,
        now_ms: int,
        wall_ms: int,
        waits: bool = False,
    ) -> tuple[ConsumerMember, list[ConsumerRecord]]:
        """Put `after` in the place of `before`, with all that follows from it; when it `waits`,
        it does not move."""
        records: list[ConsumerRecord] = []
        is_new = before.member_id not in self.members
        if is_new or after != before:
            records.append(member_record(self.group_id, after))
        self._put(after)
        other_topics = before.subscription != after.subscription
        if self._begins_epoch(is_new or other_topics, seen):
            self.epoch += 1
            records.append(epoch_record(self.group_id, self.epoch, self.topics_hash))
        if other_topics and not is_new:
            self._assigning = None  # its target there is of what it read before
        # Nor is it let wait for that; and a classic member would join again and again.
        at_once = (other_topics and not is_new) or after.classic is not None
        if self.epoch > self.assignment_epoch and (at_once or self._may_assign(now_ms)):
            records += self._begin_assignment(seen, now_ms=now_ms, wall_ms=wall_ms)
        moved = after
        if not waits:
            moved = next_step(
                after,
                target_epoch=self.assignment_epoch,
                target=self.targets.get(after.member_id, NOTHING),
                free_of=partial(self._free_of, after.member_id),
                owned=owned,
                untaken=self._untaken.get(after.member_id, NOTHING),
                may_not_know=after.member_id in self._told_here or after.member_id in self._untold,
            )
        if moved != after:
            self._put(moved)
            records.append(current_record(self.group_id, moved))
        return moved, records

    def _begins_epoch(self, members_changed: bool, seen: SeenTopics) -> bool:
        if not members_changed and seen.image.topics is self._seen_topics:
            return False
        self._seen_topics = seen.image.topics
        topics_hash = seen.hash_of(self.subscriptions)
        topics_changed = topics_hash != self.topics_hash
        self.topics_hash = topics_hash
        return members_changed or topics_changed

    # --- the target assignment -------------------------------------------------------------

    def _may_assign(self, now_ms: int) -> bool:
        """Those who come meanwhile share an assignment, and whoever beats next brings it about."""
        wait_ms = assignment_wait_ms(
            interval_ms=self.settings.assignment_interval_ms, members=len(self.members)
        )
        return self._assigned_ms is None or now_ms - self._assigned_ms >= wait_ms

    def _begin_assignment(
        self, seen: SeenTopics, *, now_ms: int, wall_ms: int
    ) -> list[ConsumerRecord]:
        """In a group that is not large it is in force at once."""
        if self._assigning is not None:
            return []
        self._assigning = Assigning(
            self.group_id,
            self.epoch,
            self.members,
            self.targets,
            seen,
            ASSIGNORS[self.assignor],
        )
        return self.assign_on(now_ms=now_ms, wall_ms=wall_ms)

    @property
    def has_no_assignment_yet(self) -> bool:
        """Nobody is in a group without having left that epoch: who joins must not be answered
        before `assign_on` has come to an end."""
        return self.assignment_epoch == JOINING_EPOCH

    @property
    def is_assigning(self) -> bool:
        """`assign_on` must be called, in one of the next turns of the loop."""
        return self._assigning is not None

    def assign_on(self, *, now_ms: int, wall_ms: int) -> list[ConsumerRecord]:
        """One slice of the assignment under way; with the last one it is in force."""
        if self._assigning is None or (dealt := self._assigning.go_on()) is None:
            return []
        # Who joined since it began has nothing yet.
        self.targets = {**self.targets, **dealt.targets}
        self.assignment_epoch, self._assigning = self._assigning.epoch, None
        self._assigned_ms = now_ms
        epoch = target_epoch_record(self.group_id, self.assignment_epoch, wall_ms)
        return [*dealt.records.values(), epoch]

    def _forget_target(self, member_id: str, successor: str | None = None) -> PartitionSet:
        if self._assigning is not None:
            self._assigning.gone(member_id, successor)
        return self.targets.pop(member_id, NOTHING)

    def released(self, member: ConsumerMember) -> bool:
        """Is what the member waits for free?"""
        missing = without(self.targets.get(member.member_id, NOTHING), member.assigned)
        return size(self._free_of("", missing)) == size(missing)

    # --- leaving ---------------------------------------------------------------------------

    def leave(self, member_id: str, instance_id: str | None, epoch: int) -> list[ConsumerRecord]:
        """A static member with epoch -2 keeps its place for one session."""
        member = self.known(member_id, instance_id)
        if epoch == LEAVING_EPOCH:
            return self.remove(member_id)
        gone = replace(member, epoch=STATIC_LEAVING_EPOCH, revoking=NOTHING)
        self._put(gone)
        self._deadlines.drop((member_id, Wait.REVOKE))
        return [current_record(self.group_id, gone)]

    def known(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """The member who says it is this one. Raises Refused."""
        if instance_id is not None:
            return self.check_static(instance_id, member_id)
        return self.members.get(member_id) or self.newcomer(member_id, joins=False)

    def remove(self, member_id: str) -> list[ConsumerRecord]:
        """The member left or was fenced: its partitions are free, and a new epoch begins."""
        self._drop(member_id)
        self._forget_target(member_id)
        self.epoch += 1
        return [
            *member_tombstones(self.group_id, member_id),
            epoch_record(self.group_id, self.epoch, self.topics_hash),
        ]

    def _put(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if (
            old is None
            or old.subscription != member.subscription
            or old.assignor != member.assignor
        ):
            if old is not None:
                self._census.leave(old)
            self._census.enter(member)
        if (
            old is None
            or old.assigned is not member.assigned
            or old.revoking is not member.revoking
        ):
            if old is not None:
                self._release(old)
            self._hold(member)
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id

    def _hold(self, member: ConsumerMember) -> None:
        for partitions in (member.assigned, member.revoking):
            for topic_id, numbers in partitions.items():
                holders = self._holders.setdefault(topic_id.int, {})
                holders.update(dict.fromkeys(numbers, member.member_id))

    def _release(self, member: ConsumerMember) -> None:
        """What nobody took over meanwhile."""
        for partitions in (member.assigned, member.revoking):
            for topic_id, numbers in partitions.items():
                holders = self._holders.get(topic_id.int, {})
                for number in numbers:
                    if number in holders and holders[number] == member.member_id:
                        del holders[number]
                if not holders:
                    self._holders.pop(topic_id.int, None)

    def _free_of(self, member_id: str, partitions: PartitionSet) -> PartitionSet:
        """Those that no other member holds or has yet to give up."""
        free: dict[UUID, tuple[int, ...]] = {}
        for topic_id, numbers in partitions.items():
            holders = self._holders.get(topic_id.int)
            if holders is not None:
                numbers = tuple([n for n in numbers if n not in holders or holders[n] == member_id])
            if numbers:
                free[topic_id] = numbers
        return free

    def _drop(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        self._census.leave(member)
        self._release(member)
        self._untaken.pop(member_id, None)
        self._told_here.pop(member_id, None)
        self._untold.pop(member_id, None)
        if self._static.get(member.instance_id or "") == member_id:
            del self._static[member.instance_id or ""]
        for wait in Wait:
            self._deadlines.drop((member_id, wait))

    # --- time ------------------------------------------------------------------------------

    def expect(self, member_id: str, wait: Wait, deadline_ms: int | None) -> None:
        """Fence the member at that time; None: no longer."""
        if deadline_ms is None:
            self._deadlines.drop((member_id, wait))
        else:
            self._deadlines.set((member_id, wait), deadline_ms)

    def expects(self, member_id: str, wait: Wait) -> bool:
        return (member_id, wait) in self._deadlines

    def _watch_member(self, before: ConsumerMember, now: ConsumerMember, now_ms: int) -> None:
        if self.epoch != self._watched_epoch:
            self._watched_epoch, self._epoch_since_ms = self.epoch, now_ms
        self.expect(now.member_id, Wait.SESSION, now_ms + self.settings.session_timeout_ms)
        if now.state is not MemberState.UNREVOKED_PARTITIONS and not self._is_to_lose(now):
            self.expect(now.member_id, Wait.REVOKE, None)
        elif now.epoch != before.epoch or not self.expects(now.member_id, Wait.REVOKE):
            self.expect(now.member_id, Wait.REVOKE, now_ms + now.rebalance_timeout_ms)

    def _is_to_lose(self, member: ConsumerMember) -> bool:
        """It is not asked yet, for it must first report."""
        return bool(without(member.assigned, self.targets.get(member.member_id, NOTHING)))

    def next_interval_ms(self, member: ConsumerMember, now_ms: int) -> int:
        """Until the heartbeat that this member is asked for next."""
        usual_ms, due_ms = self.settings.heartbeat_interval_ms, self.next_deadline_ms()
        return next_interval_ms(
            usual_ms=usual_ms,
            members=len(self.members),
            on_its_way=not member.reconciled(self.epoch),
            epoch_age_ms=now_ms - self._epoch_since_ms,
            fenced_in_ms=usual_ms if due_ms is None else due_ms - now_ms,
        )

    def next_deadline_ms(self) -> int | None:
        return self._deadlines.next_ms()

    def overdue(self, now_ms: int) -> list[str]:
        """Members that let a deadline pass; the coordinator removes them one by one."""
        return self._deadlines.overdue(now_ms)

    # --- from and to the log ---------------------------------------------------------------

    def restore_member(self, member: ConsumerMember) -> None:
        self._put(member)

    def forget_member(self, member_id: str) -> None:
        if member_id in self.members:
            self._drop(member_id)

    def without_members(self, epochs: int) -> ConsumerGroup:
        """The same group when nobody is in it any more; up to so many epochs began meanwhile that
        nobody knows of."""
        emptied = ConsumerGroup(self.group_id, self.settings)
        known = [self.epoch, self.assignment_epoch, *(m.epoch for m in self.members.values())]
        emptied.epoch = emptied.assignment_epoch = max(known) + epochs
        return emptied

    def begin_sessions(self, now_ms: int) -> None:
        """A new coordinator gives every member a full session to show itself."""
        self._untaken = {
            name: united(member.assigned, member.revoking)
            for name, member in self.members.items()
            if member.classic is None  # those join between an answer and the next report
        }
        self._told_here.clear()
        self._untold = dict.fromkeys(self._untaken)
        for member in self.members.values():
            session_ms = self.settings.session_timeout_ms
            if member.classic is not None:
                session_ms = member.classic.session_timeout_ms
            self.expect(member.member_id, Wait.SESSION, now_ms + session_ms)
            if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
                self.expect(member.member_id, Wait.REVOKE, now_ms + member.rebalance_timeout_ms)

    def all_records(self, wall_ms: int) -> list[ConsumerRecord]:
        """Everything, as the records that make such a group."""
        records = [member_record(self.group_id, m) for m in self.members.values()]
        records.append(epoch_record(self.group_id, self.epoch, self.topics_hash))
        records += [target_record(self.group_id, name, t) for name, t in self.targets.items()]
        records.append(target_epoch_record(self.group_id, self.assignment_epoch, wall_ms))
        return records + [current_record(self.group_id, m) for m in self.members.values()]

    def all_tombstones(self) -> list[ConsumerRecord]:
        members = [t for name in self.members for t in member_tombstones(self.group_id, name)]
        return [*members, *group_tombstones(self.group_id)]

    # --- offsets ---------------------------------------------------------------------------

    def check_commit(self, member_id: str, epoch: int, *, knows_epochs: bool) -> ErrorCode:
        """Only a member in its epoch commits; into an empty group anybody may.

        `knows_epochs`: OffsetCommit from version 9; members of this protocol must use it.
        """
        if epoch < 0 and not self.members:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member.classic is None and not knows_epochs:
            return ErrorCode.UNSUPPORTED_VERSION
        return self._check_member_epoch(member, epoch)

    def held_by_another(self, member_id: str, pair: tuple[UUID, int]) -> bool:
        """A commit for such a partition is late: its new owner has begun from the one before.

        Member epochs do not tell, for one that gave something up keeps its epoch or gets a newer.
        """
        topic_id, number = pair
        return self._holders.get(topic_id.int, {}).get(number, member_id) != member_id

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """OffsetFetch from version 9 may name a member: then its epoch must be the current one."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self._check_member_epoch(member, epoch)

    def _check_member_epoch(self, member: ConsumerMember, epoch: int) -> ErrorCode:
        if epoch == member.epoch:
            return ErrorCode.NONE
        if member.classic is not None:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.STALE_MEMBER_EPOCH


def _said(new: str | None, old: str | None) -> str | None:
    return old if new is None else new


def _from_scratch(member: ConsumerMember) -> ConsumerMember:
    """It joins (again) and so holds nothing: what it had is free."""
    return replace(
        member,
        epoch=JOINING_EPOCH,
        previous_epoch=JOINING_EPOCH,
        state=MemberState.STABLE,
        assigned=NOTHING,
        revoking=NOTHING,
    )


def _check_epoch(member: ConsumerMember, beat: Beat) -> None:
    """The answer with the newer epoch may be lost or still on its way: the older one is good too.

    Kafka also wants to see then that it owns no more than it was told to keep, and fences it
    otherwise. What it has yet to give up is still its own here, and no step is taken for it before
    it reports: telling it again is as safe, and spares clients of a slow coordinator a new start.
    """
    if beat.epoch == member.epoch:
        return
    held = united(member.assigned, member.revoking)
    owns_more = beat.owned is not None and bool(without(beat.owned, held))
    if beat.epoch != member.previous_epoch or owns_more:
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"member {member.member_id!r} is in epoch {member.epoch}, not {beat.epoch}: "
            "it must abandon its partitions and join again",
        )
