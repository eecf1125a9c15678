"""One voter of a quorum and nothing else, for `quorum.py`: told what to do on its standard input.

    python benchmarks/quorum_voter.py '<json of VoterPlan>'

Each line of input is a JSON array [command, argument, ...], each answer and each event one line of
JSON on standard output.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import SystemRandom
from uuid import UUID

from logboat.node.loop_lag import LoopLag
from logboat.raftlog import (
    Applied,
    Credential,
    RaftLog,
    RaftSettings,
    Role,
    accept_factory,
)
from logboat.seam.real_disk import RealDisk

DEADLINE_S = 30.0


@dataclass
class VoterPlan:
    """What a voter needs to know."""

    node_id: int
    ports: list[int]
    """One per voter, of ids 1, 2, ..."""
    directory: str
    compaction: int
    """Entries between two snapshots; 0 is never."""
    local: bool
    """Whether its timings are those of voters on one machine."""


class Counter:
    """A state machine whose state is two numbers."""

    def __init__(self) -> None:
        self.count = 0
        self.last_index = 0

    def apply(self, index: int, command: bytes) -> object:
        self.count += 1
        self.last_index = index
        return None

    def capture(self) -> Callable[[], bytes]:
        state = json.dumps([self.count, self.last_index]).encode()
        return lambda: state

    def decode(self, snapshot: bytes) -> Callable[[int], None]:
        state = json.loads(snapshot)

        def install(_: int) -> None:
            self.count, self.last_index = state

        return install


class Voter:
    """The process."""

    def __init__(self, plan: VoterPlan) -> None:
        self._plan = plan
        self._machine = Counter()
        self._lag = LoopLag()
        rng = SystemRandom()
        self._credential = Credential(b"b" * 32, plan.node_id, UUID(int=plan.node_id), "benchmark")
        settings = RaftSettings.local() if plan.local else RaftSettings()
        self._log = RaftLog(
            node_id=plan.node_id,
            directory_id=UUID(int=plan.node_id),
            voters={n: ("127.0.0.1", port) for n, port in enumerate(plan.ports, start=1)},
            directory=plan.directory,
            credential=self._credential,
            settings=replace(settings, compaction_entries=plan.compaction),
            disk=RealDisk(),
            rng=rng,
            machine=self._machine,
            on_role=self._on_role,
            on_fatal=self._on_fatal,
        )
        self._rng = rng

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        acceptor = accept_factory(self._credential, self._rng, self._log.adopt)
        port = self._plan.ports[self._plan.node_id - 1]
        await loop.create_server(acceptor, "127.0.0.1", port)
        await self._log.start()
        gc.collect()
        gc.freeze()
        self._lag.start()
        _say(event="started", applied=self._machine.count)
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            command, *arguments = json.loads(line)
            answer = await getattr(self, f"do_{command}")(*arguments)
            _say(answer=answer)

    async def do_load(self, count: int, in_flight: int, size: int) -> dict[str, float]:
        """Propose `count` commands of `size` bytes, at most `in_flight` at once."""
        left = count
        before, started = time.process_time(), time.monotonic()

        async def propose() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await self._propose(size)

        await asyncio.gather(*(propose() for _ in range(in_flight)))
        seconds = time.monotonic() - started
        return {"seconds": seconds, "cpu_s": time.process_time() - before}

    async def do_lone(self, count: int, size: int) -> list[float]:
        """Seconds of each of `count` proposals, one after the other with pauses between."""
        times = []
        for _ in range(count):
            started = time.perf_counter()
            await self._propose(size)
            times.append(time.perf_counter() - started)
            await asyncio.sleep(0.003)
        return times

    async def do_steady(self, per_second: float, seconds: float) -> int:
        """Propose evenly for so long; how many."""
        end = time.monotonic() + seconds
        done = 0
        while time.monotonic() < end:
            await self._propose(100)
            done += 1
            await asyncio.sleep(1 / per_second)
        return done

    async def do_applied(self) -> int:
        return self._machine.count

    async def do_leads(self) -> bool:
        status = self._log.status()
        return status.role is Role.LEADER and status.applied_index == status.last_index

    async def do_lag(self) -> list[float]:
        """99.9th percentile and largest of the last minute, seconds."""
        return [self._lag.quantile_s(0.999), self._lag.largest_s]

    async def _propose(self, size: int) -> None:
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        outcome = await self._log.propose(bytes(size), deadline)
        if not isinstance(outcome, Applied):
            raise RuntimeError(f"a proposal ended as {outcome}")

    def _on_role(self, role: Role, term: int, leader_id: int | None) -> None:
        if role is Role.LEADER:
            _say(event="leads", at=time.monotonic(), term=term)

    def _on_fatal(self, error: BaseException) -> None:
        sys.exit(f"voter {self._plan.node_id}: {error}")


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    plan = VoterPlan(**json.loads(sys.argv[1]))
    try:
        import uvloop
    except ImportError:
        loop_factory = None
    else:
        loop_factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(Voter(plan).run())


if __name__ == "__main__":
    main()
