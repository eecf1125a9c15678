"""The quorum's log as the rest of the node knows it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from uuid import UUID

from ..seam import Disk, Fatal, OnFatal, TaskScope
from . import globals as engine_globals
from .channel import Channel
from .driver import Driver, Proposal
from .engine_snapshots import align
from .feed import Feed
from .feed_messages import FEED_SERVICE
from .fixed_voters import has_joined, hold_to_voters, remember_joining
from .guards import ALL_GUARDS, GuardContext, GuardFactory, NewDirectories, PinnedDirectories
from .handshake import Credential
from .interface import OnRole, Outcome, PeerStatus, RaftStatus, Role, StateMachine, Unknown
from .journal import Journal
from .log_page import LogPage, page_of
from .messages import COMMAND, Message
from .settings import RaftSettings
from .snapshots import SnapshotStore
from .transfer import NotTransferred, TransferOutcome
from .transport import SERVICE, Inbox, Link, SnapshotStream

logger = logging.getLogger(__name__)

STOP_SYNC_S = 2.0
"""How long a stopping node waits for its last sync."""

_COMMAND_OVERHEAD = len(bytes([COMMAND]))


class RaftLog:
    """One voter of the quorum (DESIGN 3).

    A proposal is made on the leader only and ends by its deadline as applied, not leader (it never
    will happen) or unknown. `on_role` is told of every change of role, term and leader, and is
    never a licence to act: act on commands that were applied (RULES A4).
    """

    def __init__(
        self,
        *,
        node_id: int,
        directory_id: UUID,
        voters: Mapping[int, tuple[str, int]],
        directory: str,
        credential: Credential,
        settings: RaftSettings,
        disk: Disk,
        rng: Random,
        machine: StateMachine,
        on_role: OnRole,
        on_fatal: OnFatal,
        on_refused: Callable[[int], None] = lambda node_id: None,
        guards: Sequence[GuardFactory] = ALL_GUARDS,
    ) -> None:
        """`voters` are all of them with their inter-node addresses, this node among them.

        `directory` is the journal's own. `on_refused` hears of each voter where nobody listens any
        more: proof of its death (RULES B4). `guards` is for tests that leave one out.
        """
        if node_id not in voters:
            raise ValueError(f"node {node_id} is not among the voters {sorted(voters)}")
        self._node_id = node_id
        self._directory_id = directory_id
        self._voters = dict(sorted(voters.items()))
        self._peers = [peer for peer in self._voters if peer != node_id]
        self._directory = directory
        self._credential = credential
        self._settings = settings
        self._disk = disk
        self._rng = rng
        self._machine = machine
        self._on_role = on_role
        self._on_fatal = on_fatal
        self._on_refused = on_refused
        self._guards = guards
        self._pins: PinnedDirectories | None = None
        self._newness: NewDirectories | None = None
        self._pinned: Mapping[int, UUID] = {}
        self._joined = False
        self._scope = TaskScope(self._fail)
        self._links: dict[int, Link] = {}
        self._early: list[Channel] = []
        self._inbox: Inbox | None = None
        self._journal: Journal | None = None
        self._store: SnapshotStore | None = None
        self._driver: Driver | None = None
        self._feed: Feed | None = None

    async def start(self) -> None:
        """Recover from disk, load the newest snapshot and take part.

        Raises Fatal when the disk holds damage or another set of voters, or the engine is not the
        pinned one.
        """
        engine_globals.install()
        store = SnapshotStore(self._disk, self._directory, kept=self._settings.snapshots_kept)
        store.open()
        await hold_to_voters(self._disk, self._directory, self._voters)
        journal = await Journal.open(
            self._disk,
            self._directory,
            segment_bytes=self._settings.segment_bytes,
            rng=self._rng,
        )
        self._joined = not self._peers or has_joined(self._disk, self._directory)
        if self._joined and self._peers and journal.fresh:
            raise Fatal(f"{self._directory} has taken part in the quorum, but its journal is gone")
        align(journal, store, fresh=journal.fresh)
        self._journal, self._store = journal, store
        for peer in self._peers:
            self._links[peer] = self._link(peer)
        inbox = Inbox(on_message=self._on_message, on_peer=self._on_peer)
        self._inbox = inbox
        self._driver = Driver(
            node_id=self._node_id,
            peers=self._peers,
            settings=self._settings,
            journal=journal,
            store=store,
            machine=self._machine,
            rng=self._rng,
            wire=_Connections(self._links, inbox),
            scope=self._scope,
            guards=[self._pinned_directories, self._new_directories, *self._guards],
            on_role=self._tell_role,
            on_fatal=self._on_fatal,
            on_applied=self._wake_feed,
        )
        self._feed = Feed(
            voter=self._driver,
            journal=journal,
            store=store,
            settings=self._settings,
            scope=self._scope,
        )
        journal.on_synced = self._driver.on_synced
        self._scope.spawn(journal.run(self._scope), name="raft journal")
        self._driver.start()
        self.pin_directories(self._pinned)
        for peer, link in self._links.items():
            self._scope.spawn(link.run(), name=f"raft link to node {peer}")
        early, self._early = self._early, []
        for channel in early:
            self.adopt(channel)

    async def stop(self) -> None:
        """Leave: proposals under way become unknown, what was written is synced. Twice is fine."""
        if self._driver is not None:
            self._driver.stop()
        if self._journal is not None and self._journal.failed is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SYNC_S):
                    await self._journal.wait_clean()
        for link in self._links.values():
            link.close()
        if self._inbox is not None:
            self._inbox.close()
        if self._feed is not None:
            self._feed.close()
        for channel in self._early:
            channel.close()
        await self._scope.close()
        if self._journal is not None:
            self._journal.close()

    async def propose(self, command: bytes, deadline: float) -> Outcome:
        """Have a command applied by `deadline` (loop time); always answers by then."""
        if not command:
            raise ValueError("an empty command is reserved for barriers")
        if len(command) + _COMMAND_OVERHEAD > self._settings.max_command_bytes:
            raise ValueError(
                f"command of {len(command)} bytes, the limit is {self._settings.max_command_bytes}"
            )
        return await self._propose(bytes(command), deadline)

    async def barrier(self, deadline: float) -> Outcome:
        """When it is `Applied`, everything acknowledged before the call is applied here.

        One commit round: a replicated command that no state machine sees.
        """
        return await self._propose(b"", deadline)

    async def _propose(self, command: bytes, deadline: float) -> Outcome:
        driver = self._running()
        loop = asyncio.get_running_loop()
        if deadline <= loop.time():
            return Unknown("the deadline had passed")
        proposal = Proposal(command, loop.create_future())
        timer = loop.call_at(
            deadline, driver.give_up, proposal, Unknown("not applied by the deadline")
        )
        try:
            driver.propose(proposal)
            return await proposal.future
        finally:
            timer.cancel()

    async def transfer(self, voter: int) -> TransferOutcome:
        """Have another voter lead (see `transfer.py`); answers within an election timeout."""
        if voter not in self._peers:
            return NotTransferred(f"node {voter} is no other voter")
        return await self._running().transfer(voter)

    def status(self) -> RaftStatus:
        driver, journal, store = self._running(), self._journal, self._store
        assert journal is not None
        assert store is not None
        latest = store.latest
        return RaftStatus(
            role=driver.role,
            term=driver.term,
            leader_id=driver.leader_id,
            commit_index=driver.commit_index,
            applied_index=driver.applied_index,
            last_index=journal.last_index,
            synced_index=journal.synced_index,
            snapshot_index=0 if latest is None else latest.index,
            peers={peer: self._peer_status(driver, peer) for peer in self._peers},
            observers={} if self._feed is None else self._feed.status(),
        )

    def page(self, start: int | None, limit: int) -> LogPage:
        """Committed entries from `start` on, or the newest ones."""
        driver, journal, store = self._running(), self._journal, self._store
        assert journal is not None
        assert store is not None
        return page_of(
            journal,
            commit_index=driver.commit_index,
            snapshot_index=0 if store.latest is None else store.latest.index,
            start=start,
            limit=limit,
        )

    def _peer_status(self, driver: Driver, peer: int) -> PeerStatus:
        progress = driver.progress_of(peer)
        return PeerStatus(
            connected=self._links[peer].connected,
            last_contact=driver.last_contact.get(peer),
            match_index=None if progress is None else progress.match_index,
            directory_id=None if self._inbox is None else self._inbox.directory_of(peer),
            caught_up_at=None if progress is None else progress.caught_up_at,
        )

    def pin_directories(self, pins: Mapping[int, UUID]) -> None:
        """Hear voters only from these data directories from now on (RULES B3)."""
        self._pinned = dict(pins)
        if self._pins is not None:
            self._pins.pin(self._pinned)
        if self._newness is not None and pins.get(self._node_id) == self._directory_id:
            self._newness.pinned()

    def compact(self) -> None:
        """Make a snapshot now and drop what it covers, however short the log is. For tests."""
        self._running().compact()

    def adopt(self, channel: Channel) -> None:
        """Take over an incoming channel: "raft" from a voter, or "raft-feed" from an observer."""
        peer = channel.peer
        if peer.service == FEED_SERVICE:
            self._adopt_observer(channel)
        elif peer.service != SERVICE or peer.node_id not in self._peers:
            channel.abort("it does not come from another voter of this quorum")
        elif self._inbox is None:
            self._early = [*self._early, channel][-len(self._peers) :]
        else:
            self._inbox.adopt(channel)

    def _adopt_observer(self, channel: Channel) -> None:
        if channel.peer.node_id in self._voters:
            channel.abort("a voter is no observer")
        elif self._feed is None:
            channel.close()  # Not started yet: it tries another voter, or again.
        else:
            self._feed.adopt(channel)

    def _tell_role(self, role: Role, term: int, leader_id: int | None) -> None:
        self._on_role(role, term, leader_id)
        self._wake_feed()

    def _wake_feed(self) -> None:
        if self._feed is not None:
            self._feed.wake()

    def _running(self) -> Driver:
        if self._driver is None:
            raise RuntimeError("the quorum's log has not been started")
        return self._driver

    def _pinned_directories(self, node: GuardContext) -> PinnedDirectories:
        self._pins = PinnedDirectories(node, self._directory_id)
        return self._pins

    def _new_directories(self, node: GuardContext) -> NewDirectories:
        self._newness = NewDirectories(node, joined=self._joined, on_joining=self._join_soon)
        return self._newness

    def _join_soon(self) -> None:
        self._scope.spawn(self._join(), name="raft joining")

    async def _join(self) -> None:
        await remember_joining(self._disk, self._directory)
        assert self._newness is not None
        self._newness.join()

    def _link(self, peer: int) -> Link:
        return Link(
            peer,
            self._voters[peer],
            credential=self._credential,
            settings=self._settings,
            rng=self._rng,
            synced=self._synced,
            leading_in=self._leading_in,
            read_snapshot=self._read_snapshot,
            on_connected=self._on_connected,
            on_refused=self._on_refused,
        )

    def _synced(self) -> int:
        return 0 if self._journal is None else self._journal.synced

    def _leading_in(self, term: int) -> bool:
        driver = self._running()
        return driver.leading and driver.term == term

    def _on_connected(self, peer: int, _: bool) -> None:
        self._running().on_link(peer)

    def _on_message(self, peer: int, message: Message) -> None:
        self._running().receive(peer, message)

    def _on_peer(self, peer: int) -> None:
        self._links[peer].hurry()

    def _read_snapshot(self, stream: SnapshotStream) -> None:
        self._scope.spawn(self._fill(stream), name="raft snapshot read")

    async def _fill(self, stream: SnapshotStream) -> None:
        assert self._store is not None
        try:
            stream.data = memoryview(await self._store.read_bytes(stream.id))
        except OSError as error:
            # Removed by a newer one in the meantime; the engine will ask again.
            logger.warning("snapshot %s cannot be sent: %s", stream.id, error)
            stream.term = -1
        for link in self._links.values():
            link.pump_soon()

    def _fail(self, error: BaseException) -> None:
        """A background task has died."""
        if not isinstance(error, Fatal):
            logger.error("the quorum's log has failed", exc_info=error)
        if self._driver is not None:
            self._driver.fail(error)
        else:
            self._on_fatal(error)


class _Connections:
    """Links and inbox as the driver's `Wire`."""

    def __init__(self, links: Mapping[int, Link], inbox: Inbox) -> None:
        self._links = links
        self._inbox = inbox

    def send(self, peer: int, item: Message | SnapshotStream, *, after: int) -> bool:
        return self._links[peer].send(item, after=after)

    def connected(self, peer: int) -> bool:
        return self._links[peer].connected

    def sending_snapshot(self, peer: int) -> bool:
        return self._links[peer].sending_snapshot

    def directory_of(self, peer: int) -> UUID | None:
        return self._inbox.directory_of(peer)

    def drop(self, peer: int, reason: str) -> None:
        self._inbox.drop(peer, reason)

    def on_synced(self) -> None:
        for link in self._links.values():
            link.pump_soon()
