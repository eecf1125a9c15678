"""This node as a broker: registered, heard, unfenced, and at last gone in order.

    unregistered --registration--> fenced --heartbeat, logs open--> running
    running --stop--> leaving --controller agrees--> gone
    any --STALE_BROKER_EPOCH or BROKER_ID_NOT_REGISTERED--> unregistered

The controller decides every step (`metadata/broker_life.py`); here is only the asking, RULES B.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from random import Random
from uuid import UUID

from ..metadata.levels import FIRST_LEVEL, LATEST_LEVEL, VERSION_FEATURE
from ..metadata.listeners import CLIENT_LISTENER, HTTP_LISTENER, INTERNODE_LISTENER
from ..metadata.machine import MetadataMachine
from ..seam import Fatal, frozen
from ..wire import ApiKey, ErrorCode
from ..wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ..wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from .addresses import Address
from .controller_client import ControllerClient, ControllerUnavailable

logger = logging.getLogger(__name__)

RETRY_S = 0.1
"""Pause after a registration that could not be taken yet."""

EAGER_S = 0.02
"""Between heartbeats while this node waits to be unfenced or to be let go."""

FINAL = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.INVALID_REGISTRATION,
    ErrorCode.UNSUPPORTED_VERSION,
)
"""Trying again will not help."""


@frozen
class BrokerIdentity:
    node_id: int
    cluster_id: str
    directory_id: UUID
    previous_broker_epoch: int
    """From the clean-shutdown marker; -1 after an unclean stop (KIP-966), FAILED_SYNC_EPOCH after
    one that a failed sync caused (RULES C1)."""
    rack: str | None
    kafka: Address
    internode: Address
    http: Address | None


class BrokerState(Enum):
    UNREGISTERED = "unregistered"
    FENCED = "fenced"
    RUNNING = "running"
    LEAVING = "leaving"
    GONE = "gone"


class BrokerLifecycle:
    """`run` is a task of the node's; `leave` is called once, at a stop."""

    def __init__(
        self,
        identity: BrokerIdentity,
        *,
        controller: ControllerClient,
        machine: MetadataMachine,
        heartbeat_s: float,
        session_s: float,
        rng: Random,
        on_registered: Callable[[int], None],
    ) -> None:
        self._identity = identity
        self._controller = controller
        self._machine = machine
        self._heartbeat_s = heartbeat_s
        self._session_s = session_s
        self._rng = rng
        self._on_registered = on_registered
        self._incarnation_id = UUID(int=rng.getrandbits(128), version=4)
        self._ready = False
        self._wants_shutdown = False
        self._wake = asyncio.Event()
        self._registered = asyncio.Event()
        self._running = asyncio.Event()
        self._gone = asyncio.Event()
        self._state = BrokerState.UNREGISTERED
        self._last_heard = float("-inf")
        self.broker_epoch = -1

    @property
    def state(self) -> BrokerState:
        return self._state

    @property
    def in_session(self) -> bool:
        """The controller has answered within the time after which it fences."""
        return asyncio.get_running_loop().time() - self._last_heard < self._session_s

    def logs_are_open(self) -> None:
        """Recovery is over: from now on this node asks to be unfenced."""
        self._ready = True
        self._wake.set()

    async def registered(self) -> None:
        """Wait for the first broker epoch; this node's image holds its registration then."""
        await self._registered.wait()

    async def running(self) -> None:
        """Wait until the controller has unfenced this node for the first time."""
        await self._running.wait()

    async def run(self) -> None:
        """Raises Fatal when this node may never be a broker of the cluster."""
        while self._state is not BrokerState.GONE:
            if self._state is BrokerState.UNREGISTERED:
                await self._register()
            else:
                await self._beat()

    async def leave(self, deadline: float) -> bool:
        """Ask to be let go (RULES B6); True when the controller agreed by `deadline`."""
        if self._state is BrokerState.UNREGISTERED:
            return False
        self._wants_shutdown = True
        self._wake.set()
        try:
            async with asyncio.timeout_at(deadline):
                await self._gone.wait()
        except TimeoutError:
            return False
        return True

    async def _register(self) -> None:
        deadline = asyncio.get_running_loop().time() + self._session_s
        try:
            answer = await self._controller.ask(
                ApiKey.BROKER_REGISTRATION, self._registration(), deadline
            )
        except ControllerUnavailable as error:
            logger.info("not registered yet: %s", error)
            return
        assert isinstance(answer, BrokerRegistrationResponse)
        error_code = ErrorCode(answer.error_code)
        if error_code in FINAL:
            raise Fatal(self._why_refused(error_code))
        if error_code != ErrorCode.NONE:
            logger.info("not registered yet: %s", error_code.name)
            await asyncio.sleep(RETRY_S)
            return
        self.broker_epoch = answer.broker_epoch
        self._state = BrokerState.FENCED
        self._heard()
        logger.info("registered with broker epoch %d", self.broker_epoch)
        self._on_registered(self.broker_epoch)
        self._registered.set()

    def _why_refused(self, error: ErrorCode) -> str:
        identity = self._identity
        pinned = self._machine.image.voter_directories.get(identity.node_id)
        if error == ErrorCode.INVALID_REGISTRATION:
            # Ours names a directory and every address, so it can only be the pin: an emptied or
            # exchanged disk may not vote in the old one's name (RULES B3). An emptied node's image
            # does not know the old one yet.
            other = "another directory" if pinned is None else f"directory {pinned}"
            return (
                f"voter {identity.node_id} belongs to {other}, this node's is "
                f"{identity.directory_id}: `logboat quorum replace-voter "
                f"{identity.node_id} {identity.directory_id}` admits it"
            )
        return f"the cluster refuses this node: {error.name}: {error.message}"

    def _registration(self) -> BrokerRegistrationRequest:
        identity = self._identity
        listeners = {CLIENT_LISTENER: identity.kafka, INTERNODE_LISTENER: identity.internode}
        if identity.http is not None:
            listeners[HTTP_LISTENER] = identity.http
        return BrokerRegistrationRequest(
            broker_id=identity.node_id,
            cluster_id=identity.cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                BrokerRegistrationRequest.Listener(name=name, host=at.host, port=at.port)
                for name, at in listeners.items()
            ],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=VERSION_FEATURE,
                    min_supported_version=FIRST_LEVEL,
                    max_supported_version=LATEST_LEVEL,
                )
            ],
            rack=identity.rack,
            log_dirs=[identity.directory_id],
            # Registered again in one life, nothing is lost: the marker's epoch is of a former life.
            previous_broker_epoch=(
                self.broker_epoch if self.broker_epoch >= 0 else identity.previous_broker_epoch
            ),
        )

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        self._wake.clear()
        request = BrokerHeartbeatRequest(
            broker_id=self._identity.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._machine.image.index,
            want_fence=not self._ready,
            want_shut_down=self._wants_shutdown,
        )
        try:
            answer = await self._controller.ask(
                ApiKey.BROKER_HEARTBEAT, request, loop.time() + self._session_s
            )
        except ControllerUnavailable as error:
            logger.warning("the controller does not hear this node: %s", error)
            return
        assert isinstance(answer, BrokerHeartbeatResponse)
        self._take(answer)
        if self._state is BrokerState.UNREGISTERED or self._state is BrokerState.GONE:
            return
        waits = self._wants_shutdown or (self._ready and self._state is BrokerState.FENCED)
        # Woken by what changes our wishes; otherwise the next beat comes in its time.
        try:
            async with asyncio.timeout(EAGER_S if waits else self._heartbeat_s):
                await self._wake.wait()
        except TimeoutError:
            return

    def _take(self, answer: BrokerHeartbeatResponse) -> None:
        error = ErrorCode(answer.error_code)
        if error in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
            own = self._machine.image.brokers.get(self._identity.node_id)
            if own is not None and own.broker_epoch > self.broker_epoch:
                raise Fatal(
                    f"another process has registered as node {self._identity.node_id} "
                    f"(broker epoch {own.broker_epoch}, ours is {self.broker_epoch})"
                )
            logger.warning("registering again: %s", error.name)
            # A new life: what this node led, it led under the old epoch (RULES B1).
            self._incarnation_id = UUID(int=self._rng.getrandbits(128), version=4)
            self._state = BrokerState.UNREGISTERED
            return
        if error != ErrorCode.NONE:
            logger.info("heartbeat: %s", error.name)
            return
        self._heard()
        before = self._state
        if answer.should_shut_down:
            self._state = BrokerState.GONE
            self._gone.set()
        elif self._wants_shutdown:
            self._state = BrokerState.LEAVING
        else:
            self._state = BrokerState.FENCED if answer.is_fenced else BrokerState.RUNNING
        if self._state is BrokerState.RUNNING:
            self._running.set()
        if self._state is not before:
            logger.info("broker is %s", self._state.value)

    def _heard(self) -> None:
        self._last_heard = asyncio.get_running_loop().time()
