"""Drives one engine: when it ticks, what it hears, what leaves, who is told.

Everything that touches the engine happens here and synchronously: a message, a tick, a sync that
has come through. Ticks come from deadlines (heartbeat, check-quorum, the guards' timers) and from
one coalesced callback after anything happened; an idle follower ticks once a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol
from uuid import UUID

from pysyncobj.config import FAIL_REASON

from ..seam import OnFatal, TaskScope
from .applier import Application, Applier
from .engine import Engine
from .engine_snapshots import EngineSnapshots, SnapshotReceiver
from .guards import Guard, GuardFactory
from .interface import Applied, NotLeader, OnRole, Outcome, Role, StateMachine, Unknown
from .journal import Journal
from .messages import Ack, Message, SnapshotChunk, SnapshotOffer, TimeoutNow, Vote
from .progress import Progress
from .settings import RaftSettings
from .snapshots import SnapshotStore
from .transfer import NotTransferred, Transfer, TransferOutcome, Transferred
from .transport import SnapshotStream

logger = logging.getLogger(__name__)

IDLE_TICK_S = 1.0
"""Without any other reason: the commit index is written down about once a second."""

LONE_TICK_S = 0.005
"""A lone voter looks at its election timer this often until it leads."""

LATE_S = 0.001
"""Ticks come this much after a deadline, since the engine compares with `>`."""

MAX_HELD = 1000
"""Messages of one peer that wait while a snapshot from it is being installed."""

_NEVER_APPENDED = (
    FAIL_REASON.NOT_LEADER,
    FAIL_REASON.MISSING_LEADER,
    FAIL_REASON.QUEUE_FULL,
    FAIL_REASON.REQUEST_DENIED,
    # It was appended, but another entry has been committed and applied in its place.
    FAIL_REASON.DISCARDED,
)


class Wire(Protocol):
    """The connections, as the driver uses them."""

    def send(self, peer: int, item: Message | SnapshotStream, *, after: int) -> bool: ...

    def connected(self, peer: int) -> bool: ...

    def sending_snapshot(self, peer: int) -> bool: ...

    def directory_of(self, peer: int) -> UUID | None: ...

    def drop(self, peer: int, reason: str) -> None: ...

    def on_synced(self) -> None: ...


class Proposal:
    """A command on its way to its outcome."""

    __slots__ = ("command", "future")

    def __init__(self, command: bytes, future: asyncio.Future[Outcome]) -> None:
        self.command = command
        self.future = future

    def answer(self, outcome: Outcome) -> None:
        if not self.future.done():
            self.future.set_result(outcome)


class Driver:
    """One voter. Implements what the engine and its guards ask of their node."""

    def __init__(
        self,
        *,
        node_id: int,
        peers: Sequence[int],
        settings: RaftSettings,
        journal: Journal,
        store: SnapshotStore,
        machine: StateMachine,
        rng: Random,
        wire: Wire,
        scope: TaskScope,
        guards: Sequence[GuardFactory],
        on_role: OnRole,
        on_fatal: OnFatal,
        on_applied: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_applied` is told of every applied entry, barriers among them."""
        self.node_id = node_id
        self.peers: Sequence[int] = tuple(sorted(peers))
        self.settings = settings
        self.journal = journal
        self.role = Role.FOLLOWER
        self.failed = False
        self._stopped = False
        self._applier = Applier(
            machine, work_per_turn=settings.work_per_turn, on_applied=on_applied
        )
        self._wire = wire
        self._scope = scope
        self._tell_role = on_role
        self._on_fatal = on_fatal
        self._waiting: deque[Proposal] = deque()
        self._held_back: deque[Proposal] = deque()
        """Proposals that wait until a transfer of the leadership has come to its end."""
        self._transfer: Transfer | None = None
        self._in_engine: dict[Proposal, None] = {}
        self._turn_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._last_append = 0.0
        self._last_answer: dict[int, float] = {}
        self._progress: dict[int, Progress] = {}
        self._reported: dict[int, bool] = dict.fromkeys(self.peers, False)
        self._told: tuple[Role, int, int | None] | None = None
        self._depth = 0
        self.last_contact: dict[int, float] = {}
        self._receiver = SnapshotReceiver(store, max_bytes=settings.max_snapshot_bytes)
        self._installing_from: int | None = None
        self._held: deque[Message] = deque()
        self._snapshots = EngineSnapshots(
            store=store,
            journal=journal,
            machine=machine,
            applier=self._applier,
            scope=scope,
            on_done=self.wake,
            is_sending=wire.sending_snapshot,
            on_fatal=self.fail,
        )
        self._store = store
        self._guards: list[Guard] = [create(self) for create in guards]
        # Only those that care: these run for each message and turn of a busy log.
        self._on_send_guards = self._caring("on_send")[::-1]
        self._depends_on_guards = self._caring("depends_on")
        self._on_role_guards = self._caring("on_role")
        self._on_time_guards = self._caring("on_time")
        self._may_tick_guards = self._caring("may_tick")
        self._next_due_guards = self._caring("next_due")
        self._on_receive_guards = [
            self._caring("on_receive", behind=behind) for behind in range(len(self._guards) + 1)
        ]
        """By the position from which on a message has still to pass."""
        self._after_receive_guards = [
            self._caring("after_receive", behind=behind) for behind in range(len(self._guards) + 1)
        ]
        self._engine = Engine(
            self,
            node_id=node_id,
            peers=self.peers,
            settings=settings,
            journal=journal,
            serializer=self._snapshots,
            rng=rng,
        )

    # GuardContext

    @property
    def term(self) -> int:
        return self.journal.term

    @property
    def commit_index(self) -> int:
        commit_index: int = self._engine.raftCommitIndex
        return commit_index

    @property
    def applied_index(self) -> int:
        if self._applier.next_index is not None:
            return self._applier.next_index - 1
        handed_over: int = self._engine.raftLastApplied
        return handed_over

    @property
    def leading(self) -> bool:
        return self.role is Role.LEADER

    @property
    def leader_id(self) -> int | None:
        return self.node_id if self.leading else self._engine.leader_id

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def directory_of(self, peer: int) -> UUID | None:
        return self._wire.directory_of(peer)

    def hand_on(self, guard: Guard, peer: int, message: Message) -> None:
        behind = self._guards.index(guard) + 1
        self._inside(lambda: self._deliver_from(behind, peer, message))

    def send(self, peer: int, message: Message) -> None:
        if not self.failed:
            # An answer tells of terms and entries, so it waits for them like the engine's own (E2).
            after = self.journal.written if isinstance(message, Ack | Vote) else 0
            self._wire.send(peer, message, after=after)

    def confirm(self) -> None:
        self.propose(Proposal(b"", asyncio.get_running_loop().create_future()))

    def refresh(self) -> None:
        """Report to the engine whom it may believe to be connected."""
        self._inside(self._report_connected)
        self.wake()

    def _report_connected(self) -> None:
        for peer in self.peers:
            shown = self._wire.connected(peer) and all(g.shows(peer) for g in self._guards)
            if shown != self._reported[peer]:
                self._reported[peer] = shown
                self._engine.report_connected(peer, shown)

    def fail(self, error: BaseException) -> None:
        """Stop touching anything and end the process. The first error is the one that is told."""
        if not self.failed:
            self.failed = True
            self._on_fatal(error)

    # From outside.

    def start(self) -> None:
        """The first tick: it loads the snapshot, before any message is heard."""
        self._inside(self._tick)
        self.wake()

    def stop(self) -> None:
        """Nothing happens any more; what is under way stays unknown."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for proposal in [*self._waiting, *self._held_back, *self._in_engine]:
            proposal.answer(Unknown("the node stops"))
        self._waiting.clear()
        self._held_back.clear()
        if self._transfer is not None:
            self._end_transfer(NotTransferred("the node stops"))
        self._in_engine.clear()

    def propose(self, proposal: Proposal) -> None:
        """Queue; answered through its future."""
        if self.failed or self._stopped:
            proposal.answer(NotLeader(None))
        elif not self.leading:
            proposal.answer(NotLeader(self.leader_id))
        elif self._proposals() >= self.settings.max_proposals:
            proposal.answer(Unknown("too many proposals are under way"))
        elif self._transfer is not None:
            self._held_back.append(proposal)
        else:
            self._waiting.append(proposal)
            self.wake()

    def give_up(self, proposal: Proposal, outcome: Outcome) -> None:
        """The proposal's deadline has come."""
        for queue in (self._waiting, self._held_back):
            if proposal in queue:
                queue.remove(proposal)
        # The engine may never call back, for instance after a snapshot (finding K).
        self._in_engine.pop(proposal, None)
        proposal.answer(outcome)

    def _proposals(self) -> int:
        return len(self._waiting) + len(self._held_back) + len(self._in_engine)

    def transfer(self, voter: int) -> asyncio.Future[TransferOutcome]:
        """Have another voter lead instead of this one (see `transfer.py`). Ends within one of the
        longest election timeouts."""
        outcome = asyncio.get_running_loop().create_future()
        transfer = Transfer(voter, due=self.now() + self.settings.election_max_s, outcome=outcome)
        if self.failed or self._stopped or not self.leading:
            transfer.end(NotTransferred("this node does not lead"))
        elif self._transfer is not None:
            transfer.end(NotTransferred(f"it is being handed to node {self._transfer.voter}"))
        elif not self._wire.connected(voter):
            transfer.end(NotTransferred(f"there is no connection to node {voter}"))
        else:
            self._transfer = transfer
            self.wake()
        return outcome

    def compact(self) -> None:
        """Make a snapshot in the next turn, however short the log is."""
        self._engine.forceLogCompaction()
        self.wake()

    def receive(self, peer: int, message: Message) -> None:
        """A message from a peer."""
        if self.failed or self._stopped:
            return
        self.last_contact[peer] = self.now()
        if self._installing_from == peer:
            self._hold(peer, message)
            return
        self._inside(lambda: self._deliver_from(0, peer, message))
        self.wake()

    def on_link(self, peer: int) -> None:
        """The outgoing connection to `peer` was made or lost."""
        if not self._stopped:
            for guard in self._guards:
                guard.on_link(peer)
            self.refresh()

    def on_synced(self) -> None:
        """The journal's synced position has moved."""
        if self.failed or self._stopped:
            return
        self._inside(self._tell_synced)
        self._wire.on_synced()
        self.wake()

    def progress_of(self, peer: int) -> Progress | None:
        """How far a voter has come; None unless this node leads."""
        return self._progress.get(peer) if self.leading else None

    def heard_leader(self) -> int | None:
        """The leader, unless it has been silent for an election timeout."""
        leader = self.leader_id
        if leader is None or leader == self.node_id:
            return leader
        heard = self.last_contact.get(leader)
        fresh = heard is not None and self.now() - heard <= self.settings.election_max_s
        return leader if fresh else None

    def reported_connected(self, peer: int) -> bool:
        return self._wire.connected(peer)

    def wake(self) -> None:
        """Have a turn soon."""
        if not self._turn_due and not self._stopped:
            self._turn_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    # Turns.

    def _turn(self) -> None:
        self._turn_due = False
        if self.failed or self._stopped:
            return
        self._inside(self._take_turn)
        self._set_timer()

    def _take_turn(self) -> None:
        now = self.now()
        for guard in self._on_time_guards:
            guard.on_time(now)
        if self._transfer is not None:
            self._advance_transfer(self._transfer, now)
        more = self._applier.turn()
        if all(guard.may_tick() for guard in self._may_tick_guards):
            self._hand_over()
            self._tick()
            more |= self._applier.next_index is not None
            more |= bool(self._waiting) or self._engine.raftLastApplied < self.commit_index
        if more:
            self.wake()

    def _tick(self) -> None:
        self._engine.tick()

    def _tell_synced(self) -> None:
        for guard in self._guards:
            guard.on_synced()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.failed or self._stopped or self._turn_due:
            self._timer = None
            return
        now = self.now()
        due = now + IDLE_TICK_S
        for guard in self._next_due_guards:
            guard_due = guard.next_due()
            if guard_due is not None:
                due = min(due, guard_due)
        if self._transfer is not None:
            due = min(due, self._transfer.due)
        if self.leading and self.peers:
            heartbeat = self._last_append + self.settings.heartbeat_s + LATE_S
            if heartbeat <= now:
                heartbeat = now + self.settings.heartbeat_s
            due = min(due, heartbeat, self._fallback_due())
        elif not self.peers and not self.leading:
            due = min(due, now + LONE_TICK_S)
        self._timer = asyncio.get_running_loop().call_at(max(due, now), self._turn)

    def _fallback_due(self) -> float:
        """When the engine steps down unless a majority answers before."""
        answers = sorted((self._last_answer[peer] for peer in self.peers), reverse=True)
        needed = (len(self.peers) + 1) // 2
        return answers[needed - 1] + self.settings.fallback_s + LATE_S

    def _advance_transfer(self, transfer: Transfer, now: float) -> None:
        if not self.leading:
            # Whoever is to be asked now, it is not this node.
            self._release()
            if self.leader_id is not None:
                elected = self.leader_id
                self._end_transfer(
                    Transferred(elected)
                    if elected == transfer.voter
                    else NotTransferred(f"node {elected} was elected instead")
                )
                return
        if now >= transfer.due:
            self._end_transfer(NotTransferred(f"node {transfer.voter} did not take over in time"))
        elif self.leading and not transfer.told and not self._waiting:
            progress = self._progress[transfer.voter]
            if progress.match_index == self.journal.last_index:
                transfer.told = True
                # The term is all that it rests on.
                message = TimeoutNow(self.term)
                self._wire.send(transfer.voter, message, after=self.journal.term_position)

    def _end_transfer(self, outcome: TransferOutcome) -> None:
        transfer, self._transfer = self._transfer, None
        assert transfer is not None
        transfer.end(outcome)
        self._release()

    def _release(self) -> None:
        if self._held_back:
            self._waiting.extend(self._held_back)
            self._held_back.clear()
            self.wake()

    def _hand_over(self) -> None:
        """Give waiting proposals to the engine, which appends them in the tick that follows."""
        if not self.leading:
            while self._waiting:
                self._waiting.popleft().answer(NotLeader(self.leader_id))
        burst: list[tuple[bytes, Callable[[object, int], None]]] = []
        while self._waiting and len(burst) < self.settings.proposals_per_turn:
            proposal = self._waiting.popleft()
            self._in_engine[proposal] = None
            burst.append((proposal.command, self._on_outcome(proposal)))
        self._engine.propose(burst)

    def _on_outcome(self, proposal: Proposal) -> Callable[[object, int], None]:
        def on_applied(applied: Applied) -> None:
            self._in_engine.pop(proposal, None)
            proposal.answer(applied)

        def on_outcome(result: object, reason: int) -> None:
            if reason == FAIL_REASON.SUCCESS and isinstance(result, Application):
                result.tell(on_applied)
                return
            self._in_engine.pop(proposal, None)
            if reason in _NEVER_APPENDED:
                proposal.answer(NotLeader(self.leader_id))
            else:
                proposal.answer(Unknown(f"the engine says {reason}"))

        return on_outcome

    # Into the engine.

    def _inside(self, action: Callable[[], None]) -> None:
        """Around everything that may reach the engine; the outermost looks at what has changed."""
        if self.failed:
            return
        self._depth += 1
        try:
            action()
            if self.journal.failed is not None:
                # Kept by the journal, since the engine may have swallowed it.
                raise self.journal.failed
            if self._depth == 1 and not self.failed:
                for guard in self._on_role_guards:
                    guard.on_role()
                self._report_role()
        except Exception as error:
            # The engine has no exceptions that it means: whatever it raises, its state may be
            # half changed (finding H).
            self.fail(error)
            if self._depth > 1:
                raise
        finally:
            self._depth -= 1

    def _report_role(self) -> None:
        current = (self.role, self.term, self.leader_id)
        if current == self._told:
            return
        if self.leading and self.journal.synced < self.journal.term_position:
            return  # A lone voter's term is not durable yet; the sync brings us back here.
        self._told = current
        self._tell_role(*current)

    def _caring(self, hook: str, *, behind: int = 0) -> list[Guard]:
        """The guards from position `behind` on that override `hook`."""
        return [guard for guard in self._guards[behind:] if _overrides(guard, hook)]

    def _deliver_from(self, position: int, peer: int, message: Message | None) -> None:
        for guard in self._on_receive_guards[position]:
            if message is None:
                return
            message = guard.on_receive(peer, message)
        if message is None:
            return
        try:
            self._deliver(peer, message)
        finally:
            for guard in self._after_receive_guards[position]:
                guard.after_receive(peer)

    def _deliver(self, peer: int, message: Message) -> None:
        if isinstance(message, SnapshotChunk):
            self._on_chunk(peer, message)
            return
        if isinstance(message, Ack):
            self._last_answer[peer] = self.now()
            if message.success and peer in self._progress:
                self._progress[peer].confirm(
                    message.next_index - 1, last_index=self.journal.last_index, now=self.now()
                )
        self._engine.receive(peer, message)

    # Called by the engine.

    def on_engine_send(self, peer: int, message: Message) -> bool:
        passed: Message | None = message
        for guard in self._on_send_guards:
            if passed is None:
                return False
            passed = guard.on_send(peer, passed)
        if passed is None or self.failed:
            return False
        self._last_append = self.now()
        after = 0
        for guard in self._depends_on_guards:
            after = max(after, guard.depends_on(passed))
        item: Message | SnapshotStream = passed
        if isinstance(passed, SnapshotOffer):
            latest = self._store.latest
            if latest is None or not passed.available:
                return False
            item = SnapshotStream(passed.term, passed.commit_index, latest)
        return self._wire.send(peer, item, after=after)

    def on_engine_role(self, role: Role) -> None:
        self.role = role
        if role is Role.LEADER:
            now = self.now()
            self._last_answer = dict.fromkeys(self.peers, now)
            self._progress = {peer: Progress() for peer in self.peers}
        elif role is Role.CANDIDATE:
            for guard in self._guards:
                guard.on_campaign()
        # The engine is about to send to those whom it believes connected.
        self.refresh()

    def on_engine_apply(self, index: int, command: bytes) -> object:
        return self._applier.submit(index, command)

    # Snapshots from a leader.

    def _on_chunk(self, peer: int, chunk: SnapshotChunk) -> None:
        if chunk.last and self._snapshots.received is not None:
            # Checked, durable, and it has passed the guards once more.
            self._engine.receive(peer, chunk)
            return
        data = self._receiver.take(peer, chunk)
        if data is not None:
            self._installing_from = peer
            self._scope.spawn(self._install(peer, chunk, data), name="raft snapshot install")
        # The engine hears of the leader, but is not told of a last piece before it may load it.
        self._engine.receive(peer, _as_piece(chunk))
        self.send(peer, Ack(self.term, 0, reset=False, success=False))

    async def _install(self, peer: int, chunk: SnapshotChunk, data: bytearray) -> None:
        snapshot = await self._receiver.install(chunk, data)
        self._snapshots.received = await self._snapshots.decode(snapshot)
        self._installing_from = None
        try:
            if not self.failed and not self._stopped:
                self._inside(lambda: self._deliver_from(0, peer, chunk))
        finally:
            self._snapshots.received = None
        held, self._held = self._held, deque()
        for message in held:
            self.receive(peer, message)
        self.wake()

    def _hold(self, peer: int, message: Message) -> None:
        """Keep what a leader says while its snapshot is being installed: it comes after it."""
        if len(self._held) >= MAX_HELD:
            self._held.clear()
            self._wire.drop(peer, f"more than {MAX_HELD} messages during a snapshot")
            return
        self._held.append(message)
        self.send(peer, Ack(self.term, 0, reset=False, success=False))


def _overrides(guard: Guard, hook: str) -> bool:
    return getattr(type(guard), hook) is not getattr(Guard, hook)


def _as_piece(chunk: SnapshotChunk) -> SnapshotChunk:
    """The same chunk for the engine, never as the last one and without its bytes."""
    return SnapshotChunk(
        chunk.term,
        chunk.commit_index,
        chunk.snapshot_index,
        chunk.snapshot_term,
        chunk.size + 1,
        chunk.offset,
        b"",
    )
