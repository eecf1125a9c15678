"""The quorum's log by itself: three processes over loopback, with a real disk and its syncs.

    python benchmarks/quorum.py [--rounds 5] [--kills 20] [--minutes 10] [--write]

`--minutes 0` leaves the footprint over time out. `--write` puts the table into docs/NUMBERS.md.
"""

from __future__ import annotations

import argparse
import json
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from figures import Figure, machine, table, tell
from run import compile_as_installed, cpu_ticks, rss_anon_mib

from logboat.client.cluster.ports import free_ports

VOTER = Path(__file__).with_name("quorum_voter.py")
VOTERS = 3
TICKS_PER_S = 100

COMMANDS = 20_000
IN_FLIGHT = 200
COMMAND_BYTES = 100
LONE = 1_000
IDLE_S = 10.0
RESTART_COMMANDS = 100_000
STEADY_PER_S = 200
ANSWER_S = 300.0


class VoterProcess:
    """A voter in a process of its own."""

    def __init__(self, plan: dict[str, object]) -> None:
        self.node_id = plan["node_id"]
        self._process = subprocess.Popen(
            [sys.executable, str(VOTER), json.dumps(plan)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.answers: queue.Queue[Any] = queue.Queue()
        self.started: queue.Queue[int] = queue.Queue()
        """Takes the number of commands applied from its own disk."""
        self.led_at: list[float] = []
        """Monotonic times at which it became leader."""
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, command: str, *arguments: object) -> Any:
        self.tell(command, *arguments)
        return self.answer(within_s=ANSWER_S)

    def answer(self, *, within_s: float) -> Any:
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            try:
                return self.answers.get(timeout=0.5)
            except queue.Empty:
                if not self.alive:
                    raise RuntimeError(f"voter {self.node_id} has ended") from None
        raise TimeoutError(f"voter {self.node_id} does not answer")

    def tell(self, command: str, *arguments: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([command, *arguments]) + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if "answer" in said:
                self.answers.put(said["answer"])
            elif said["event"] == "started":
                self.started.put(said["applied"])
            else:
                self.led_at.append(said["at"])


class Quorum:
    """Three voters and their directories."""

    def __init__(self, directory: str, *, compaction: int, local: bool) -> None:
        self._directory = directory
        self._compaction = compaction
        self._local = local
        self._ports = [ports.quorum for ports in free_ports(VOTERS)]
        self.voters: dict[int, VoterProcess] = {}
        for node_id in range(1, VOTERS + 1):
            self.start(node_id)

    def start(self, node_id: int) -> None:
        self.voters[node_id] = VoterProcess(
            {
                "node_id": node_id,
                "ports": self._ports,
                "directory": f"{self._directory}/{node_id}",
                "compaction": self._compaction,
                "local": self._local,
            }
        )

    def leader(self, *, within_s: float = 20.0) -> VoterProcess:
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            for voter in self.voters.values():
                if voter.alive and voter.led_at and voter.ask("leads"):
                    return voter
            time.sleep(0.01)
        raise TimeoutError(f"no leader in {within_s} s")

    def wait_applied(self, count: int, *, within_s: float = 60.0) -> None:
        end = time.monotonic() + within_s
        while any(voter.ask("applied") < count for voter in self.voters.values()):
            if time.monotonic() > end:
                raise TimeoutError(f"not all voters have {count} commands after {within_s} s")
            time.sleep(0.01)

    def kill(self) -> None:
        for voter in self.voters.values():
            voter.kill()


@contextmanager
def running(*, compaction: int = 2000, local: bool = False) -> Iterator[Quorum]:
    with tempfile.TemporaryDirectory() as directory:
        quorum = Quorum(directory, compaction=compaction, local=local)
        try:
            yield quorum
        finally:
            quorum.kill()


def load_and_lone() -> tuple[float, float, float]:
    """(commands/s, CPU seconds of the leader per 1,000 of them, p99 of a lone proposal in ms)."""
    with running() as quorum:
        leader = quorum.leader()
        leader.ask("load", 2_000, IN_FLIGHT, COMMAND_BYTES)
        load = leader.ask("load", COMMANDS, IN_FLIGHT, COMMAND_BYTES)
        leader.ask("lone", 50, COMMAND_BYTES)
        lone = sorted(leader.ask("lone", LONE, COMMAND_BYTES))
        return (
            COMMANDS / load["seconds"],
            1_000 * load["cpu_s"] / (COMMANDS / 1_000),
            1_000 * lone[int(0.99 * (LONE - 1))],
        )


def idle_cpu() -> float:
    """% of a core of the worst of three voters without work."""
    with running() as quorum:
        quorum.leader()
        time.sleep(2.0)
        pids = [voter.pid for voter in quorum.voters.values()]
        before = [cpu_ticks(pid) for pid in pids]
        time.sleep(IDLE_S)
        used = [cpu_ticks(pid) - b for pid, b in zip(pids, before, strict=True)]
        return 100 * max(used) / TICKS_PER_S / IDLE_S


def elections(kills: int) -> list[float]:
    """Seconds from SIGKILL of the leader until another voter leads."""
    times = []
    with running(local=True) as quorum:
        for _ in range(kills):
            leader = quorum.leader()
            commands = leader.ask("applied") + 10
            leader.ask("load", 10, 1, COMMAND_BYTES)
            quorum.wait_applied(commands)
            for voter in quorum.voters.values():
                voter.led_at.clear()
            killed = time.monotonic()
            leader.kill()
            while not (led := [at for v in quorum.voters.values() for at in v.led_at]):
                if time.monotonic() > killed + 30:
                    raise TimeoutError("no leader in 30 s")
                time.sleep(0.002)
            times.append(min(led) - killed)
            node_id = next(n for n, voter in quorum.voters.items() if voter is leader)
            quorum.start(node_id)
            quorum.voters[node_id].started.get(timeout=30)
    return times


def restart_with_long_log() -> float:
    """Seconds from the start of all until one leads and all have applied 100,000 commands anew."""
    with running(compaction=0) as quorum:
        quorum.leader().ask("load", RESTART_COMMANDS, IN_FLIGHT, COMMAND_BYTES)
        quorum.wait_applied(RESTART_COMMANDS)
        quorum.kill()
        started = time.monotonic()
        for node_id in quorum.voters:
            quorum.start(node_id)
        quorum.leader()
        quorum.wait_applied(RESTART_COMMANDS)
        return time.monotonic() - started


def growth(minutes: float) -> float:
    """MiB of anonymous memory that the worst voter gains under steady work, after a warm-up."""
    with running() as quorum:
        leader = quorum.leader()
        # Several compactions, so that every buffer has had its largest size.
        leader.ask("load", 20_000, IN_FLIGHT, COMMAND_BYTES)
        leader.ask("steady", STEADY_PER_S, 10.0)
        before = {n: rss_anon_mib(voter.pid) for n, voter in quorum.voters.items()}
        leader.tell("steady", STEADY_PER_S, 60 * minutes)
        leader.answer(within_s=60 * minutes + ANSWER_S)
        return max(rss_anon_mib(v.pid) - before[n] for n, v in quorum.voters.items())


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    compile_as_installed()

    rate = Figure("200 proposals in flight, 100 bytes", "commands/s", "5,000 commands/s")
    cost = Figure("leader's CPU for it", "ms per 1,000", "none")
    lone = Figure("p99 of a lone proposal", "ms", "10 ms")
    idle = Figure("idle CPU, worst voter", "% of a core", "2 %")
    restart = Figure("restart with 100,000 commands in the journal", "s", "5 s")
    election = Figure("election after kill -9 of the leader, local timings", "s", "p95 1 s")
    p95 = Figure("the same, 95th percentile", "s", "1 s")
    rss = Figure(f"memory gained in {arguments.minutes:g} minutes of work", "MiB", "flat")

    for round_number in range(arguments.rounds):
        print(f"round {round_number + 1} of {arguments.rounds}", file=sys.stderr)
        for figure, value in zip((rate, cost, lone), load_and_lone(), strict=True):
            figure.values.append(value)
        idle.values.append(idle_cpu())
        restart.values.append(restart_with_long_log())
    if arguments.kills:
        election.values = elections(arguments.kills)
        if arguments.kills > 1:
            p95.values = [statistics.quantiles(election.values, n=20)[-1]]
    if arguments.minutes:
        rss.values = [growth(arguments.minutes)]

    text = (
        f"Machine: {machine()}. Three voters share it. `benchmarks/quorum.py`, "
        f"{arguments.rounds} interleaved rounds; every write synced.\n\n"
        + table([rate, cost, lone, idle, restart, election, p95, rss])
    )
    tell("The quorum's log", text, write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
