"""Processes and clocks: killed, paused, stalled, restarted, set."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence

from ..schedule import Fault
from ..simulation import Host
from .stage import Do, Heal, Stage, nothing
from .supervisor import Supervisor


class ProcessFaults:
    def __init__(self, stage: Stage, supervisor: Supervisor) -> None:
        self._stage = stage
        self._supervisor = supervisor
        self.kinds: Mapping[str, Do] = {
            "kill": self._kill,
            "kill-all": self._kill,
            "pause": self._pause,
            "stall": self._stall,
            "restart": self._restart,
            "clock-step": self._clock_step,
            "clock-skew": self._clock_skew,
        }

    def _kill(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        return self._supervisor.stop(nodes, Host.kill)

    def _restart(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        return self._supervisor.stop(nodes, lambda host: host.signal(signal.SIGTERM))

    def _pause(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        hosts = self._stage.hosts(nodes)
        for host in hosts:
            if host.alive:
                host.pause()

        def heal() -> None:
            for host in hosts:
                host.resume()

        return heal

    def _stall(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        for host in self._stage.hosts(nodes):
            host.stall(fault.for_ms / 1000)
        return nothing

    def _clock_step(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        hosts = self._stage.hosts(nodes)
        seconds = float(fault.option("seconds"))
        for host in hosts:
            host.step_wall_clock(seconds)

        def heal() -> None:
            for host in hosts:
                host.step_wall_clock(-seconds)

        return heal

    def _clock_skew(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        hosts = self._stage.hosts(nodes)
        rate = float(fault.option("rate"))
        for host in hosts:
            host.set_rate(rate)

        def heal() -> None:
            for host in hosts:
                host.set_rate(1.0)

        return heal
