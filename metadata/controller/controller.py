"""Taking office, losing it, and the front door of the controller APIs."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from random import Random

from ...raftlog import Applied, NotLeader, Role
from ...seam import OnFatal, TaskScope
from ...wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ...wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from ...wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ...wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ...wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from ...wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from ...wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ...wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from ...wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ...wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ...wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ...wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ...wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ...wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ..codec import encode_command
from ..commands import Digest, NewController, Origin
from ..image import ImageChange
from ..levels import level_of
from ..machine import MetadataMachine
from ..sessions import Sessions
from . import (
    brokers,
    configs,
    fencing,
    isr,
    leaders,
    lost_replicas,
    partitions,
    producer_ids,
    reassignments,
    rebalance,
    topic_creation,
    topic_deletion,
    voters,
)
from .answer import ControllerAnswer
from .office import Office
from .quorum import Quorum
from .settings import ControllerSettings

RETRY_PAUSE = 0.05
"""Seconds before an own command of unknown outcome is proposed again."""


class Controller:
    """One per voter. All methods run in the loop; deadlines are loop time.

    Inactive -> taking office when the quorum elects this node; -> active when its own NewController
    command is applied here; -> inactive on any other role or term. It keeps nothing from one time
    in office to the next.

    Every API is `async (request, version, deadline) -> ControllerAnswer`, and answers by its
    deadline: NOT_CONTROLLER when not active or no longer leader (it did not happen),
    REQUEST_TIMED_OUT when nobody knows (RULES A5).
    """

    def __init__(
        self,
        *,
        node_id: int,
        voters: Collection[int],
        raft: Quorum,
        machine: MetadataMachine,
        rng: Random,
        settings: ControllerSettings,
        on_fatal: OnFatal,
    ) -> None:
        self._office = Office(
            node_id=node_id,
            voters=frozenset(voters),
            quorum=raft,
            machine=machine,
            rng=rng,
            settings=settings,
            tasks=TaskScope(on_fatal),
        )
        self._term = -1
        self._reign: list[asyncio.Task[None]] = []
        machine.subscribe(self._on_image)
        machine.subscribe_to_digests(self._on_digest)

    @property
    def active(self) -> bool:
        return self._office.active

    @property
    def epoch(self) -> int | None:
        """The controller epoch while active."""
        return self._office.epoch

    def on_role(self, role: Role, term: int, leader_id: int | None) -> None:
        """`raftlog` tells of every change."""
        if role is Role.LEADER and term == self._term:
            return
        self._leave_office()
        if role is Role.LEADER:
            self._term = term
            self._reign = [
                self._office.tasks.spawn(self._take_office(term), name=f"controller of term {term}")
            ]

    async def stop(self) -> None:
        self._leave_office()
        await self._office.tasks.close()

    def connection_refused(self, node_id: int) -> None:
        """Nobody listens where the broker did: proof of death, fence it at once (RULES B4)."""
        office = self._office
        if office.sessions is not None and office.sessions_changed is not None:
            office.sessions.expire(node_id, asyncio.get_running_loop().time())
            office.sessions_changed.set()

    # --- APIs, by key; what each does stands in its file ---

    async def create_topics(
        self,
        request: CreateTopicsRequest,
        version: int,
        deadline: float,
        origin: Origin | None = None,
    ) -> ControllerAnswer[CreateTopicsResponse]:
        return await topic_creation.create_topics(self._office, request, version, deadline, origin)

    async def delete_topics(
        self,
        request: DeleteTopicsRequest,
        version: int,
        deadline: float,
        origin: Origin | None = None,
    ) -> ControllerAnswer[DeleteTopicsResponse]:
        return await topic_deletion.delete_topics(self._office, request, version, deadline, origin)

    async def alter_configs(
        self, request: AlterConfigsRequest, version: int, deadline: float
    ) -> ControllerAnswer[AlterConfigsResponse]:
        return await configs.alter_configs(self._office, request, version, deadline)

    async def create_partitions(
        self, request: CreatePartitionsRequest, version: int, deadline: float
    ) -> ControllerAnswer[CreatePartitionsResponse]:
        return await partitions.create_partitions(self._office, request, version, deadline)

    async def elect_leaders(
        self, request: ElectLeadersRequest, version: int, deadline: float
    ) -> ControllerAnswer[ElectLeadersResponse]:
        return await leaders.elect_leaders(self._office, request, version, deadline)

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest, version: int, deadline: float
    ) -> ControllerAnswer[AlterPartitionReassignmentsResponse]:
        return await reassignments.alter_partition_reassignments(
            self._office, request, version, deadline
        )

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, version: int, deadline: float
    ) -> ControllerAnswer[IncrementalAlterConfigsResponse]:
        return await configs.incremental_alter_configs(self._office, request, version, deadline)

    async def alter_partition(
        self, request: AlterPartitionRequest, version: int, deadline: float
    ) -> ControllerAnswer[AlterPartitionResponse]:
        return await isr.alter_partition(self._office, request, version, deadline)

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest, version: int, deadline: float
    ) -> ControllerAnswer[AssignReplicasToDirsResponse]:
        return await lost_replicas.assign_replicas_to_dirs(self._office, request, version, deadline)

    async def register_broker(
        self, request: BrokerRegistrationRequest, version: int, deadline: float
    ) -> ControllerAnswer[BrokerRegistrationResponse]:
        return await brokers.register_broker(self._office, request, version, deadline)

    async def heartbeat(
        self, request: BrokerHeartbeatRequest, version: int, deadline: float
    ) -> ControllerAnswer[BrokerHeartbeatResponse]:
        return await brokers.heartbeat(self._office, request, version, deadline)

    async def unregister_broker(
        self, request: UnregisterBrokerRequest, version: int, deadline: float
    ) -> ControllerAnswer[UnregisterBrokerResponse]:
        return await brokers.unregister_broker(self._office, request, version, deadline)

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, version: int, deadline: float
    ) -> ControllerAnswer[AllocateProducerIdsResponse]:
        return await producer_ids.allocate(self._office, request, version, deadline)

    async def replace_voter(
        self, request: AddRaftVoterRequest, version: int, deadline: float
    ) -> ControllerAnswer[AddRaftVoterResponse]:
        return await voters.replace_voter(self._office, request, version, deadline)

    # --- inside ---

    async def _take_office(self, term: int) -> None:
        """Propose NewController until it is known to be applied or never to be."""
        office = self._office
        while True:
            command = encode_command(NewController(office.node_id, term), level_of(office.image))
            outcome = await office.quorum.propose(command, office.own_deadline())
            image = office.image
            if image.controller_term == term and image.controller_id == office.node_id:
                break
            if isinstance(outcome, Applied | NotLeader):
                return  # Refused for a larger term, or not leader any more.
            await asyncio.sleep(RETRY_PAUSE)
        now = asyncio.get_running_loop().time()
        sessions = Sessions(office.settings.session_timeout)
        for node_id, broker in image.brokers.items():
            if not broker.fenced:
                sessions.grant(node_id, broker.broker_epoch, now + office.settings.short_session)
        office.sessions = sessions
        office.sessions_changed = asyncio.Event()
        office.epoch = image.controller_epoch
        self._reign.append(
            office.tasks.spawn(fencing.watch_sessions(office), name=f"sessions of term {term}")
        )
        if (interval := office.settings.rebalance_interval) is not None:
            self._reign.append(
                office.tasks.spawn(
                    rebalance.rebalance_leaders(office, interval), name=f"leaders of term {term}"
                )
            )

    def _leave_office(self) -> None:
        self._term = -1
        self._office.epoch = None
        self._office.sessions = None
        self._office.sessions_changed = None
        for task in self._reign:
            task.cancel()
        self._reign = []

    def _on_image(self, change: ImageChange) -> None:
        if change.after.voter_directories is not change.before.voter_directories:
            self._office.quorum.pin_directories(change.after.voter_directories)
        if -1 < self._term < change.after.controller_term:
            # Another node has taken office in a later term. Our role change may be on its way
            # still; every command of ours would be refused from now on.
            self._leave_office()

    def _on_digest(self, index: int, digest: bytes) -> None:
        if self._office.active:
            self._office.tasks.spawn(
                self._tell_digest(index, digest), name=f"digest of {index} into the log"
            )

    async def _tell_digest(self, index: int, digest: bytes) -> None:
        # Lost with the office is no harm: the next one comes after a thousand commands.
        await self._office.propose(
            lambda epoch: Digest(epoch, index, digest), self._office.own_deadline()
        )
