"""The way to the active controller, wherever it is now, and back with a verdict.

*Did not happen* is tried again until the deadline. *May have happened* is tried again only for
requests that are harmless to repeat, or that carry an origin by which the controller recognises
them (RULES A5). An answer is handed on when this node's own image has caught up with it (A6).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Protocol

from ..metadata.commands import Origin
from ..metadata.controller import ControllerAnswer
from ..metadata.machine import MetadataMachine
from ..partitions import PeerLost
from ..wire import ApiKey, ErrorCode, Message, api
from ..wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ..wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from .peers import InternodePeer, Peers

logger = logging.getLogger(__name__)

RETRY_PAUSE_S = 0.02
RETRY_PAUSE_MAX_S = 0.25

NEEDS_ORIGIN = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS})
"""Neither compare-and-set nor idempotent: `metadata/commands.py` says which are."""

NOT_REPEATABLE = frozenset({ApiKey.CREATE_PARTITIONS})
"""Done twice it is harmless, but the second answer would deny the first."""


class ControllerUnavailable(Exception):
    """No answer by the deadline. `may_have_happened` keeps the two apart."""

    def __init__(self, message: str, *, may_have_happened: bool) -> None:
        super().__init__(message)
        self.may_have_happened = may_have_happened


class LocalController(Protocol):
    """The controller of this node, which answers NOT_CONTROLLER while it is not active."""

    async def __call__(
        self,
        api_key: ApiKey,
        request: Message,
        version: int,
        deadline: float,
        origin: Origin | None,
    ) -> ControllerAnswer[Message]: ...


class Origins:
    """The commands of one node that must not happen twice, each with a number of its own.

    All clients of a node share it: the controller knows the node alone, and remembers the last
    command of each kind only (RULES A5). A second counter would take one command for a repetition
    of another.
    """

    def __init__(self) -> None:
        self.one_at_a_time = {key: asyncio.Lock() for key in sorted(NEEDS_ORIGIN)}
        """One command of a kind is in flight at a time."""
        self._sequences = itertools.count(1)

    def next_sequence(self) -> int:
        return next(self._sequences)


class ControllerClient:
    """One per purpose: requests of a channel are answered in order, and a heartbeat must not wait
    behind the creation of a topic."""

    def __init__(
        self,
        *,
        node_id: int,
        peers: Peers,
        local: LocalController,
        leader: Callable[[], int | None],
        machine: MetadataMachine,
        attempt_s: float,
        origins: Origins,
    ) -> None:
        self._node_id = node_id
        self._peers = peers
        self._local = local
        self._leader = leader
        self._machine = machine
        self._attempt_s = attempt_s
        self._peer: InternodePeer | None = None
        self._peer_id: int | None = None
        self._connecting = asyncio.Lock()
        self._elected = asyncio.Event()
        """Set by an election; a request that pauses goes on then."""
        self._origins = origins

    async def ask(self, api_key: ApiKey, request: Message, deadline: float) -> Message:
        """The controller's answer, which this node's image has caught up with.

        Raises ControllerUnavailable at `deadline` (loop time).
        """
        if api_key not in NEEDS_ORIGIN:
            return await self._ask_until(api_key, request, deadline, None)
        lock = self._origins.one_at_a_time[api_key]
        try:
            async with asyncio.timeout_at(deadline):
                await lock.acquire()
        except TimeoutError:
            raise ControllerUnavailable(
                "earlier requests of this kind have no answer yet", may_have_happened=False
            ) from None
        try:
            return await self._ask_until(api_key, request, deadline, self._new_origin())
        finally:
            lock.release()

    def _new_origin(self) -> Origin | None:
        own = self._machine.image.brokers.get(self._node_id)
        if own is None:
            return None
        return Origin(self._node_id, own.broker_epoch, self._origins.next_sequence())

    async def alter_partition(
        self, request: AlterPartitionRequest, deadline: float
    ) -> AlterPartitionResponse | None:
        """`partitions.peer.ControllerLink`: None when nothing is known of the outcome."""
        try:
            response = await self.ask(ApiKey.ALTER_PARTITION, request, deadline)
        except ControllerUnavailable as error:
            logger.debug("AlterPartition: %s", error)
            return None
        assert isinstance(response, AlterPartitionResponse)
        return response

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest, deadline: float
    ) -> AssignReplicasToDirsResponse | None:
        """`partitions.peer.ControllerLink`: None when nothing is known of the outcome."""
        try:
            response = await self.ask(ApiKey.ASSIGN_REPLICAS_TO_DIRS, request, deadline)
        except ControllerUnavailable as error:
            logger.debug("AssignReplicasToDirs: %s", error)
            return None
        assert isinstance(response, AssignReplicasToDirsResponse)
        return response

    def on_leader(self, leader_id: int | None) -> None:
        """The quorum's leader is another one now: nothing is waited for from the former, which may
        be paused, while the new one counts the seconds of our silence."""
        if leader_id is None:
            return
        self._elected.set()
        if leader_id != self._peer_id:
            self.close()

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    async def _ask_until(
        self, api_key: ApiKey, request: Message, deadline: float, origin: Origin | None
    ) -> Message:
        loop = asyncio.get_running_loop()
        version = api(api_key).max_stable_version
        may_have_happened = False
        problem = "the quorum has no leader"
        pause = RETRY_PAUSE_S
        while loop.time() < deadline:
            self._elected.clear()
            leader_id = self._leader()
            if leader_id is not None:
                # A request that may be repeated does not stake all its time on one controller.
                repeatable = api_key not in NOT_REPEATABLE and (
                    api_key not in NEEDS_ORIGIN or origin is not None
                )
                attempt_end = loop.time() + self._attempt_s if repeatable else deadline
                until = min(deadline, attempt_end)
                try:
                    answer = await self._ask_node(
                        leader_id, api_key, request, version, until, origin
                    )
                except _NotAsked as error:
                    problem = str(error)
                except PeerLost as error:
                    problem = str(error)
                    may_have_happened = True
                    if not repeatable:
                        break
                else:
                    if not says_not_controller(answer.response):
                        return await self._caught_up(answer, deadline)
                    problem = f"node {leader_id} is not the active controller"
            elected = await self._pause(min(pause, deadline - loop.time()))
            pause = RETRY_PAUSE_S if elected else min(RETRY_PAUSE_MAX_S, 2 * pause)
        raise ControllerUnavailable(
            f"no answer from the controller in time: {problem}", may_have_happened=may_have_happened
        )

    async def _pause(self, seconds: float) -> bool:
        """Wait; an election ends the wait at once, and True says so."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._elected.wait()
        except TimeoutError:
            return False
        return True

    async def _ask_node(
        self,
        node_id: int,
        api_key: ApiKey,
        request: Message,
        version: int,
        deadline: float,
        origin: Origin | None,
    ) -> ControllerAnswer[Message]:
        """Raises _NotAsked (did not happen) or PeerLost (may have happened)."""
        if node_id == self._node_id:
            return await self._local(api_key, request, version, deadline, origin)
        peer = await self._connected(node_id, deadline)
        return await peer.ask(api_key, version, request, deadline, origin)

    async def _connected(self, node_id: int, deadline: float) -> InternodePeer:
        async with self._connecting:
            peer = self._peer
            if peer is not None and self._peer_id == node_id and not peer.closed:
                return peer
            self.close()
            try:
                self._peer = await self._peers.connect(node_id, deadline)
            except PeerLost as error:
                raise _NotAsked(str(error)) from error
            self._peer_id = node_id
            return self._peer

    async def _caught_up(self, answer: ControllerAnswer[Message], deadline: float) -> Message:
        if not await self._machine.wait_for(answer.index, deadline):
            raise ControllerUnavailable(
                f"this node has not read as far as {answer.index} in time", may_have_happened=True
            )
        return answer.response


class _NotAsked(Exception):
    """The request did not leave this node."""


def says_not_controller(response: Message) -> bool:
    """NOT_CONTROLLER, at the top of the answer or, where there is no such place, in its items."""
    if hasattr(response, "error_code"):
        return bool(response.error_code == ErrorCode.NOT_CONTROLLER)
    return any(
        item.error_code == ErrorCode.NOT_CONTROLLER
        for items in ("topics", "responses", "results")
        for item in getattr(response, items, ())
    )
