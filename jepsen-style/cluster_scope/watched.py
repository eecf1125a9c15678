"""Looks into running nodes after every turn; changes nothing in them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, cast
from uuid import UUID

from ...node import run as node_run
from ...partitions.partition import Partition
from ...partitions.storage import LogDirectory
from ..simulation import Host, SimDisk, World
from .ledger import Ledger


class Watch:
    """The nodes that run now, and their partitions' watermarks."""

    def __init__(self, world: World, ledger: Ledger) -> None:
        self.nodes: dict[int, WatchedNode] = {}
        """The newest incarnation of each."""
        self.directories: dict[int, UUID] = {}
        self._world = world
        self.ledger = ledger
        self._by_host: dict[Host, tuple[str, WatchedNode]] = {}
        self._watermarks: dict[Partition, int] = {}
        self._epochs: dict[Partition, int] = {}
        self._starts: dict[Partition, int] = {}
        world.on_turn = self._on_turn

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Nodes that are made meanwhile are watched."""
        watch = self

        class Node(WatchedNode):
            def __init__(self, *arguments: Any, **options: Any) -> None:
                super().__init__(*arguments, **options)
                self.watch = watch
                watch._on_made(self)

        original = node_run.Node
        vars(node_run)["Node"] = Node
        try:
            yield
        finally:
            vars(node_run)["Node"] = original

    def _on_made(self, node: WatchedNode) -> None:
        host = cast(SimDisk, node.disk).host
        self.nodes[node.config.node_id] = node
        self._by_host[host] = (f"{host.name}.{host.incarnation}", node)

    def _on_turn(self, host: Host) -> None:
        found = self._by_host.get(host)
        replicas = None if found is None else getattr(found[1], "replicas", None)
        if found is not None and replicas is not None:
            self._look_at(host, *found, replicas._hosted.values())
        self.ledger.turn_over()

    def _look_at(
        self, host: Host, incarnation: str, node: WatchedNode, hosted: Iterable[Partition]
    ) -> None:
        """Runs for every partition after every turn: calls nobody where nothing has changed."""
        alive = host.alive
        for partition in hosted:
            # Also when the process has just ended: what it let go is gone.
            start = partition.log.log_start_offset
            if start != self._starts.get(partition, 0):
                self._on_start(host, node, partition, start)
            if not alive:
                continue
            watermark = partition.high_watermark
            if watermark != self._watermarks.get(partition, -1):
                self._on_watermark(incarnation, node, partition, watermark)
            leader = partition.leader
            if leader is not None and self._epochs.get(partition) != leader.leader_epoch:
                self._epochs[partition] = leader.leader_epoch
                self.ledger.leads(incarnation, str(partition), leader.leader_epoch)

    def _on_start(self, host: Host, node: WatchedNode, partition: Partition, start: int) -> None:
        before = self._starts.get(partition)
        self._starts[partition] = start
        wall_ms = int(host.wall_time() * 1000)
        node_id = node.config.node_id
        self.ledger.begins_at(node_id, str(partition), start, before=before, wall_ms=wall_ms)

    def _on_watermark(
        self, incarnation: str, node: WatchedNode, partition: Partition, watermark: int
    ) -> None:
        before = self._watermarks.get(partition, -1)
        self._watermarks[partition] = watermark
        key = str(partition)
        self.ledger.starts.committed(key, watermark)
        excused = self.ledger.is_excused(node.config.node_id, key) or key in self.ledger.given_up
        if watermark < before and not excused:
            self.ledger.violation(
                f"watermark: {partition} on {incarnation} went back from {before} to {watermark}"
            )

    def high_watermark(self, node_id: int, key: str) -> int:
        """What this node's replica believes now; -1 when there is none."""
        node = self.nodes.get(node_id)
        replicas = getattr(node, "replicas", None)
        if node is None or replicas is None or not self._world.hosts[node.host_name].alive:
            return -1
        topic, _, number = key.rpartition("-")
        state = replicas.partition_state(topic, int(number))
        return -1 if state is None else state.high_watermark

    def active_controller(self) -> int | None:
        """The node that holds office in the largest epoch, of those that live."""
        in_office = [
            (node.controller.epoch, node_id)
            for node_id, node in self.nodes.items()
            if hasattr(node, "controller")
            and self._world.hosts[node.host_name].alive
            and node.controller.epoch is not None
        ]
        return max(in_office)[1] if in_office else None


class WatchedNode(node_run.Node):
    watch: Watch

    @property
    def host_name(self) -> str:
        return cast(SimDisk, self.disk).host.name

    def _make_quorum(self, log_directory: LogDirectory) -> None:
        super()._make_quorum(log_directory)
        self.watch.directories[self.config.node_id] = log_directory.directory_id
        self.machine.subscribe(lambda change: self.watch.ledger.on_image(change.after))
