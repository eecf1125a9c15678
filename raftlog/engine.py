"""pysyncobj's Raft, reduced to what we use of it: no threads, no sockets, no files, no pickle.

`Engine` is told to tick and is handed messages; it answers through its transport. `EngineJournal`
gives it our journal in the interface it expects. What the engine would create for itself it gets
through its configuration, see `globals.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol

from pysyncobj import SyncObj, SyncObjConf, replicated
from pysyncobj.journal import Journal as EngineJournalInterface
from pysyncobj.node import Node
from pysyncobj.transport import Transport

from ..seam import Fatal
from .globals import CommandCodec, SnapshotFile
from .interface import Role
from .journal import Journal
from .journal_state import LogEntry
from .messages import (
    Ack,
    Append,
    Forward,
    Message,
    SnapshotChunk,
    SnapshotOffer,
    TimeoutNow,
    Vote,
    VoteRequest,
)
from .settings import RaftSettings

NOT_LEADER = 4
"""`pysyncobj.FAIL_REASON.NOT_LEADER`."""

_NEVER_S = 10**9
_STATES = (Role.FOLLOWER, Role.CANDIDATE, Role.LEADER)


class Voter(Node):  # type: ignore[misc]
    """A node id of the engine: an integer, so that sets of them iterate alike everywhere."""

    def __init__(self, node_id: int) -> None:
        super().__init__(node_id)

    def __hash__(self) -> int:
        return int(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Voter) and self.id == other.id

    def __str__(self) -> str:
        return str(self.id)


class EngineOwner(Protocol):
    """What the engine calls back."""

    def on_engine_send(self, peer: int, message: Message) -> bool: ...

    def on_engine_role(self, role: Role) -> None: ...

    def on_engine_apply(self, index: int, command: bytes) -> object: ...


class EngineTransport(Transport):  # type: ignore[misc]
    """The engine's way out; the way in is `Engine.receive`."""

    def __init__(self, owner: EngineOwner) -> None:
        super().__init__(None, None, [])
        self._owner = owner

    @property
    def ready(self) -> bool:
        return True

    def tryGetReady(self) -> None: ...

    def waitReady(self) -> None: ...

    def send(self, node: Voter, message: dict[str, Any]) -> bool:
        return self._owner.on_engine_send(node.id, from_engine(message))

    def receive(self, node: Voter, message: dict[str, Any]) -> None:
        self._onMessageReceived(node, message)

    def report(self, node: Voter, connected: bool) -> None:
        if connected:
            self._onNodeConnected(node)
        else:
            self._onNodeDisconnected(node)


class Engine(SyncObj):  # type: ignore[misc]
    """One voter."""

    def __init__(
        self,
        owner: EngineOwner,
        *,
        node_id: int,
        peers: Sequence[int],
        settings: RaftSettings,
        journal: Journal,
        serializer: SnapshotFile,
        rng: Random,
    ) -> None:
        """`serializer` has the interface of `pysyncobj.serializer.Serializer` too."""
        self._owner = owner
        self._voters = {peer: Voter(peer) for peer in peers}
        self._engine_transport = EngineTransport(owner)
        self._configuration = _configuration(
            owner,
            settings,
            EngineJournal(
                journal,
                applies_per_turn=settings.applies_per_turn,
                on_appended=self._on_appended,
            ),
            serializer,
            rng,
        )
        super().__init__(
            Voter(node_id),
            list(self._voters.values()),
            self._configuration,
            nodeClass=Voter,
            transport=self._engine_transport,
        )
        if self._methodToID != {"command_v0": CommandCodec.METHOD_ID}:
            raise Fatal(f"the engine numbers its commands otherwise: {self._methodToID}")

    @replicated  # type: ignore[untyped-decorator]
    def command(self, data: bytes) -> object:
        """The one replicated method. Its body runs when the command is applied."""
        return self._owner.on_engine_apply(self.raftLastApplied + 1, data)

    def propose(self, burst: Sequence[tuple[bytes, Callable[[object, int], None]]]) -> None:
        """Queue commands; the next tick appends each, or answers that this node does not lead."""
        self._configuration.burst_left = len(burst)
        for data, on_outcome in burst:
            self.command(data, callback=on_outcome)

    def receive(self, peer: int, message: Message) -> None:
        self._engine_transport.receive(self._voters[peer], to_engine(message))

    def report_connected(self, peer: int, connected: bool) -> None:
        self._engine_transport.report(self._voters[peer], connected)

    def _on_appended(self) -> None:
        self._configuration.burst_left = max(0, self._configuration.burst_left - 1)

    def tick(self) -> None:
        self.doTick(0.0)
        # What could not be appended, since this node no longer leads, is answered by now.
        self._configuration.burst_left = 0

    @property
    def leader_id(self) -> int | None:
        leader = self._getLeader()
        return None if leader is None else leader.id


class Configuration(SyncObjConf):  # type: ignore[misc]
    """The engine's settings, two of which differ from one question to the next."""

    burst_left = 0
    """Commands that the tick under way has still to append."""

    def __init__(self, settings: RaftSettings, rng: Random, **fixed: object) -> None:
        self._settings = settings
        self._rng = rng
        super().__init__(**fixed)

    @property
    def appendEntriesUseBatch(self) -> bool:
        """Whether an appended command may wait for the next heartbeat.

        Never, or each command would take 100 ms. But the engine asks this after each single
        command; of a burst only the last one must make it send to everybody.
        """
        return self.burst_left > 0

    @appendEntriesUseBatch.setter
    def appendEntriesUseBatch(self, _: object) -> None: ...

    @property
    def raftMaxTimeout(self) -> float:
        """The next election timeout, since the engine's own chance is fixed at its upper end."""
        least, most = self._settings.election_min_s, self._settings.election_max_s
        return least + (most - least) * (1.0 - self._rng.random())

    @raftMaxTimeout.setter
    def raftMaxTimeout(self, _: object) -> None: ...


def _configuration(
    owner: EngineOwner,
    settings: RaftSettings,
    journal: EngineJournal,
    serializer: SnapshotFile,
    rng: Random,
) -> Configuration:
    def on_state(_: int, state: int) -> None:
        owner.on_engine_role(_STATES[state])

    return Configuration(
        settings,
        rng,
        autoTick=False,
        appendEntriesBatchSizeBytes=settings.append_bytes,
        appendEntriesPeriod=settings.heartbeat_s,
        raftMinTimeout=settings.election_min_s,
        leaderFallbackTimeout=settings.fallback_s,
        connectionTimeout=max(3.5, settings.election_max_s),
        # A queued command could be appended after its proposer was told that it never will be.
        commandsWaitLeader=False,
        dynamicMembershipChange=False,
        useFork=False,
        journalFile=journal,
        # Never without: the engine would drop the log at a compaction and keep nothing (finding G).
        fullDumpFile=serializer,
        serializer=serializer,
        deserializer=serializer,
        logCompactionMinEntries=max(2, settings.compaction_entries or _NEVER_S),
        logCompactionMinTime=_NEVER_S,
        onStateChanged=on_state,
    )


class EngineJournal(EngineJournalInterface):  # type: ignore[misc]
    """Our journal as the engine expects it: a list whose changes are named."""

    def __init__(
        self, journal: Journal, *, applies_per_turn: int, on_appended: Callable[[], None]
    ) -> None:
        self._journal = journal
        self._on_appended = on_appended
        self._applies_per_turn = max(2, applies_per_turn)

    def add(self, command: bytes, index: int, term: int) -> None:
        self._journal.append(index, term, command)
        self._on_appended()

    def clear(self) -> None:
        self._journal.clear()

    def deleteEntriesFrom(self, position: int) -> None:
        if position < len(self._journal.entries):
            self._journal.truncate_from(self._journal.entries[position][1])

    def deleteEntriesTo(self, position: int) -> None:
        if 0 < position < len(self._journal.entries):
            self._journal.compact_to(self._journal.entries[position][1])

    def __getitem__(self, item: int | slice) -> LogEntry | list[LogEntry]:
        if isinstance(item, slice) and item.stop is not None:
            # Only where it applies committed entries does the engine ask for a run of more than
            # two with an end. It copes with fewer and asks again, so a long run is sliced over
            # several turns of the loop (RULES F1).
            item = slice(item.start, min(item.stop, item.start + self._applies_per_turn))
        return self._journal.entries[item]

    def __len__(self) -> int:
        return len(self._journal.entries)

    def _destroy(self) -> None: ...

    def setRaftCommitIndex(self, index: int) -> None:
        self._journal.set_commit_index(index)

    def getRaftCommitIndex(self) -> int:
        return max(1, self._journal.commit_index)

    def setCurrentTerm(self, term: int, voted_for: int | None) -> None:
        self._journal.set_term(term, voted_for)

    def getCurrentTerm(self) -> int:
        return self._journal.term

    def getVotedForNodeId(self) -> int | None:
        return self._journal.voted_for

    def onOneSecondTimer(self) -> None:
        self._journal.record_commit_index()


def from_engine(message: dict[str, Any]) -> Message:
    """The engine's dictionary as a message of ours. Raises Fatal for what must not happen."""
    kind = message["type"]
    if kind == "append_entries":
        term, commit_index = message["term"], message["commit_index"]
        if "serialized" in message:
            return SnapshotOffer(term, commit_index, message["serialized"] is not None)
        if "transmission" in message:
            raise Fatal("the engine cuts a command into pieces: it exceeds append_bytes")
        # Without a previous index the engine has gone beyond the end of its log; the receiver then
        # refuses the append just as it refuses one behind index 0.
        prev_index, prev_term = message["prevLogIdx"] or 0, message["prevLogTerm"] or 0
        return Append(term, commit_index, prev_index, prev_term, message["entries"])
    if kind == "next_node_idx":
        return Ack(0, message["next_node_idx"], message["reset"], message["success"])
    if kind == "request_vote":
        return VoteRequest(message["term"], message["last_log_index"], message["last_log_term"])
    if kind == "response_vote":
        return Vote(message["term"])
    if kind == "apply_command":
        return Forward(message.get("request_id"))
    raise Fatal(f"the engine sends {kind!r}, which nobody asked for")


def to_engine(message: Message) -> dict[str, Any]:
    """A message of ours in the engine's form."""
    match message:
        case Append():
            return {
                "type": "append_entries",
                "term": message.term,
                "commit_index": message.commit_index,
                "prevLogIdx": message.prev_index,
                "prevLogTerm": message.prev_term,
                "entries": message.entries,
            }
        case SnapshotChunk():
            return {
                "type": "append_entries",
                "term": message.term,
                "commit_index": message.commit_index,
                # The bytes are not the engine's business, see `engine_snapshots.py`.
                "serialized": (b"", message.offset == 0, message.last),
            }
        case Ack():
            return {
                "type": "next_node_idx",
                "next_node_idx": message.next_index,
                "reset": message.reset,
                "success": message.success,
            }
        case VoteRequest():
            return {
                "type": "request_vote",
                "term": message.term,
                "last_log_index": message.last_log_index,
                "last_log_term": message.last_log_term,
            }
        case TimeoutNow():
            return {"type": "timeout_now", "term": message.term}
        case Vote():
            return {"type": "response_vote", "term": message.term}
        case Forward(request_id):
            # The answer to the engine's own wish to forward (guard G7).
            return {
                "type": "apply_command_response",
                "request_id": request_id,
                "error": NOT_LEADER,
            }
    raise Fatal(f"{type(message).__name__} is not for the engine")
