"""One controller over a quorum of one that commits at once, loses answers or keeps them back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from uuid import UUID

from logboat.metadata.apply import apply
from logboat.metadata.codec import decode_command, encode_command
from logboat.metadata.commands import Command, NewController
from logboat.metadata.controller import Controller, ControllerSettings
from logboat.metadata.image import BrokerImage, ClusterImage, PartitionImage
from logboat.metadata.listeners import CLIENT_LISTENER, INTERNODE_LISTENER
from logboat.metadata.machine import MetadataMachine
from logboat.raftlog import Applied, NotLeader, Outcome, Role, Unknown
from logboat.seam import all_at_once
from logboat.wire import ErrorCode
from logboat.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from logboat.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from logboat.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

SETTINGS = ControllerSettings(
    heartbeat_interval=0.2,
    session_timeout=1.0,
    election_timeout=0.3,
    own_command_timeout=1.0,
    default_configs=MappingProxyType({"default.replication.factor": "3", "num.partitions": "2"}),
)


class FakeQuorum:
    def __init__(self) -> None:
        self.machine = MetadataMachine(cluster_id="c", on_fatal=self._on_fatal)
        self.log: list[Command] = []
        self.pins: Mapping[int, UUID] = {}
        self.lose_answers = 0
        """So many proposals are committed, but their proposer never learns it."""
        self.drop = 0
        """So many proposals are not committed, and their proposer never learns it."""
        self.drop_kinds: tuple[type, ...] = ()
        """Proposals of these kinds are not committed either."""
        self.leads = True
        self.before_commit: list[Command] = []
        """Slipped in ahead of the next proposal, as another leader or broker would."""

    def _on_fatal(self, error: BaseException) -> None:
        raise error

    def commit(self, command: Command) -> Applied:
        self.log.append(command)
        index = self.machine.image.index + 1
        return Applied(index, all_at_once(self.machine.apply(index, encode_command(command))))

    async def propose(self, command: bytes, deadline: float) -> Outcome:
        await asyncio.sleep(0.001)
        if not self.leads:
            return NotLeader(None)
        while self.before_commit:
            self.commit(self.before_commit.pop(0))
        decoded = decode_command(command)
        if self.drop or isinstance(decoded, self.drop_kinds):
            self.drop = max(0, self.drop - 1)
            return Unknown("the answer did not come")
        applied = self.commit(decoded)
        if self.lose_answers:
            self.lose_answers -= 1
            return Unknown("the answer did not come")
        return applied

    async def barrier(self, deadline: float) -> Outcome:
        await asyncio.sleep(0.001)
        while self.before_commit:
            self.commit(self.before_commit.pop(0))
        return Applied(self.machine.image.index, None) if self.leads else NotLeader(None)

    def pin_directories(self, pins: Mapping[int, UUID]) -> None:
        self.pins = pins


class Node:
    """A node that leads the quorum; brokers are played by the test."""

    def __init__(self, settings: ControllerSettings = SETTINGS) -> None:
        self.quorum = FakeQuorum()
        self.controller = Controller(
            node_id=1,
            voters=(1, 2, 3),
            raft=self.quorum,
            machine=self.quorum.machine,
            rng=Random(7),
            settings=settings,
            on_fatal=self._on_fatal,
        )
        self.term = 0

    def _on_fatal(self, error: BaseException) -> None:
        raise error

    @property
    def image(self) -> ClusterImage:
        return self.quorum.machine.image

    def broker(self, node_id: int) -> BrokerImage:
        return self.image.brokers[node_id]

    def partition(self, topic: str = "t", number: int = 0) -> PartitionImage:
        found = self.image.partition(topic, number)
        assert found is not None
        return found

    def deadline(self) -> float:
        return asyncio.get_running_loop().time() + 5

    async def lead(self) -> None:
        """The quorum elects this node; returns when it is active."""
        self.term += 1
        self.quorum.leads = True
        self.controller.on_role(Role.LEADER, self.term, 1)
        while not self.controller.active:  # noqa: ASYNC110 - time is virtual
            await asyncio.sleep(0.01)

    def lose(self) -> None:
        self.quorum.leads = False
        self.controller.on_role(Role.FOLLOWER, self.term, None)

    def other_leader(self) -> NewController:
        """The command of another node that was elected."""
        self.term += 1
        return NewController(2, self.term)

    async def register(
        self, node_id: int, *, incarnation: int = 1, directory: int | None = None, **other: object
    ) -> BrokerRegistrationResponse:
        request = BrokerRegistrationRequest(
            broker_id=node_id,
            cluster_id="c",
            incarnation_id=UUID(int=100 * node_id + incarnation),
            listeners=[
                BrokerRegistrationRequest.Listener(name=CLIENT_LISTENER, host="h", port=9000),
                BrokerRegistrationRequest.Listener(name=INTERNODE_LISTENER, host="h", port=9100),
            ],
            log_dirs=[UUID(int=node_id if directory is None else directory)],
        )
        for name, value in other.items():
            setattr(request, name, value)
        answer = await self.controller.register_broker(request, 4, self.deadline())
        return answer.response

    async def heartbeat(
        self,
        node_id: int,
        *,
        read: int | None = None,
        fence: bool = False,
        shut_down: bool = False,
        epoch: int | None = None,
    ) -> BrokerHeartbeatResponse:
        """`read`: what the broker's image has reached; None: everything."""
        known = self.image.brokers.get(node_id)
        request = BrokerHeartbeatRequest(
            broker_id=node_id,
            broker_epoch=epoch if epoch is not None else known.broker_epoch if known else -1,
            current_metadata_offset=self.image.index if read is None else read,
            want_fence=fence,
            want_shut_down=shut_down,
        )
        answer = await self.controller.heartbeat(request, 2, self.deadline())
        return answer.response

    async def join(self, *node_ids: int) -> None:
        for node_id in node_ids:
            assert (await self.register(node_id)).error_code == ErrorCode.NONE
            assert not (await self.heartbeat(node_id)).is_fenced

    async def keep_alive(self, *node_ids: int, seconds: float) -> None:
        """These brokers go on sending heartbeats; the others are silent."""
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            for node_id in node_ids:
                await self.heartbeat(node_id)
            await asyncio.sleep(0.2)

    async def create(
        self, *names: str, partitions: int = -1, factor: int = -1, **other: object
    ) -> list[CreateTopicsResponse.CreatableTopicResult]:
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name, num_partitions=partitions, replication_factor=factor
                )
                for name in names
            ]
        )
        for name, value in other.items():
            setattr(request, name, value)
        answer = await self.controller.create_topics(request, 7, self.deadline())
        return answer.response.topics

    def would_apply(self, command: Command) -> ErrorCode:
        """What the command would be answered now."""
        return apply(self.image, self.image.index + 1, command)[1].error
