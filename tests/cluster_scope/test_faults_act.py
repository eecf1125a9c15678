"""Every fault that the simulation knows does what it is called, to whom it should, until healed.

On three machines that beat, answer and write, in place of nodes.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from logboat.jepsen_style.clients import Journal
from logboat.jepsen_style.clients.connection import Connection
from logboat.jepsen_style.clients.primitives import Writer
from logboat.jepsen_style.clients.requests import Api
from logboat.jepsen_style.cluster_scope.disks import NodeDisk
from logboat.jepsen_style.cluster_scope.inject import Injector
from logboat.jepsen_style.cluster_scope.ledger import Ledger
from logboat.jepsen_style.cluster_scope.stage import Stage
from logboat.jepsen_style.cluster_scope.supervisor import Supervisor
from logboat.jepsen_style.cluster_scope.watched import Watch
from logboat.jepsen_style.schedule import KINDS, Fault, Target
from logboat.jepsen_style.schedule.kinds import Option
from logboat.jepsen_style.simulation import Host, World
from logboat.jepsen_style.simulation.cluster import KAFKA_PORT, Cluster
from logboat.jepsen_style.simulation.drive import SECTOR_BYTES, FileNode
from logboat.seam import SyncFailed

BEATS = 7000
BEAT_S = 0.02
SYNC_S = 0.001
PATH = "data/t-0/00000000000000000000.log"
SYNCED = bytes(range(1, 251)) * 12
UNSYNCED = b"z" * 700

AT_S = 0.2
FOR_S = 0.6
LATE_S = 0.3


class Machines(Cluster):
    """Hosts `n1` to `n3` and `client`, each with a beat to every other."""

    def __init__(self, world: World) -> None:
        super().__init__(world, nodes=3)
        self.heard: dict[tuple[str, str], list[tuple[float, float]]] = {}
        """(from, to) -> (sent, received) of each beat, on the world's clock."""
        self.resets: dict[str, int] = {}
        """By host: connections lost under it."""
        self.ticks: dict[str, list[float]] = {}
        self.asked: list[int] = []
        """API keys of the requests that reached a machine."""
        self.stopped: list[str] = []
        """Who was told by a signal to stop."""
        self.client_host.spawn(self._beat_to_all(self.client_host))

    def start(self, *numbers: int) -> None:
        for number in numbers or self.hosts:
            if not self.hosts[number].alive:
                self.hosts[number].start(self._main)

    async def _main(self, host: Host) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        await _write_once(host)
        await asyncio.start_server(partial(self._hear, host), host.name, BEATS)
        await asyncio.start_server(self._answer, host.name, KAFKA_PORT)
        work = [asyncio.create_task(self._tick(host)), asyncio.create_task(self._beat_to_all(host))]
        await stop.wait()
        self.stopped.append(host.name)
        for task in work:
            task.cancel()

    async def _tick(self, host: Host) -> None:
        while True:
            self.ticks.setdefault(host.name, []).append(self.world.now)
            await asyncio.sleep(0.01)

    async def _beat_to_all(self, host: Host) -> None:
        others = [other for other in self.hosts.values() if other is not host]
        await asyncio.gather(*(self._beat(host, other) for other in others))

    async def _beat(self, host: Host, other: Host) -> None:
        while True:
            try:
                _, writer = await asyncio.open_connection(other.name, BEATS)
                while True:
                    writer.write(f"{host.name} {self.world.now}\n".encode())
                    await writer.drain()
                    await asyncio.sleep(BEAT_S)
            except OSError:
                self.resets[host.name] = self.resets.get(host.name, 0) + 1
                await asyncio.sleep(BEAT_S)

    async def _hear(
        self, host: Host, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while line := await reader.readline():
                sender, sent = line.decode().split()
                pair = sender, host.name
                self.heard.setdefault(pair, []).append((float(sent), self.world.now))
        except OSError:
            pass
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                self.asked.append(int.from_bytes(frame[:2], "big"))
                writer.write(len(frame[4:8]).to_bytes(4, "big") + frame[4:8])
        except (OSError, EOFError):
            writer.close()


async def _write_once(host: Host) -> None:
    host.disk.make_dirs("data/t-0")
    file = host.disk.open(PATH, create=True)
    if not file.size():
        file.append([SYNCED])
        await file.sync()
        for directory in ("data/t-0", "data", "/"):
            await host.disk.sync_dir(directory)
        file.append([UNSYNCED])


class Scene:
    """A fault strikes node 1 at AT_S for FOR_S; `at` looks at a time on the way."""

    def __init__(self, world: World, kind: str, options: dict[str, Option]) -> None:
        self.world = world
        self.machines = Machines(world)
        ledger = Ledger(lambda: world.turns, lambda: world.now)
        for number, host in self.machines.hosts.items():
            ledger.disks[number] = NodeDisk(number, host.drive, ledger)
        stage = Stage(world, self.machines, Watch(world, ledger))
        self.supervisor = Supervisor(stage, sync_s=SYNC_S)
        self.injector = Injector(stage, self.supervisor, Journal(lambda: 0, ledger), sync_s=SYNC_S)
        self.machines.start()
        world.run(0.5)
        self.began = world.now
        role = "all" if kind in ("kill-all", "blackout") else "node"
        number = 1 if role == "node" else 0
        target = Target(role, number=number)
        fault = Fault(int(AT_S * 1000), kind, target, int(FOR_S * 1000), options)
        self.injector.schedule([fault])

    def at(self, seconds: float) -> None:
        self.world.run(self.began + seconds - self.world.now)

    @property
    def one(self) -> Host:
        return self.machines.hosts[1]

    def content(self) -> bytes:
        node = self.one.drive.find(PATH)
        assert isinstance(node, FileNode)
        return bytes(node.cached)

    def silent(self) -> set[tuple[str, str]]:
        """Pairs that heard nothing sent in the middle of the fault before it was healed."""
        begin, end = self.began + AT_S + 0.1, self.began + AT_S + FOR_S
        return {
            pair
            for pair, beats in self.machines.heard.items()
            if not any(begin < sent and received < end for sent, received in beats)
        }

    def lag(self, sender: str, receiver: str) -> list[float]:
        """Of the beats sent during the fault."""
        begin, end = self.began + AT_S, self.began + AT_S + FOR_S
        beats = self.machines.heard[sender, receiver]
        return [received - sent for sent, received in beats if begin < sent < end]

    def on_one(self, work: Callable[[Host], Any], *, within: float = 0.3) -> Any:
        return self.world.call(self.one, work(self.one), within=within)


Check = Callable[[Scene], None]
SILENT_ONE = {("n1", "n2"), ("n1", "n3"), ("n2", "n1"), ("n3", "n1")}
CLIENT_ONE = {("client", "n1")}
"""Machines do not beat towards the client."""


def killed(scene: Scene, *, whom: tuple[int, ...] = (1,)) -> None:
    hosts = scene.machines.hosts
    scene.at(AT_S + 0.1)
    assert [number for number, host in hosts.items() if not host.alive] == list(whom)
    assert scene.machines.stopped == []
    scene.at(AT_S + FOR_S + 0.1)
    assert all(host.alive for host in hosts.values())
    assert scene.content() == SYNCED + UNSYNCED


def paused(scene: Scene) -> None:
    scene.at(AT_S + FOR_S + 0.2)
    ticks = scene.machines.ticks["n1"]
    assert max(b - a for a, b in pairwise(ticks)) >= FOR_S
    assert scene.one.incarnation == 1


def restarted(scene: Scene) -> None:
    scene.at(AT_S + FOR_S + 1.0)
    assert scene.machines.stopped == ["n1"]
    assert scene.one.alive
    assert scene.one.incarnation == 2


def cuts(*pairs: set[tuple[str, str]]) -> Check:
    def check(scene: Scene) -> None:
        scene.at(AT_S + FOR_S + 1.0)
        assert scene.silent() == set().union(*pairs)
        late = scene.began + AT_S + FOR_S + 0.6
        assert all(beats[-1][0] > late for beats in scene.machines.heard.values())

    return check


def reset(scene: Scene) -> None:
    scene.at(AT_S + FOR_S)
    assert scene.machines.resets.keys() == {"n1", "n2", "n3", "client"}
    assert scene.machines.resets["n2"] == 1
    assert scene.silent() == set()


def slower(scene: Scene) -> None:
    scene.at(AT_S + FOR_S + 0.5)
    assert min(scene.lag("n2", "n1")) > 0.1
    assert min(scene.lag("n1", "n2")) > 0.1
    assert max(scene.lag("n2", "n3")) < 0.01


def out_of_order(scene: Scene) -> None:
    arrivals: dict[int, list[int]] = {0: [], 1: []}
    order: list[int] = []
    begin = scene.world.now

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            connection, number = map(int, line.split())
            arrivals[connection].append(number)
            order.append(number)
        writer.close()

    async def listen() -> None:
        await asyncio.start_server(hear, "client", 7001)

    async def send() -> None:
        # Both are open before the fault.
        writers = [(await asyncio.open_connection("client", 7001))[1] for _ in range(2)]
        await asyncio.sleep(begin + AT_S + 0.05 - scene.world.now)
        for number in range(20):
            writers[number % 2].write(f"{number % 2} {number}\n".encode())
            await asyncio.sleep(0.01)
        for writer in writers:
            writer.close()

    scene.machines.client_host.spawn(listen())
    scene.world.run(0.02)
    scene.one.spawn(send())
    scene.at(AT_S + FOR_S + 0.5)
    assert sorted(order) == list(range(20))
    assert order != sorted(order)
    assert all(numbers == sorted(numbers) for numbers in arrivals.values())


def ask(scene: Scene, api: Api) -> str:
    async def asking() -> str:
        connection = await Connection.open("n1", KAFKA_PORT)
        try:
            async with asyncio.timeout(0.2):
                await connection.ask(api, Writer())
        except TimeoutError:
            return "silence"
        except (OSError, EOFError):
            return "reset"
        finally:
            connection.close()
        return "answer"

    return scene.world.call(scene.machines.client_host, asking(), within=0.3)


def lost(outcome: str, *, arrived: bool) -> Check:
    def check(scene: Scene) -> None:
        scene.at(AT_S + 0.01)
        assert ask(scene, Api.METADATA) == "answer"
        assert ask(scene, Api.PRODUCE) == outcome
        assert (Api.PRODUCE in scene.machines.asked) is arrived
        scene.at(AT_S + FOR_S + 0.01)
        assert ask(scene, Api.PRODUCE) == "answer"

    return check


def late(*, arrived: bool) -> Check:
    def check(scene: Scene) -> None:
        connection = scene.world.call(scene.machines.client_host, opened(), within=0.1)

        def asking() -> float:
            scene.world.call(
                scene.machines.client_host, connection.ask(Api.PRODUCE, Writer()), within=0.5
            )
            return scene.world.now

        began = scene.world.now
        assert asking() < began + 0.01
        scene.at(AT_S + 0.01)
        # Whoever connects only now overtakes it.
        assert ask(scene, Api.PRODUCE) == "answer"
        scene.machines.asked.clear()
        began = scene.world.now
        slow = scene.machines.client_host.spawn(connection.ask(Api.PRODUCE, Writer()))
        scene.world.run(LATE_S - 0.05)
        assert (Api.PRODUCE in scene.machines.asked) is arrived
        assert not slow.done()
        scene.world.run(0.06)
        assert slow.done()
        # Only once.
        began = scene.world.now
        assert asking() < began + 0.01
        connection.close()

    return check


async def opened() -> Connection:
    return await Connection.open("n1", KAFKA_PORT)


def without_power(expected: Callable[[bytes], bool]) -> Check:
    def check(scene: Scene) -> None:
        scene.at(AT_S + 0.1)
        assert not scene.one.alive
        assert expected(scene.content())
        scene.at(AT_S + FOR_S + 0.1)
        assert scene.one.alive

    return check


def lost_unsynced(content: bytes) -> bool:
    return content == SYNCED


def kept_all(content: bytes) -> bool:
    return content == SYNCED + UNSYNCED


def a_part(content: bytes) -> bool:
    """Nothing, all, or torn at a sector, whose place may read as zeros."""
    tail = content.removeprefix(SYNCED)
    return content.startswith(SYNCED) and UNSYNCED.startswith(tail.rstrip(b"\0"))


async def _sync(host: Host) -> str:
    file = host.disk.open("data/other", create=True)
    file.append([b"x"])
    try:
        await file.sync()
    except SyncFailed:
        return "failed"
    return "synced"


async def _append(host: Host) -> str:
    try:
        host.disk.open("data/other", create=True).append([b"x" * 100])
    except OSError as error:
        return str(error.errno)
    return "written"


async def _read(host: Host) -> str:
    try:
        host.disk.open(PATH).read_at(0, 10)
    except OSError as error:
        return str(error.errno)
    return "read"


EIO, ENOSPC = "5", "28"


def fails_once(work: Callable[[Host], Any], error: str, well: str) -> Check:
    def check(scene: Scene) -> None:
        scene.at(AT_S + 0.01)
        assert scene.on_one(work) == error
        assert scene.on_one(work) == well

    return check


def full(scene: Scene) -> None:
    scene.at(AT_S + 0.01)
    assert scene.on_one(_append) == ENOSPC
    scene.at(AT_S + FOR_S + 0.01)
    assert scene.on_one(_append) == "written"


def slow(scene: Scene) -> None:
    scene.at(AT_S + 0.01)
    begin = scene.world.now
    assert scene.on_one(_sync) == "synced"
    assert scene.world.now - begin > 0.05
    scene.at(AT_S + FOR_S + 0.01)
    begin = scene.world.now
    assert scene.on_one(_sync) == "synced"
    assert scene.world.now - begin < 0.01


def damaged(expected: Callable[[bytes], bool]) -> Check:
    def check(scene: Scene) -> None:
        scene.at(AT_S + 0.1)
        assert not scene.one.alive
        assert expected(scene.content())
        assert scene.supervisor.damaged == {1: None}
        scene.at(AT_S + FOR_S + 0.1)
        assert scene.one.alive

    return check


def one_bit(content: bytes) -> bool:
    whole = SYNCED + UNSYNCED
    bits = [(a ^ b).bit_count() for a, b in zip(content, whole, strict=True)]
    return sum(bits) == 1


def one_sector(is_new: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
    def changed(content: bytes) -> bool:
        whole = SYNCED + UNSYNCED
        places = range(0, len(whole), SECTOR_BYTES)
        new = [
            content[place : place + SECTOR_BYTES]
            for place in places
            if content[place : place + SECTOR_BYTES] != whole[place : place + SECTOR_BYTES]
        ]
        return len(content) == len(whole) and len(new) == 1 and is_new(new[0])

    return changed


def zeros(sector: bytes) -> bool:
    return not any(sector)


def from_elsewhere(sector: bytes) -> bool:
    return sector in SYNCED + UNSYNCED


def wiped(scene: Scene) -> None:
    scene.at(AT_S + 0.1)
    assert scene.one.drive.files() == {}
    assert scene.machines.hosts[2].drive.files()
    scene.at(AT_S + FOR_S + 0.1)
    assert scene.one.alive


def stepped(scene: Scene) -> None:
    def ahead() -> float:
        return scene.one.wall_time() - scene.machines.hosts[2].wall_time()

    scene.at(AT_S + 0.1)
    assert ahead() == pytest.approx(3600)
    scene.at(AT_S + FOR_S + 0.1)
    assert ahead() == pytest.approx(0)


def skewed(scene: Scene) -> None:
    scene.at(AT_S + 0.01)
    monotonic, wall = scene.one.to_host_time(scene.world.now), scene.one.wall_time()
    scene.world.run(0.1)
    assert scene.one.to_host_time(scene.world.now) - monotonic == pytest.approx(0.15)
    assert scene.one.wall_time() - wall == pytest.approx(0.15)
    scene.at(AT_S + FOR_S + 0.01)
    assert scene.one.rate == 1.0


CASES: list[tuple[str, dict[str, Option], Check]] = [
    ("kill", {}, killed),
    ("kill-all", {}, partial(killed, whom=(1, 2, 3))),
    ("pause", {}, paused),
    ("stall", {}, paused),
    ("restart", {}, restarted),
    ("isolate", {"direction": "both"}, cuts(SILENT_ONE)),
    ("isolate", {"direction": "in"}, cuts({("n2", "n1"), ("n3", "n1")})),
    ("isolate", {"direction": "out"}, cuts({("n1", "n2"), ("n1", "n3")})),
    ("isolate", {"clients": True}, cuts(SILENT_ONE, CLIENT_ONE)),
    ("halves", {"clients": True}, cuts(SILENT_ONE, CLIENT_ONE)),
    ("ring", {}, cuts({("n1", "n2"), ("n2", "n3"), ("n3", "n1")})),
    ("bridge", {}, cuts({("n2", "n3"), ("n3", "n2")})),
    ("clients-cut", {}, cuts(CLIENT_ONE)),
    ("reset", {}, reset),
    ("delay", {"latency_ms": 110, "jitter_ms": 10}, slower),
    ("loss", {"chance": 1.0}, slower),
    ("reorder", {"jitter_ms": 300}, out_of_order),
    ("lost-responses", {"silently": True}, lost("silence", arrived=True)),
    ("lost-responses", {"silently": False}, lost("reset", arrived=True)),
    ("lost-requests", {"silently": True}, lost("silence", arrived=False)),
    ("lost-requests", {"silently": False}, lost("reset", arrived=False)),
    ("late-responses", {"by_ms": LATE_S * 1000}, late(arrived=True)),
    ("late-requests", {"by_ms": LATE_S * 1000}, late(arrived=False)),
    ("power-cut", {"keep": "none"}, without_power(lost_unsynced)),
    ("power-cut", {"keep": "all"}, without_power(kept_all)),
    ("power-cut", {"keep": "prefix"}, without_power(a_part)),
    ("blackout", {"keep": "any"}, without_power(a_part)),
    ("failed-sync", {}, fails_once(_sync, "failed", "synced")),
    ("write-error", {}, fails_once(_append, EIO, "written")),
    ("read-error", {}, fails_once(_read, EIO, "read")),
    ("full-disk", {}, full),
    ("slow-disk", {"sync_ms": 200}, slow),
    ("bit-flip", {"where": 0.3, "bit": 3}, damaged(one_bit)),
    ("misdirected-write", {"where": 0.3}, damaged(one_sector(from_elsewhere))),
    ("stale-block", {"where": 0.3}, damaged(one_sector(zeros))),
    ("wiped-disk", {}, wiped),
    ("clock-step", {"seconds": 3600.0}, stepped),
    ("clock-skew", {"rate": 1.5}, skewed),
]


@pytest.mark.parametrize(
    ("kind", "options", "check"),
    CASES,
    ids=[" ".join([kind, *(f"{n}={v}" for n, v in options.items())]) for kind, options, _ in CASES],
)
def test_a_fault_does_what_it_is_called(
    kind: str, options: dict[str, Option], check: Check
) -> None:
    with World(3) as world:
        scene = Scene(world, kind, options)
        check(scene)
        assert scene.injector.coverage.kinds == {kind}


def test_the_disk_that_is_damaged_is_always_the_same_one() -> None:
    with World(3) as world:
        scene = Scene(world, "wiped-disk", {})
        more = [Fault(900 * n, "bit-flip", Target("node", number=1 + n), 300) for n in (1, 2)]
        scene.injector.schedule(more)
        scene.at(3.0)
        assert scene.supervisor.damaged == {1: None}
        assert [host.incarnation for host in scene.machines.hosts.values()] == [4, 1, 1]


def test_no_fault_of_the_simulation_is_left_out() -> None:
    simulated = {name for name, kind in KINDS.items() if kind.simulated}
    assert {kind for kind, _, _ in CASES} == simulated


def test_torn_writes_are_among_what_a_power_cut_leaves() -> None:
    left: set[int] = set()

    def every_sort() -> bool:
        torn = any(0 < length < len(UNSYNCED) for length in left)
        return torn and {0, len(UNSYNCED)} <= left

    for seed in range(40):
        with World(seed) as world:
            scene = Scene(world, "power-cut", {"keep": "any"})
            scene.at(AT_S + 0.1)
            content = scene.content()
            assert a_part(content)
            left.add(len(content.rstrip(b"\0")) - len(SYNCED))
        if every_sort():
            break
    assert every_sort()
