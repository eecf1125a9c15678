"""Disks: without power, full, slow, failing, damaged, gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ..schedule import KINDS, Fault
from ..simulation import Host, Keep
from ..simulation.dice import stream
from ..simulation.drive import UNLIMITED
from .drive_faults import FailingCalls, damage
from .stage import Do, Heal, Stage
from .supervisor import Supervisor


class DiskFaults:
    def __init__(
        self,
        stage: Stage,
        supervisor: Supervisor,
        *,
        sync_s: float,
        on_failed_sync: Callable[[Fault, int], None],
    ) -> None:
        """`on_failed_sync` is told of the node when it happens, which may be long after the fault
        began, or never."""
        self._on_failed_sync = on_failed_sync
        self._stage = stage
        self._supervisor = supervisor
        self._sync_s = sync_s
        self._dice = stream(stage.world.seed, "damage")
        self._failing = {number: FailingCalls(host) for number, host in stage.cluster.hosts.items()}
        self.kinds: Mapping[str, Do] = {
            "power-cut": self._power_cut,
            "blackout": self._power_cut,
            "failed-sync": partial(self._fail, ("sync effect",), "after_syncs"),
            "write-error": partial(self._fail, ("append", "write_at"), "after_writes"),
            "read-error": partial(self._fail, ("read_at",), "after_reads"),
            "full-disk": self._full,
            "slow-disk": self._slow,
            "bit-flip": self._damage,
            "misdirected-write": self._damage,
            "stale-block": self._damage,
            "wiped-disk": self._wipe,
        }

    def _power_cut(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        keep = Keep(fault.option("keep"))

        def cut(host: Host) -> None:
            host.power_off(keep)

        for number in nodes:
            self._stage.watch.ledger.lose_power(number)
        heal = self._supervisor.stop(nodes, cut)
        for number in nodes:
            self._stage.watch.ledger.disks[number].look_again()
        return heal

    def _fail(self, kinds: Sequence[str], option: str, fault: Fault, nodes: Sequence[int]) -> Heal:
        after = int(fault.option(option))
        tickets = [
            (
                number,
                self._failing[number].fail(
                    *kinds, after=after, on_strike=partial(self._on_failure, fault, number)
                ),
            )
            for number in nodes
        ]

        def heal() -> None:
            for number, ticket in tickets:
                self._failing[number].cancel(ticket)

        return heal

    def _on_failure(self, fault: Fault, number: int) -> None:
        self._supervisor.excuse(number)
        if KINDS[fault.kind].cuts_power:
            self._stage.watch.ledger.lose_power(number)
            self._on_failed_sync(fault, number)

    def _full(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        drives = [host.drive for host in self._stage.hosts(nodes)]
        for number, drive in zip(nodes, drives, strict=True):
            self._supervisor.excuse_from_now_on(number)
            drive.capacity_bytes = drive.used_bytes() + int(fault.option("slack_bytes"))

        def heal() -> None:
            for number, drive in zip(nodes, drives, strict=True):
                # What has started meanwhile has met the full disk.
                self._supervisor.excuse(number)
                drive.capacity_bytes = UNLIMITED

        return heal

    def _slow(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        drives = [host.drive for host in self._stage.hosts(nodes)]
        for drive in drives:
            drive.sync_latency_s = float(fault.option("sync_ms")) / 1000

        def heal() -> None:
            for drive in drives:
                drive.sync_latency_s = self._sync_s

        return heal

    def _damage(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        heal = self._supervisor.stop(nodes, Host.kill)
        for number, host in zip(nodes, self._stage.hosts(nodes), strict=True):
            self._supervisor.damage(number)
            damage(host.drive, fault, self._dice)
            self._stage.watch.ledger.disks[number].look_again()
        return heal

    def _wipe(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        heal = self._supervisor.stop(nodes, Host.kill)
        for number in nodes:
            self._supervisor.replace_disk(number)
        return heal
