"""A node outside the voters: it follows the quorum's log and has no say in it.

It pulls from one voter at a time, the leader if it can: first a snapshot when its place in the log
is gone, then committed entries. Nothing is kept on disk: a node that starts may serve nothing
before the quorum has registered it, so a voter is needed in any case, and a copy of one's own would
only save the transfer of a snapshot.

    connecting --a voter answers--> following --lost, silent, or without a leader--> connecting
    following a follower --the leader can be reached--> following the leader
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from random import Random
from uuid import UUID

from ..seam import Fatal, OnFatal, TaskScope, offload
from .applier import Applier
from .channel import Channel, ChannelClosed, dial
from .feed_messages import (
    FEED_SERVICE,
    Answer,
    ChunkRequest,
    FeedEntries,
    FeedRequest,
    Question,
    decode_answer,
    encode_question,
)
from .handshake import Credential, HandshakeFailed
from .interface import NotLeader, OnRole, Outcome, PeerStatus, RaftStatus, Role, StateMachine
from .messages import COMMAND, BadMessage, SnapshotChunk
from .settings import RaftSettings
from .snapshots import Snapshot, SnapshotId, check_received
from .transport import max_frame

logger = logging.getLogger(__name__)

FIRST_INDEX = 1
"""Of every log: an entry without content, which all nodes begin with."""


class VoterLost(Exception):
    """The connection to a voter is gone, or is of no use; another one is tried."""


class Observer:
    """The interface of `RaftLog` for a node that never leads and never votes."""

    def __init__(
        self,
        *,
        credential: Credential,
        voters: Mapping[int, tuple[str, int]],
        settings: RaftSettings,
        rng: Random,
        machine: StateMachine,
        on_role: OnRole,
        on_fatal: OnFatal,
    ) -> None:
        """`voters` are all of them with their inter-node addresses, this node not among them."""
        if credential.node_id in voters:
            raise ValueError(f"node {credential.node_id} is a voter")
        self._credential = credential
        self._voters = dict(sorted(voters.items()))
        self._settings = settings
        self._rng = rng
        self._machine = machine
        self._applier = Applier(machine, work_per_turn=settings.work_per_turn)
        self._on_role = on_role
        self._scope = TaskScope(on_fatal)
        self._turn = rng.randrange(len(self._voters))
        self._term = 0
        self._leader_id: int | None = None
        self._try_leader = False
        """Whether the leader is to be tried before the others."""
        self._commit_index = FIRST_INDEX
        self._applied_index = FIRST_INDEX
        self._applied_term: int | None = None
        """Term of the entry at `applied_index`; None at the start."""
        self._snapshot_index = 0
        self._source: VoterConnection | None = None
        self._found: VoterConnection | None = None
        """The leader, to be followed from now on."""
        self._seek_at = 0.0
        self._seeking = False
        self._last_contact: dict[int, float] = {}
        self._problems: dict[int, str] = {}
        """By voter, as last logged: a repeated failure is told once."""

    async def start(self) -> None:
        self._scope.spawn(self._run(), name="raft observer")

    async def stop(self) -> None:
        """Twice is fine."""
        await self._scope.close()
        for source in (self._source, self._found):
            if source is not None:
                source.close()

    async def propose(self, command: bytes, deadline: float) -> Outcome:
        """Always `NotLeader`: proposals are made on the leader."""
        return NotLeader(self._leader_id)

    async def barrier(self, deadline: float) -> Outcome:
        return NotLeader(self._leader_id)

    def pin_directories(self, pins: Mapping[int, UUID]) -> None:
        """Voters watch over each other (RULES B3); what is committed is told by any of them."""

    def adopt(self, channel: Channel) -> None:
        """Nobody has anything to say here about the quorum."""
        channel.abort("this node is no voter of the quorum")

    def status(self) -> RaftStatus:
        followed = None if self._source is None else self._source.voter
        return RaftStatus(
            role=Role.OBSERVER,
            term=self._term,
            leader_id=self._leader_id,
            commit_index=self._commit_index,
            applied_index=self._applied_index,
            last_index=self._applied_index,
            synced_index=0,
            snapshot_index=self._snapshot_index,
            peers={
                voter: PeerStatus(
                    connected=voter == followed,
                    last_contact=self._last_contact.get(voter),
                    match_index=None,
                )
                for voter in self._voters
            },
        )

    # Which voter

    async def _run(self) -> None:
        pause = self._settings.redial_min_s
        while True:
            self._source = self._found or await self._connect(self._next_voter())
            self._found = None
            if self._source is not None:
                try:
                    await self._follow(self._source)
                    pause = self._settings.redial_min_s
                except VoterLost as lost:
                    logger.debug("voter %d is no longer followed: %s", self._source.voter, lost)
                finally:
                    self._source.close()
                    self._source = None
            if self._found is None:
                await asyncio.sleep(pause * (0.5 + self._rng.random()))
                pause = min(2 * pause, self._settings.redial_max_s)

    def _next_voter(self) -> int:
        if self._try_leader and self._leader_id in self._voters:
            self._try_leader = False
            return self._leader_id
        self._turn += 1
        return list(self._voters)[self._turn % len(self._voters)]

    async def _connect(self, voter: int) -> VoterConnection | None:
        loop = asyncio.get_running_loop()
        host, port = self._voters[voter]
        try:
            channel = await dial(
                host,
                port,
                credential=self._credential,
                service=FEED_SERVICE,
                expected_node_id=voter,
                rng=self._rng,
                deadline=loop.time() + self._settings.dial_timeout_s,
                max_frame=max_frame(self._settings),
            )
        except (OSError, HandshakeFailed) as error:
            self._tell(voter, error)
            return None
        self._problems.pop(voter, None)
        return VoterConnection(voter, channel)

    def _tell(self, voter: int, error: Exception) -> None:
        sentence = str(error) or type(error).__name__
        if self._problems.get(voter) != sentence:
            self._problems[voter] = sentence
            level = logging.WARNING if isinstance(error, HandshakeFailed) else logging.DEBUG
            logger.log(level, "no quorum feed from node %d: %s", voter, sentence)

    async def _follow(self, source: VoterConnection) -> None:
        """Until there is a better source. Raises VoterLost."""
        loop = asyncio.get_running_loop()
        patience = self._settings.feed_wait_s + self._settings.election_max_s
        useful_at = loop.time()
        while self._found is None:
            answer = await source.ask(FeedRequest(self._applied_index + 1), patience)
            self._last_contact[source.voter] = loop.time()
            if isinstance(answer, SnapshotChunk):
                await self._install(await self._whole_snapshot(source, answer, patience))
                continue
            if self._learn(answer):
                useful_at = loop.time()
            await self._apply(answer)
            if loop.time() - useful_at > 2 * self._settings.election_max_s:
                # Alone, or behind: another voter may be better off.
                self._set_leader(self._term, None)
                raise VoterLost("it hears of no leader")
            if self._leader_id != source.voter and loop.time() >= self._seek_at:
                self._seek()

    def _seek(self) -> None:
        """Go over to the leader as soon as it answers, following this voter meanwhile."""
        if not self._seeking and self._leader_id in self._voters:
            self._seeking = True
            self._scope.spawn(self._reach(self._leader_id), name="raft observer seeks the leader")

    async def _reach(self, leader_id: int) -> None:
        found = await self._connect(leader_id)
        self._seeking = False
        self._seek_at = asyncio.get_running_loop().time() + self._settings.redial_max_s
        if found is None:
            return
        if self._found is not None or self._source is None or leader_id != self._leader_id:
            found.close()
            return
        self._found = found
        self._source.close()

    def _learn(self, answer: FeedEntries) -> bool:
        """Who leads, as a voter has it; False when it does not know, or is behind in terms."""
        self._commit_index = max(self._commit_index, answer.commit_index)
        if answer.term < self._term:
            return False
        self._set_leader(answer.term, answer.leader_id)
        return answer.leader_id is not None

    def _set_leader(self, term: int, leader_id: int | None) -> None:
        if (term, leader_id) != (self._term, self._leader_id):
            self._term, self._leader_id = term, leader_id
            self._try_leader = leader_id is not None
            self._on_role(Role.OBSERVER, term, leader_id)

    # The log

    async def _apply(self, answer: FeedEntries) -> None:
        """Commands in order, so much work in one turn of the loop (RULES F1)."""
        if answer.prev_index != self._applied_index:
            raise VoterLost(f"it tells of {answer.prev_index}, asked was {self._applied_index}")
        if answer.entries and self._applied_term not in (None, answer.prev_term):
            raise Fatal(
                f"the committed entry {self._applied_index} has term {answer.prev_term} on a voter "
                f"and term {self._applied_term} here"
            )
        for command, index, term in answer.entries:
            if command[0] == COMMAND:  # Not a leader's own.
                self._applier.submit(index, command[1:])
            while self._applier.next_index is not None:
                await asyncio.sleep(0)
                self._applier.turn()
            self._applied_index, self._applied_term = index, term

    async def _whole_snapshot(
        self, source: VoterConnection, chunk: SnapshotChunk, patience: float
    ) -> Snapshot:
        """Raises Fatal for one that is broken or larger than the limit: rather none than half."""
        size, limit = chunk.size, self._settings.max_snapshot_bytes
        if size > limit:
            raise Fatal(f"snapshot of {size} bytes, the limit is {limit}")
        data = bytearray()
        while True:
            if chunk.offset != len(data) or chunk.size != size or not chunk.data:
                raise VoterLost("it sends a snapshot out of order")
            data += chunk.data
            if len(data) >= size:
                break
            question = ChunkRequest(chunk.snapshot_index, chunk.snapshot_term, len(data))
            answer = await source.ask(question, patience)
            if not isinstance(answer, SnapshotChunk):
                raise VoterLost("it breaks off a snapshot")
            chunk = answer
        return await check_received(SnapshotId(chunk.snapshot_index, chunk.snapshot_term), data)

    async def _install(self, snapshot: Snapshot) -> None:
        install = await offload(lambda: self._machine.decode(snapshot.state))
        if snapshot.id.index <= self._applied_index:
            raise VoterLost(f"its snapshot ends at {snapshot.id.index}")
        install(snapshot.id.index)
        self._applied_index, self._applied_term = snapshot.id.index, snapshot.id.term
        self._commit_index = max(self._commit_index, self._applied_index)
        self._snapshot_index = snapshot.id.index


class VoterConnection:
    """One question at a time to one voter."""

    def __init__(self, voter: int, channel: Channel) -> None:
        self.voter = voter
        self._channel = channel
        self._answer: asyncio.Future[Answer] | None = None
        self._lost: str | None = None
        channel.set_receiver(self._on_frame, lambda: self._lose("the connection was lost"))

    async def ask(self, question: Question, patience_s: float) -> Answer:
        """Raises VoterLost, after which the connection is of no use."""
        if self._lost is not None:
            raise VoterLost(self._lost)
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self._channel.send([encode_question(question)])
            async with asyncio.timeout(patience_s):
                return await self._answer
        except TimeoutError:
            raise VoterLost(f"no answer within {patience_s} s") from None
        except ChannelClosed as error:
            raise VoterLost(str(error)) from error
        finally:
            self._answer = None

    def close(self) -> None:
        self._lose("closed here")

    def _on_frame(self, payload: memoryview) -> None:
        try:
            answer = decode_answer(payload)
        except BadMessage as error:
            self._channel.abort(str(error))
            self._lose(str(error))
            return
        if self._answer is None or self._answer.done():
            self._lose("it answers what was not asked")
        else:
            self._answer.set_result(answer)

    def _lose(self, reason: str) -> None:
        if self._lost is None:
            self._lost = reason
            self._channel.close()
            if self._answer is not None and not self._answer.done():
                self._answer.set_exception(VoterLost(reason))
