"""Drives a classic group as clients would."""

from __future__ import annotations

from logboat.groups.classic_group import ClassicGroup, Join, Sync
from logboat.groups.effects import Effect, JoinAnswer, Persist, SyncAnswer
from logboat.groups.settings import GroupSettings
from logboat.groups.states import GroupState
from logboat.wire import ErrorCode

NO_DELAY = GroupSettings(initial_rebalance_delay_ms=0)


class Script:
    """Drives a group as clients would, and keeps what each was told last."""

    def __init__(self, settings: GroupSettings = NO_DELAY) -> None:
        self.group = ClassicGroup("g", settings)
        self.now_ms = 1_000
        self.tokens = 0
        self.answers: dict[int, JoinAnswer | SyncAnswer] = {}
        self.persists: list[Persist] = []

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                self.persists.append(effect)
            else:
                assert effect.token not in self.answers, "answered twice"
                self.answers[effect.token] = effect

    def join(
        self,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = (("range", b"topics"),),
        known_id_required: bool = False,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
    ) -> int:
        self.tokens += 1
        join = Join(
            token=self.tokens,
            member_id=member_id,
            fresh_member_id=f"m{self.tokens}",
            instance_id=instance_id,
            client_id="client",
            client_host="/127.0.0.1",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type="consumer",
            protocols=protocols,
            requires_known_member_id=known_id_required,
            knows_skip_assignment=True,
        )
        self.take(self.group.join(join, self.now_ms))
        return self.tokens

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: tuple[tuple[str, bytes], ...] = (),
        instance_id: str | None = None,
    ) -> int:
        self.tokens += 1
        sync = Sync(self.tokens, member_id, instance_id, generation_id, None, None, assignments)
        self.take(self.group.sync(sync, self.now_ms))
        return self.tokens

    def gone(self, token: int) -> None:
        """The connection of a join ends."""
        self.take(self.group.on_joiner_gone(token, self.now_ms))

    def persisted(self, error: ErrorCode = ErrorCode.NONE) -> None:
        self.take(self.group.on_persisted(self.persists.pop(), error, self.now_ms))

    def wait(self, milliseconds: int) -> None:
        """Let time pass, calling the group whenever it asked to be called."""
        end_ms = self.now_ms + milliseconds
        while (deadline_ms := self.group.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.take(self.group.on_time(self.now_ms))
        self.now_ms = end_ms

    def joined(self, token: int) -> JoinAnswer:
        answer = self.answers[token]
        assert isinstance(answer, JoinAnswer)
        return answer

    def synced(self, token: int) -> SyncAnswer:
        answer = self.answers[token]
        assert isinstance(answer, SyncAnswer)
        return answer

    def stable_pair(self) -> tuple[str, str]:
        """Two members in a stable generation 2; the first leads."""
        first = self.joined(self.join()).member_id
        second_join = self.join()
        first_join = self.join(first)
        second = self.joined(second_join).member_id
        generation = self.joined(first_join).generation_id
        self.sync(second, generation)
        self.sync(first, generation, ((first, b"p0"), (second, b"p1")))
        self.persisted()
        assert self.group.state is GroupState.STABLE
        return first, second
