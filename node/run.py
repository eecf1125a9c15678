"""A whole node: `run_node` makes its parts, starts them in order, and stops them in order.

Start: ports taken -> data directory locked -> quorum -> registered -> logs recovered -> clients let
in -> unfenced -> HTTP. The quorum comes first: elections must not wait for recovery (F1).
Stop is the way back: leaderships handed over (B6), clients, groups, logs flushed and synced, the
clean-shutdown marker (C7), the quorum, the lock.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from ..groups import OFFSETS_TOPIC, ConsumerGroupSettings, GroupCoordinator, GroupSettings
from ..metadata.controller import Controller, ControllerSettings
from ..metadata.image import FAILED_SYNC_EPOCH
from ..metadata.listeners import HTTP_LISTENER
from ..metadata.machine import MetadataMachine
from ..partitions import Replicas, ReplicationConfig
from ..partitions.storage import MOST_OPEN_FILES, LogDirectory
from ..raftlog import Channel, Credential, Observer, RaftLog, RaftSettings, Role
from ..seam import Clock, Disk, OnFatal, SyncFailed, TaskScope
from ..wire import ApiKey
from .addresses import Address
from .broker_lifecycle import BrokerIdentity, BrokerLifecycle
from .config import NodeConfig
from .controller_apis import ControllerApis
from .controller_client import ControllerClient, Origins
from .death_watch import DeathWatch
from .dispatch import Dispatcher
from .fatal import FatalStop
from .handlers import CLIENT_APIS, INTERNODE_APIS
from .internode import InternodeListener
from .known_brokers import KnownBrokers
from .listener import UNBOUNDED, CannotListen, ClientListener, bind, sentence
from .long_lived import LongLived, Settle
from .loop_lag import LoopLag
from .offset_store import ReplicatedOffsets
from .peers import Peers
from .producer_ids import ProducerIds
from .quorum_view import QuorumView
from .report import NodeAddresses
from .services import Services
from .topic_creation import TopicCreation

if TYPE_CHECKING:
    from .http.server import HttpServer

logger = logging.getLogger(__name__)

HTTP_DELAY_S = 0.5
"""How long HTTP waits for a lone node to be ready."""

SECRET_BYTES = 32
"""Length of the secret that a node without others makes up for itself."""

LEADERLESS_LIMIT_S = 1.5
"""A stop does not wait longer for a quorum that has no leader: the other nodes are stopping too."""


async def run_node(
    config: NodeConfig,
    disk: Disk,
    clock: Clock,
    rng: Random,
    *,
    stop: asyncio.Event,
    on_listening: Callable[[NodeAddresses], None] = lambda _: None,
    on_fatal: OnFatal = lambda _: None,
    open_files: int = MOST_OPEN_FILES,
    most_connections: int = UNBOUNDED,
    settle: Settle | None = None,
) -> None:
    """Run until `stop` is set, then leave in order.

    Raises what ends the process otherwise: Fatal, or before anything was changed on disk
    CannotListen or DirectoryRefused. `on_fatal` hears of a fatal error at once, before anything
    else can run: a process ends itself there. `open_files`: how many the logs may keep open;
    `most_connections`: how many clients the process has descriptors for. `settle`: of a process
    that is this node's alone.
    """

    def end(error: BaseException) -> None:
        if isinstance(error, SyncFailed) and node.log_directory is not None:
            node.log_directory.note_failed_sync()
        on_fatal(error)

    fatal = FatalStop(end)
    node = Node(
        config,
        disk,
        clock,
        rng,
        fatal,
        open_files=open_files,
        most_connections=most_connections,
        settle=settle,
    )
    try:
        on_listening(await node.start())
        stopping = asyncio.ensure_future(stop.wait())
        failing = asyncio.ensure_future(fatal.wait())
        await asyncio.wait([stopping, failing], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        failing.cancel()
    except BaseException:
        await node.abandon()
        raise
    if fatal.happened:
        await node.abandon()
        await fatal.wait()
    await node.stop()


class Node:
    """The parts of a running node, under their names."""

    def __init__(
        self,
        config: NodeConfig,
        disk: Disk,
        clock: Clock,
        rng: Random,
        on_fatal: OnFatal,
        *,
        open_files: int = MOST_OPEN_FILES,
        most_connections: int = UNBOUNDED,
        settle: Settle | None = None,
    ) -> None:
        self.config = config
        self.disk = disk
        self.clock = clock
        self.rng = rng
        self.loop_lag = LoopLag()
        self._requests: Counter[ApiKey] = Counter()
        self._on_fatal = on_fatal
        self._open_files = open_files
        self._settle = settle
        self._tasks = TaskScope(on_fatal)
        self._started = False
        self._recovery: asyncio.Task[None] | None = None
        """Ends when clients have been let in."""
        self._controller_clients: list[ControllerClient] = []
        self._origins = Origins()
        self.internode = InternodeListener(
            config.internode,
            adopt_raft=self._adopt_raft,
            on_channel_closed=self._on_channel_closed,
            on_fatal=on_fatal,
        )
        self.clients = ClientListener(config, on_fatal, most_connections=most_connections)
        self.controller: Controller
        self.lifecycle: BrokerLifecycle | None = None
        self._http: HttpServer | None = None
        self._http_placeholder: asyncio.Server | None = None
        self.log_directory: LogDirectory | None = None

    async def start(self) -> NodeAddresses:
        """Returns when the quorum runs and HTTP answers; readiness comes later by itself."""
        await self._take_ports()
        config = self.config
        self.log_directory = await LogDirectory.open(
            config.log_directory,
            cluster_id=config.cluster_id,
            node_id=config.node_id,
            disk=self.disk,
            clock=self.clock,
            rng=self.rng,
            on_fatal=self._on_fatal,
            open_files=self._open_files,
        )
        self._make_quorum(self.log_directory)
        self._make_replicas(self.log_directory)
        self._make_services()
        if self._settle is not None:
            logs, replicas = self.log_directory.logs(), self.replicas
            self._settle(
                LongLived(
                    logs=lambda: len(logs),
                    assignments=lambda: replicas.assigned_count,
                    work=lambda: replicas.work_under_way,
                ).has_grown
            )
        self.machine.subscribe(self.services.known_brokers.on_image)
        await self.internode.serve(
            self.credential,
            self.rng,
            Dispatcher(self.services, INTERNODE_APIS, self._requests),
            on_gone=self.replicas.forget_sessions,
        )
        await self.raft.start()
        self.loop_lag.start()
        self._started = True
        http = config.http
        if http is not None and http.port == 0:
            # Only a server that listens knows the port to register with.
            await self._start_http(http)
        lifecycle = self._make_lifecycle(self.log_directory)
        self._tasks.spawn(lifecycle.run(), name="broker lifecycle")
        self._recovery = self._tasks.spawn(self._let_clients_in(lifecycle), name="recovery")
        if http is not None and http.port != 0:
            self._tasks.spawn(self._start_http_later(http, lifecycle), name="start of HTTP")
        return self.addresses

    async def stop(self) -> None:
        """Leave in order; bounded by controlled.shutdown.timeout.ms and the disk."""
        logger.info("stopping")
        if self._recovery is not None:
            # Logs that a stop lets go of are not open: nobody is let in for that.
            self._recovery.cancel()
            await asyncio.wait([self._recovery])
        if self._http is not None:
            # While the coordinators of their groups still answer.
            await self._http.end_consumers()
        if self.lifecycle is not None and self.config.flag("controlled.shutdown.enable"):
            await self._leave(self.lifecycle)
        await self._stop_http()
        await self.clients.close()
        # Other nodes learn at once that this one is gone, if they did not agree to it before.
        await self.internode.close()
        await self.groups.stop()
        await self.replicas.stop()
        assert self.log_directory is not None
        await self.log_directory.write_clean_marker(self._broker_epoch())
        await self._end()
        await self.log_directory.close()
        logger.info("stopped")

    async def abandon(self) -> None:
        """Let go of tasks and ports after a failure. Nothing is written (RULES C4)."""
        await self._end()
        await self.clients.close()

    async def _end(self) -> None:
        self.loop_lag.stop()
        await self._tasks.close()
        if self._http_placeholder is not None:
            self._http_placeholder.close()
        await self.internode.close()
        if self._started:
            for client in self._controller_clients:
                client.close()
            await self.controller.stop()
            await self.raft.stop()
            await self.machine.close()

    # Making the parts

    async def _take_ports(self) -> None:
        """Before the disk is touched, so that a node with a wrong port changes nothing."""
        config = self.config
        internode_port = await self.internode.bind()
        kafka_port = await self.clients.bind()
        if config.http is not None and config.http.port != 0:
            # HTTP comes later; whether its port is to be had is known now.
            self._http_placeholder = await bind(
                asyncio.Protocol, config.http, HTTP_LISTENER, backlog=1
            )
        self.addresses = NodeAddresses(
            kafka=_real(config.advertised_kafka, kafka_port),
            internode=_real(config.advertised_internode, internode_port),
            http=config.http,
        )

    def _adopt_raft(self, channel: Channel) -> None:
        self.raft.adopt(channel)

    def _on_role(self, role: Role, term: int, leader_id: int | None) -> None:
        self.controller.on_role(role, term, leader_id)
        for client in self._controller_clients:
            client.on_leader(leader_id)

    def _on_channel_closed(self, node_id: int) -> None:
        self._death_watch.on_channel_closed(node_id)

    def _make_quorum(self, log_directory: LogDirectory) -> None:
        config = self.config
        self.credential = Credential(
            secret=config.secret or self.rng.randbytes(SECRET_BYTES),
            node_id=config.node_id,
            directory_id=log_directory.directory_id,
            cluster_id=config.cluster_id,
            tls=config.tls,
        )
        self.machine = MetadataMachine(cluster_id=config.cluster_id, on_fatal=self._on_fatal)
        self.raft = self._make_raft(log_directory)
        self.controller = Controller(
            node_id=config.node_id,
            voters=config.voters.keys(),
            raft=self.raft,
            machine=self.machine,
            rng=self.rng,
            settings=controller_settings(config),
            on_fatal=self._on_fatal,
        )
        self.peers = Peers(
            credential=self.credential,
            voters=config.voters,
            image=lambda: self.machine.image,
            rng=self.rng,
            on_refused=self.controller.connection_refused,
        )
        self._death_watch = DeathWatch(
            peers=self.peers, worthwhile=lambda: self.controller.active, tasks=self._tasks
        )
        self._own_controller = ControllerApis(
            self.controller,
            QuorumView(
                node_id=config.node_id,
                directory_id=log_directory.directory_id,
                voters=config.voters,
                status=self.raft.status,
                image=lambda: self.machine.image,
                active=lambda: self.controller.active,
                clock=self.clock,
            ),
        )

    def _make_raft(self, log_directory: LogDirectory) -> RaftLog | Observer:
        """A voter, or outside the voters an observer: the one and only difference between them."""
        config = self.config
        voters = {node_id: (at.host, at.port) for node_id, at in config.voters.items()}
        if not config.votes:
            return Observer(
                credential=self.credential,
                voters=voters,
                settings=raft_settings(config),
                rng=self.rng,
                machine=self.machine,
                on_role=self._on_role,
                on_fatal=self._on_fatal,
            )
        return RaftLog(
            node_id=config.node_id,
            directory_id=log_directory.directory_id,
            voters=voters,
            directory=f"{config.log_directory}/quorum",
            credential=self.credential,
            settings=raft_settings(config),
            disk=self.disk,
            rng=self.rng,
            machine=self.machine,
            on_role=self._on_role,
            on_fatal=self._on_fatal,
        )

    def controller_client(self) -> ControllerClient:
        """A way to the active controller of the caller's own; closed with the node."""
        client = ControllerClient(
            node_id=self.config.node_id,
            peers=self.peers,
            local=self._own_controller,
            leader=lambda: self.raft.status().leader_id,
            machine=self.machine,
            attempt_s=self.config.seconds("controller.quorum.request.timeout.ms"),
            origins=self._origins,
        )
        self._controller_clients.append(client)
        return client

    def _make_replicas(self, log_directory: LogDirectory) -> None:
        config = self.config
        self.replicas = Replicas(
            node_id=config.node_id,
            log_directory=log_directory,
            config=ReplicationConfig.from_broker_configs(config.given),
            broker_configs=config.given,
            disk=self.disk,
            clock=self.clock,
            rng=self.rng,
            controller=self.controller_client(),
            peers=self.peers,
            on_fatal=self._on_fatal,
        )

    def _make_services(self) -> None:
        config = self.config
        self.groups = GroupCoordinator(
            node_id=config.node_id,
            store=ReplicatedOffsets(self.replicas),
            image=lambda: self.machine.image,
            settings=group_settings(config),
            clock=self.clock,
            rng=self.rng,
            on_fatal=self._on_fatal,
        )
        for_clients = self.controller_client()
        self.services = Services(
            config=config,
            clock=self.clock,
            machine=self.machine,
            replicas=self.replicas,
            groups=self.groups,
            controller=for_clients,
            own_controller=self._own_controller,
            known_brokers=KnownBrokers(),
            producer_ids=ProducerIds(
                node_id=config.node_id,
                controller=for_clients,
                broker_epoch=self._broker_epoch,
            ),
            topic_creation=TopicCreation(config=config, controller=for_clients, tasks=self._tasks),
        )

    def _broker_epoch(self) -> int:
        return -1 if self.lifecycle is None else self.lifecycle.broker_epoch

    def _make_lifecycle(self, log_directory: LogDirectory) -> BrokerLifecycle:
        config = self.config
        self.lifecycle = BrokerLifecycle(
            BrokerIdentity(
                node_id=config.node_id,
                cluster_id=config.cluster_id,
                directory_id=log_directory.directory_id,
                previous_broker_epoch=(
                    FAILED_SYNC_EPOCH
                    if log_directory.sync_failed
                    else log_directory.previous_broker_epoch
                ),
                rack=config.rack,
                kafka=self.addresses.kafka,
                internode=self.addresses.internode,
                http=self.addresses.http,
            ),
            controller=self.controller_client(),
            machine=self.machine,
            heartbeat_s=config.seconds("broker.heartbeat.interval.ms"),
            session_s=config.seconds("broker.session.timeout.ms"),
            rng=self.rng,
            on_registered=self.replicas.set_broker_epoch,
        )
        return self.lifecycle

    # Starting and stopping

    async def _let_clients_in(self, lifecycle: BrokerLifecycle) -> None:
        """Logs are opened by what the image says, so registration, whose answer this node's image
        has read, comes first; clients come when there is something to serve."""
        self.replicas.subscribe_leadership(self._on_leadership)
        await self.replicas.start()
        self.machine.subscribe(self.replicas.on_image)
        await lifecycle.registered()
        assert self.log_directory is not None
        await self.log_directory.forget_failed_sync()
        await self.replicas.wait_recovered()
        await self.clients.serve(
            Dispatcher(self.services, CLIENT_APIS, self._requests),
            on_gone=self.replicas.forget_sessions,
        )
        lifecycle.logs_are_open()

    def _on_leadership(self, topic: str, partition: int, leader: bool, leader_epoch: int) -> None:
        if topic == OFFSETS_TOPIC:
            self.groups.on_leadership(partition, leader, leader_epoch)

    async def _start_http_later(self, address: Address, lifecycle: BrokerLifecycle) -> None:
        """Loading HTTP takes as long as all the rest. A lone node has its first client served
        before; with other voters there is nothing to do until one of them is elected. In any case
        HTTP comes soon, so that a long recovery can be watched."""
        if self.config.votes and len(self.config.voters) == 1:
            try:
                async with asyncio.timeout(HTTP_DELAY_S):
                    await lifecycle.running()
            except TimeoutError:
                logger.debug("HTTP starts before this node is unfenced")
        await self._start_http(address)

    async def _start_http(self, address: Address) -> None:
        from .http import start_http
        from .http.adapter import NodeForHttp
        from .http.forwarding import MAX_CALLS, Forwarder
        from .metadata_history import MetadataHistory

        self._http_forwarders = [
            Forwarder(self.peers),
            Forwarder(self.peers, max_channels=MAX_CALLS),
        ]
        history = MetadataHistory()
        self.machine.subscribe(history.on_image)
        node = NodeForHttp(
            node_id=self.config.node_id,
            max_message_bytes=self.config.number("message.max.bytes"),
            clock=self.clock,
            image=lambda: self.machine.image,
            quorum=self.raft.status,
            lifecycle=lambda: self.lifecycle,
            replicas=self.replicas,
            groups=self.groups,
            controller=self.controller_client(),
            forwarder=self._http_forwarders[0],
            loop_lag=self.loop_lag,
            requests=self._requests,
            services=self.services,
            callers=self._http_forwarders[1],
            history=history,
            quorum_log=self.raft if isinstance(self.raft, RaftLog) else None,
        )
        if self._http_placeholder is not None:
            self._http_placeholder.close()
        try:
            self._http = await start_http(node, self.rng, host=address.host, port=address.port)
        except OSError as error:
            raise CannotListen(sentence(address, HTTP_LISTENER, error)) from error
        self.addresses = replace(self.addresses, http=_real(address, self._http.port))

    async def _stop_http(self) -> None:
        if self._http is not None:
            await self._http.stop()
            for forwarder in self._http_forwarders:
                forwarder.close()

    async def _leave(self, lifecycle: BrokerLifecycle) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.config.seconds("controlled.shutdown.timeout.ms")
        leaving = self._tasks.spawn(lifecycle.leave(deadline), name="controlled shutdown")
        leader_seen_at = loop.time()
        while not leaving.done():
            if self._leader_is_there():
                leader_seen_at = loop.time()
            elif loop.time() - leader_seen_at > LEADERLESS_LIMIT_S:
                logger.warning("stopping without the controller: the quorum has no leader")
                return
            await asyncio.wait([leaving], timeout=0.05)
        if not leaving.result():
            logger.warning("stopping without the controller's consent")

    def _leader_is_there(self) -> bool:
        """The quorum's log remembers a leader that is gone until there is another one."""
        status = self.raft.status()
        if status.leader_id is None or status.leader_id == self.config.node_id:
            return status.leader_id is not None
        return status.peers[status.leader_id].connected


def _real(address: Address, port: int) -> Address:
    return Address(address.host, address.port or port)


def raft_settings(config: NodeConfig) -> RaftSettings:
    """RULES E5, from `controller.quorum.election.timeout.ms`."""
    if config.votes and len(config.voters) == 1:
        return RaftSettings.lone()
    shortest = config.seconds("controller.quorum.election.timeout.ms")
    return RaftSettings(
        election_min_s=shortest,
        election_max_s=2 * shortest,
        fallback_s=1.5 * shortest,
        heartbeat_s=min(0.1, shortest / 4),
    )


def controller_settings(config: NodeConfig) -> ControllerSettings:
    return ControllerSettings(
        heartbeat_interval=config.seconds("broker.heartbeat.interval.ms"),
        session_timeout=config.seconds("broker.session.timeout.ms"),
        election_timeout=2 * config.seconds("controller.quorum.election.timeout.ms"),
        rebalance_interval=(
            float(config.number("leader.imbalance.check.interval.seconds"))
            if config.flag("auto.leader.rebalance.enable")
            else None
        ),
        default_configs=config.given,
    )


def group_settings(config: NodeConfig) -> GroupSettings:
    return GroupSettings(
        min_session_timeout_ms=config.number("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.number("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=config.number("group.initial.rebalance.delay.ms"),
        max_size=config.number("group.max.size"),
        commit_timeout_ms=config.number("offsets.commit.timeout.ms"),
        max_metadata_bytes=config.number("offset.metadata.max.bytes"),
        offsets_retention_ms=config.number("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=config.number("offsets.retention.check.interval.ms"),
        consumer=consumer_group_settings(config),
    )


def consumer_group_settings(config: NodeConfig) -> ConsumerGroupSettings:
    policy = config.text("group.consumer.migration.policy").lower()
    return ConsumerGroupSettings(
        heartbeat_interval_ms=config.number("group.consumer.heartbeat.interval.ms"),
        session_timeout_ms=config.number("group.consumer.session.timeout.ms"),
        assignment_interval_ms=config.number("group.consumer.assignment.interval.ms"),
        max_size=config.number("group.consumer.max.size"),
        assignors=tuple(n.strip() for n in config.text("group.consumer.assignors").split(",")),
        upgrades=policy in ("upgrade", "bidirectional"),
        downgrades=policy in ("downgrade", "bidirectional"),
    )
