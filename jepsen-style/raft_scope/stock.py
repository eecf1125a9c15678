"""pysyncobj as it comes: its own journal, snapshots and codec, and no guard.

Some of its mistakes lie in what we replaced and not in what a guard filters: they cannot be shown
by leaving a guard out. Here one stock node lives in a network and at a time that the test plays.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pysyncobj.syncobj as engine_module
from pysyncobj import SyncObj, SyncObjConf, replicated
from pysyncobj.node import Node
from pysyncobj.transport import Transport

from ...raftlog.globals import replacements

ELECTION_S = 0.5
HEARTBEAT_S = 0.1


class PlayedTime:
    """What the stock engine takes for the time, in seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def stock_engine() -> Iterator[PlayedTime]:
    """Within, the engine's module has its own globals back, all but the clock."""
    names = [(name, original) for name, original, _ in replacements()]
    before = {name: getattr(engine_module, name) for name, _ in names}
    time = PlayedTime()
    for name, original in names:
        setattr(engine_module, name, original)
    engine_module.monotonicTime = time
    try:
        with warnings.catch_warnings():
            # It leaves the file of its term open for the garbage collector.
            warnings.simplefilter("ignore", ResourceWarning)
            yield time
    finally:
        for name, replaced in before.items():
            setattr(engine_module, name, replaced)


class PlayedTransport(Transport):  # type: ignore[misc]
    """Keeps what the node says; what it hears comes from the test."""

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.said: list[tuple[str, dict[str, Any]]] = []

    def send(self, node: Node, message: dict[str, Any]) -> bool:
        self.said.append((node.id, message))
        return True


class StockNode(SyncObj):  # type: ignore[misc]
    """One unchanged node whose state is the list of the commands it has applied."""

    def __init__(
        self,
        node_id: str = "n1",
        peers: Sequence[str] = (),
        *,
        journal: str | None = None,
        batch_bytes: int = 1 << 16,
    ) -> None:
        transport = PlayedTransport()
        self._played = transport
        self._peers = {peer: Node(peer) for peer in peers}
        super().__init__(
            Node(node_id),
            list(self._peers.values()),
            SyncObjConf(
                autoTick=False,
                dynamicMembershipChange=False,
                journalFile=journal,
                appendEntriesBatchSizeBytes=batch_bytes,
                raftMinTimeout=ELECTION_S,
                raftMaxTimeout=2 * ELECTION_S,
                appendEntriesPeriod=HEARTBEAT_S,
            ),
            transport=transport,
        )
        # Only what is set behind the engine's own attributes is in its snapshots.
        self.applied: list[bytes] = []

    @replicated  # type: ignore[untyped-decorator]
    def command(self, data: bytes) -> bytes:
        if data == b"poison":
            raise ValueError("poison")
        self.applied.append(data)
        return data

    @property
    def leads(self) -> bool:
        return bool(self._isLeader())

    @property
    def ready(self) -> bool:
        return bool(self.isReady())

    def said(self, kind: str) -> list[dict[str, Any]]:
        """The messages of this kind that it has sent since the last question; all are taken."""
        taken, self._played.said = self._played.said, []
        return [message for _, message in taken if message["type"] == kind]

    def hear(self, peer: str, message: dict[str, Any]) -> None:
        self._played._onMessageReceived(self._peers[peer], message)

    def hear_leader(self, peer: str, *, prev: int, commit: int, entries: Sequence[Any]) -> None:
        """An append of term 1; the engine's log begins with an entry of term 0 at index 1."""
        self.hear(
            peer,
            {
                "type": "append_entries",
                "term": 1,
                "commit_index": commit,
                "prevLogIdx": prev,
                "prevLogTerm": 0 if prev == 1 else 1,
                "entries": list(entries),
            },
        )

    def connect(self) -> None:
        for peer in self._peers.values():
            self._played._onNodeConnected(peer)

    def live(self, time: PlayedTime, seconds: float) -> None:
        """Tick for so long."""
        end = time.now + seconds
        while time.now < end:
            self.doTick(0.0)
            time.now += 0.02

    def lead(self, time: PlayedTime) -> None:
        """Be elected by the vote of the first peer, or alone."""
        self.connect()
        self.live(time, 3 * ELECTION_S)
        if not self.leads:
            vote = {"type": "response_vote", "term": self.raftCurrentTerm}
            self.hear(next(iter(self._peers)), vote)
        assert self.leads

    def die(self) -> None:
        """End; its files stay as they are (mapped memory outlives a process that is killed)."""
        self._doDestroy()
