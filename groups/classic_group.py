"""A classic consumer group: membership, generations, rebalances. No I/O, no clock of its own.

Every method takes what happened and the time, changes the group, and returns what must now be
done. Times are milliseconds of the loop's clock. Rules: Kafka's group coordinator protocol,
KIP-62 (two timeouts), KIP-345 (static members), KIP-394 (member id required), KIP-814.

    Empty --join--> PreparingRebalance --all joined / timeout--> CompletingRebalance
    CompletingRebalance --leader's assignment replicated--> Stable
    Stable, CompletingRebalance --join, leave, expiry--> PreparingRebalance
    PreparingRebalance --nobody left--> Empty
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..seam import frozen
from ..wire import ErrorCode
from .effects import Effect, JoinAnswer, JoinedMember, Persist, SyncAnswer
from .member import Member
from .protocol_choice import Offers
from .settings import GroupSettings
from .states import GroupState, check_transition


@frozen
class Join:
    """A JoinGroup request, stripped of its version. `token` names who waits for the answer."""

    token: int
    member_id: str
    fresh_member_id: str
    """Drawn by the coordinator; used when the member has none."""
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    requires_known_member_id: bool
    """From version 4 a dynamic member first learns its id, then joins with it (KIP-394)."""
    knows_skip_assignment: bool


@frozen
class Sync:
    """A SyncGroup request. `protocol_type` and `protocol` are None before version 5."""

    token: int
    member_id: str
    instance_id: str | None
    generation_id: int
    protocol_type: str | None
    protocol: str | None
    assignments: tuple[tuple[str, bytes], ...]


class ClassicGroup:
    def __init__(self, group_id: str, settings: GroupSettings) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.since_wall_ms: int | None = None
        """Wall clock of the last record about the group; None: it was never written."""
        self._settings = settings
        self._offers = Offers()
        """Of all `members`."""
        self._sessions_due_ms: int | None = None
        """Not later than the first session's end of a member that may expire; kept apart, for every
        heartbeat of hundreds asks for it."""
        self._static: dict[str, str] = {}
        """Instance id -> member id now holding its place."""
        self._pending: dict[str, int] = {}
        """Ids handed out but not yet joined (KIP-394) -> when they are forgotten."""
        self._pending_due_ms: int | None = None
        """Not later than the first of those; kept apart, for strangers may ask for thousands."""
        self._join_deadline_ms: int | None = None
        """While PreparingRebalance."""
        self._initial_window_left_ms: int | None = None
        """While the first rebalance of an empty group gathers members: what may still be added."""
        self._joined_in_window = False
        self._sync_deadline_ms: int | None = None
        """While CompletingRebalance."""
        self._unsynced: dict[str, None] = {}

    def begin_rebalance(self, now_ms: int) -> list[Effect]:
        """Make every member join again: the group came back from the consumer protocol."""
        return self._rebalance(now_ms)

    # --- joining ---------------------------------------------------------------------------

    def join(self, join: Join, now_ms: int) -> list[Effect]:
        if self.state is GroupState.DEAD:
            return [_join_error(join, ErrorCode.COORDINATOR_NOT_AVAILABLE)]
        if not self._accepts_protocols(join):
            return [_join_error(join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)]
        if join.member_id == "":
            return self._join_unknown(join, now_ms)
        return self._join_known(join, now_ms)

    def _accepts_protocols(self, join: Join) -> bool:
        if not join.protocol_type or not join.protocols:
            return False
        replaced = self.members.get(self._static.get(join.instance_id or "", join.member_id))
        if len(self.members) == (replaced is not None):
            return True
        return self.protocol_type == join.protocol_type and any(
            self._offers.common_to_all_but(replaced, name) for name, _ in join.protocols
        )

    def _join_unknown(self, join: Join, now_ms: int) -> list[Effect]:
        if join.instance_id is not None and join.instance_id in self._static:
            return self._replace_static(join, self._static[join.instance_id], now_ms)
        if self._is_full():
            return [_join_error(join, ErrorCode.GROUP_MAX_SIZE_REACHED)]
        if join.requires_known_member_id and join.instance_id is None:
            self._hand_out(join.fresh_member_id, now_ms + join.session_timeout_ms)
            refusal = _join_error(join, ErrorCode.MEMBER_ID_REQUIRED)
            return [replace(refusal, member_id=join.fresh_member_id)]
        return self._add_member(join, join.fresh_member_id, now_ms)

    def _hand_out(self, member_id: str, forgotten_at_ms: int) -> None:
        self._pending[member_id] = forgotten_at_ms
        if self._pending_due_ms is None or forgotten_at_ms < self._pending_due_ms:
            self._pending_due_ms = forgotten_at_ms

    def _join_known(self, join: Join, now_ms: int) -> list[Effect]:
        error = self._check_identity(join.member_id, join.instance_id, pending_allowed=True)
        if error is not ErrorCode.NONE:
            return [_join_error(join, error)]
        if self._pending.pop(join.member_id, None) is not None:
            if self._is_full():
                return [_join_error(join, ErrorCode.GROUP_MAX_SIZE_REACHED)]
            return self._add_member(join, join.member_id, now_ms)
        return self._rejoin(join, self.members[join.member_id], now_ms)

    def _is_full(self) -> bool:
        return len(self.members) + len(self._pending) >= self._settings.max_size

    def _add_member(self, join: Join, member_id: str, now_ms: int) -> list[Effect]:
        member = Member(
            member_id=member_id,
            instance_id=join.instance_id,
            client_id=join.client_id,
            client_host=join.client_host,
            session_timeout_ms=join.session_timeout_ms,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            protocols=join.protocols,
            is_new=True,
            joining=join.token,
            session_deadline_ms=now_ms + self._settings.new_member_join_timeout_ms,
        )
        if not self.members:
            self.protocol_type = join.protocol_type
        self._enter(member)
        self._joined_in_window = True
        return self._rebalance(now_ms)

    def _enter(self, member: Member) -> None:
        self.members[member.member_id] = member
        self._offers.add(member)
        self._expect_sign_of_life(member)
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id

    def _touch(self, member: Member, now_ms: int) -> None:
        member.touch(now_ms)
        self._expect_sign_of_life(member)

    def _expect_sign_of_life(self, member: Member) -> None:
        due_ms = self._sessions_due_ms
        if due_ms is None or member.session_deadline_ms < due_ms:
            self._sessions_due_ms = member.session_deadline_ms

    def _rejoin(self, join: Join, member: Member, now_ms: int) -> list[Effect]:
        unchanged = member.protocols == join.protocols
        answered = self._join_answered_again(join, member, unchanged=unchanged)
        if answered is not None:
            self._touch(member, now_ms)
            return [answered]
        effects = self._drop_waits(member, ErrorCode.REBALANCE_IN_PROGRESS)
        self._offers.remove(member)
        member.protocols = join.protocols
        self._offers.add(member)
        member.session_timeout_ms = join.session_timeout_ms
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.client_id, member.client_host = join.client_id, join.client_host
        member.joining = join.token
        self._touch(member, now_ms)
        return effects + self._rebalance(now_ms)

    def on_joiner_gone(self, token: int, now_ms: int) -> list[Effect]:
        """The connection on which a JoinGroup waits has ended.

        Kafka does not look, and counts the member as one who joined: it may lead the generation
        that begins then, which waits for it until its session ends, as the next ones do for others
        who left meanwhile. Here who has never been in a generation is forgotten; should it come
        back it begins anew, and has lost nothing. Any other keeps its place for a session from now
        on: it may have lost its connection only.
        """
        found = (member for member in self.members.values() if member.joining == token)
        member = next(found, None)
        if member is None:
            return []
        if member.is_new and member.instance_id is None:
            return self._remove(member, now_ms)
        member.cut_off = True
        self._touch(member, now_ms)
        return []

    def _join_answered_again(
        self, join: Join, member: Member, *, unchanged: bool
    ) -> JoinAnswer | None:
        """The generation in force, for a member that needs no new one (it lost the answer)."""
        if self.state is GroupState.COMPLETING_REBALANCE and unchanged:
            return self._join_success(join.token, member)
        is_leader = member.member_id == self.leader
        if self.state is GroupState.STABLE and unchanged and not is_leader:
            return self._join_success(join.token, member)
        return None

    def _replace_static(self, join: Join, old_id: str, now_ms: int) -> list[Effect]:
        """A restarted process takes its place again; whoever holds the old id is fenced."""
        old = self.members.pop(old_id)
        self._offers.remove(old)
        effects = self._drop_waits(old, ErrorCode.FENCED_INSTANCE_ID)
        member = replace(
            old,
            member_id=join.fresh_member_id,
            client_id=join.client_id,
            client_host=join.client_host,
            session_timeout_ms=join.session_timeout_ms,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            protocols=join.protocols,
        )
        member.touch(now_ms)
        self._enter(member)
        was_leader = self.leader == old_id
        if was_leader:
            self.leader = member.member_id
        self._unsynced.pop(old_id, None)
        same_protocol = self._choose_protocol() == self.protocol
        if self.state is GroupState.STABLE and same_protocol:
            answer = self._join_success(join.token, member)
            if was_leader and join.knows_skip_assignment:
                answer = replace(answer, skip_assignment=True)
            elif was_leader:
                # Naming the old id as leader keeps the member from assigning anew (KIP-345).
                answer = replace(answer, leader=old_id, members=())
            return [*effects, Persist(self.generation_id, answer=answer)]
        member.joining = join.token
        return effects + self._rebalance(now_ms)

    def _join_success(self, token: int, member: Member) -> JoinAnswer:
        protocol = self.protocol or ""
        members: tuple[JoinedMember, ...] = ()
        if member.member_id == self.leader:
            members = tuple(
                JoinedMember(m.member_id, m.instance_id, m.metadata(protocol))
                for m in self.members.values()
            )
        return JoinAnswer(
            token=token,
            error=ErrorCode.NONE,
            member_id=member.member_id,
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol=protocol,
            leader=self.leader or "",
            members=members,
        )

    # --- rebalancing -----------------------------------------------------------------------

    def _rebalance(self, now_ms: int) -> list[Effect]:
        """Start a rebalance unless one is being prepared, and complete it when it can be."""
        effects: list[Effect] = []
        if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            effects += self._release_syncs(ErrorCode.REBALANCE_IN_PROGRESS)
            self._begin_preparing(now_ms + self._rebalance_timeout_ms())
        elif self.state is GroupState.EMPTY:
            delay_ms = self._settings.initial_rebalance_delay_ms
            self._initial_window_left_ms = max(self._rebalance_timeout_ms() - delay_ms, 0)
            self._joined_in_window = False
            self._begin_preparing(now_ms + delay_ms)
        return effects + self._maybe_complete_join(now_ms)

    def _begin_preparing(self, deadline_ms: int) -> None:
        self._move_to(GroupState.PREPARING_REBALANCE)
        self._join_deadline_ms = deadline_ms
        self._sync_deadline_ms = None
        self._unsynced.clear()

    def _rebalance_timeout_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def _maybe_complete_join(self, now_ms: int) -> list[Effect]:
        if self.state is not GroupState.PREPARING_REBALANCE or self._join_deadline_ms is None:
            return []
        expired = now_ms >= self._join_deadline_ms
        if self._initial_window_left_ms is not None:
            if not expired:
                return []
            if self._joined_in_window and self._initial_window_left_ms > 0:
                delay_ms = min(
                    self._settings.initial_rebalance_delay_ms, self._initial_window_left_ms
                )
                self._initial_window_left_ms -= delay_ms
                self._joined_in_window = False
                self._join_deadline_ms = now_ms + delay_ms
                if delay_ms > 0:
                    return []
            self._initial_window_left_ms = None
            return self._complete_join(now_ms)
        all_here = not self._pending and all(m.joining is not None for m in self.members.values())
        return self._complete_join(now_ms) if all_here or expired else []

    def _complete_join(self, now_ms: int) -> list[Effect]:
        for member in list(self.members.values()):
            if member.joining is None and member.instance_id is None:
                self._forget(member)
        if not self.members:
            return self._become_empty()
        if not self._elect_leader():
            # Only static members are left and none is back: they keep their places for now.
            self._join_deadline_ms = now_ms + self._rebalance_timeout_ms()
            return []
        self.generation_id += 1
        self.protocol = self._choose_protocol()
        self._move_to(GroupState.COMPLETING_REBALANCE)
        self._join_deadline_ms = None
        self._sync_deadline_ms = now_ms + self._rebalance_timeout_ms()
        self._unsynced = dict.fromkeys(self.members)
        effects: list[Effect] = []
        for member in self.members.values():
            if member.joining is not None:
                effects.append(self._join_success(member.joining, member))
                member.joining = None
                member.is_new = False
                if not member.cut_off:
                    member.touch(now_ms)
                member.cut_off = False
                self._expect_sign_of_life(member)
        return effects

    def _choose_protocol(self) -> str:
        return self._offers.chosen(next(iter(self.members.values())))

    def _elect_leader(self) -> bool:
        """A leader that joined stays; otherwise the first member that joined leads. One who is cut
        off only leads where all are."""
        joined = [m for m in self.members.values() if m.joining is not None]
        there = [m.member_id for m in joined if not m.cut_off] or [m.member_id for m in joined]
        if not there:
            return False
        if self.leader not in there:
            self.leader = there[0]
        return True

    def _become_empty(self) -> list[Effect]:
        self.generation_id += 1
        self.protocol = None
        self.leader = None
        self._join_deadline_ms = None
        self._initial_window_left_ms = None
        self._move_to(GroupState.EMPTY)
        return [Persist(self.generation_id)]

    # --- the assignment --------------------------------------------------------------------

    def sync(self, sync: Sync, now_ms: int) -> list[Effect]:
        error = self._check_sync(sync)
        if error is not ErrorCode.NONE:
            return [SyncAnswer(sync.token, error)]
        member = self.members[sync.member_id]
        self._touch(member, now_ms)
        if self.state is GroupState.STABLE:
            return [self._sync_success(sync.token, member)]
        effects = self._drop_waits(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.syncing = sync.token
        self._unsynced.pop(member.member_id, None)
        if member.member_id == self.leader:
            given = dict(sync.assignments)
            # A member the leader forgot gets nothing, rather than what it had before.
            complete = tuple((name, given.get(name, b"")) for name in self.members)
            effects.append(Persist(self.generation_id, assignments=complete))
        return effects

    def _check_sync(self, sync: Sync) -> ErrorCode:
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._check_identity(sync.member_id, sync.instance_id)
        if error is not ErrorCode.NONE:
            return error
        if sync.generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        if sync.protocol_type not in (None, self.protocol_type) or sync.protocol not in (
            None,
            self.protocol,
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if self.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def on_persisted(self, persisted: Persist, error: ErrorCode, now_ms: int) -> list[Effect]:
        """The record is replicated (or not, or nobody knows): answer those who wait for it."""
        if persisted.answer is not None:
            if error is ErrorCode.NONE:
                return [persisted.answer]
            return [_failed(persisted.answer, error), *self._rebalance(now_ms)]
        if (
            self.state is not GroupState.COMPLETING_REBALANCE
            or persisted.generation_id != self.generation_id
        ):
            return []
        if error is not ErrorCode.NONE:
            return self._release_syncs(error) + self._rebalance(now_ms)
        for member_id, assignment in persisted.assignments:
            if member_id in self.members:
                self.members[member_id].assignment = assignment
        self._move_to(GroupState.STABLE)
        effects: list[Effect] = []
        for member in self.members.values():
            if member.syncing is not None:
                effects.append(self._sync_success(member.syncing, member))
                member.syncing = None
                self._touch(member, now_ms)
        return effects

    def _sync_success(self, token: int, member: Member) -> SyncAnswer:
        return SyncAnswer(
            token, ErrorCode.NONE, self.protocol_type, self.protocol, member.assignment
        )

    def _release_syncs(self, error: ErrorCode) -> list[Effect]:
        effects: list[Effect] = []
        for member in self.members.values():
            if self.state is GroupState.COMPLETING_REBALANCE:
                member.assignment = b""
            if member.syncing is not None:
                effects.append(SyncAnswer(member.syncing, error))
                member.syncing = None
                self._expect_sign_of_life(member)
        return effects

    # --- life and death of members -----------------------------------------------------------

    def heartbeat(
        self, member_id: str, instance_id: str | None, generation_id: int, now_ms: int
    ) -> ErrorCode:
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._check_identity(member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        self._touch(self.members[member_id], now_ms)
        if self.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(
        self, member_id: str, instance_id: str | None, now_ms: int
    ) -> tuple[ErrorCode, list[Effect]]:
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        if member_id == "" and instance_id is not None:
            # An administrator removes a static member by its instance id alone (KIP-345).
            if instance_id not in self._static:
                return ErrorCode.UNKNOWN_MEMBER_ID, []
            member_id = self._static[instance_id]
        if self._pending.pop(member_id, None) is not None:
            return ErrorCode.NONE, self._maybe_complete_join(now_ms)
        error = self._check_identity(member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error, []
        return ErrorCode.NONE, self._remove(self.members[member_id], now_ms)

    def may_commit(
        self, member_id: str, instance_id: str | None, generation_id: int, now_ms: int
    ) -> ErrorCode:
        """Only a member of the generation in force commits; into an empty group anybody may."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation_id < 0 and member_id == "" and instance_id is None:
            empty = self.state is GroupState.EMPTY
            return ErrorCode.NONE if empty else ErrorCode.UNKNOWN_MEMBER_ID
        error = self._check_identity(member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        self._touch(self.members[member_id], now_ms)
        if self.state is GroupState.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _check_identity(
        self, member_id: str, instance_id: str | None, *, pending_allowed: bool = False
    ) -> ErrorCode:
        if instance_id is not None:
            holder = self._static.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id in self.members or (pending_allowed and member_id in self._pending):
            return ErrorCode.NONE
        return ErrorCode.UNKNOWN_MEMBER_ID

    def _remove(self, member: Member, now_ms: int) -> list[Effect]:
        effects = self._drop_waits(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._forget(member)
        return effects + self._rebalance(now_ms)

    def _forget(self, member: Member) -> None:
        del self.members[member.member_id]
        self._offers.remove(member)
        self._unsynced.pop(member.member_id, None)
        if member.instance_id is not None:
            self._static.pop(member.instance_id, None)
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def _drop_waits(self, member: Member, error: ErrorCode) -> list[Effect]:
        """Answer what still waits for `member`: nothing may wait for ever, or be answered twice."""
        effects: list[Effect] = []
        if member.joining is not None:
            effects.append(JoinAnswer(member.joining, error, member.member_id))
            member.joining = None
            member.cut_off = False
        if member.syncing is not None:
            effects.append(SyncAnswer(member.syncing, error))
            member.syncing = None
        return effects

    # --- time ------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When `on_time` must be called, if nothing else happens before: not later than it has
        something to do."""
        if self.state is GroupState.DEAD:
            return None
        deadlines = (
            self._pending_due_ms,
            self._join_deadline_ms,
            self._sync_deadline_ms,
            self._sessions_due_ms,
        )
        return min((due_ms for due_ms in deadlines if due_ms is not None), default=None)

    def on_time(self, now_ms: int) -> list[Effect]:
        """Forget who has been silent too long and complete what has waited long enough."""
        effects: list[Effect] = []
        if self._pending_due_ms is not None and now_ms >= self._pending_due_ms:
            self._pending = {name: due for name, due in self._pending.items() if due > now_ms}
            self._pending_due_ms = min(self._pending.values(), default=None)
        if self._sessions_due_ms is not None and now_ms >= self._sessions_due_ms:
            effects += self._expire_sessions(now_ms)
        if self._sync_deadline_ms is not None and now_ms >= self._sync_deadline_ms:
            self._sync_deadline_ms = None
            for member_id in list(self._unsynced):
                if member_id in self.members:
                    effects += self._remove(self.members[member_id], now_ms)
        return effects + self._maybe_complete_join(now_ms)

    def _expire_sessions(self, now_ms: int) -> list[Effect]:
        self._sessions_due_ms = None
        effects: list[Effect] = []
        for member in list(self.members.values()):
            # With one gone a rebalance may complete, and forget others who are silent too.
            if not _may_expire(member) or member.member_id not in self.members:
                continue
            if now_ms >= member.session_deadline_ms:
                effects += self._remove(member, now_ms)
            else:
                self._expect_sign_of_life(member)
        return effects

    # --- from and to the log ---------------------------------------------------------------

    def restore(
        self,
        *,
        generation_id: int,
        protocol_type: str,
        protocol: str | None,
        leader: str | None,
        members: Sequence[Member],
        now_ms: int,
        since_wall_ms: int,
    ) -> None:
        """Become what a metadata record says; members get a full session to show themselves."""
        self.since_wall_ms = since_wall_ms if since_wall_ms >= 0 else None
        self.generation_id = generation_id
        self.protocol_type = protocol_type or None
        self.protocol = protocol
        self.leader = leader
        for member in members:
            member.touch(now_ms)
            self._enter(member)
        self.state = GroupState.STABLE if members else GroupState.EMPTY

    def without_members(self, generations: int) -> ClassicGroup:
        """The same group when nobody is in it any more; up to so many generations began meanwhile
        that nobody knows of."""
        emptied = ClassicGroup(self.group_id, self._settings)
        emptied.since_wall_ms = self.since_wall_ms
        emptied.generation_id = self.generation_id + generations
        emptied.protocol_type = self.protocol_type
        return emptied

    def die(self, error: ErrorCode) -> list[Effect]:
        """The group moves to another coordinator or is deleted: everybody is told, none waits."""
        effects: list[Effect] = []
        for member in self.members.values():
            effects += self._drop_waits(member, error)
        self._move_to(GroupState.DEAD)
        self._join_deadline_ms = self._sync_deadline_ms = None
        self._pending.clear()
        self._pending_due_ms = None
        return effects

    def _move_to(self, state: GroupState) -> None:
        check_transition(self.group_id, self.state, state)
        self.state = state
        if state is not GroupState.COMPLETING_REBALANCE:
            self._sync_deadline_ms = None


def _may_expire(member: Member) -> bool:
    """A waiting request is a sign of life, but a member nobody has told anything may be gone."""
    return not member.waiting or member.is_new


def _join_error(join: Join, error: ErrorCode) -> JoinAnswer:
    return JoinAnswer(join.token, error, join.member_id)


def _failed(answer: JoinAnswer, error: ErrorCode) -> JoinAnswer:
    return JoinAnswer(answer.token, error, answer.member_id)
