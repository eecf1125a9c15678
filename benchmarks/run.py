"""Start-up, footprint, time without a leader, and one producer's throughput.

    python benchmarks/run.py [--rounds 5] [--kills 10] [--write]

Rounds are interleaved: every figure is taken once per round, so that a busy minute of the machine
spoils one round and not one figure. `--write` puts the table into docs/NUMBERS.md.
"""

from __future__ import annotations

import argparse
import compileall
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from figures import Figure, machine, table, tell
from wire_client import WireClient

import logboat
from logboat.client.cluster.ports import free_ports
from logboat.testing import LocalCluster
from logboat.wire import ErrorCode

HERE = Path(__file__).parent
NODE = [sys.executable, "-m", "logboat.node"]
DISCARDING = [sys.executable, str(HERE / "discarding_node.py")]
IDLE_S = 10.0
RECORD = bytes(1024)
RECORDS = 300_000
TICKS_PER_S = 100


def compile_as_installed() -> None:
    """Installing compiles the package; a checkout may never have been, where an environment keeps
    Python from writing bytecode, and every start would then compile 200 files anew."""
    for part in Path(logboat.__path__[0]).iterdir():
        if part.is_dir():
            compileall.compile_dir(part.resolve(), quiet=2)


@contextmanager
def single_node(program: list[str], **settings: str) -> Iterator[tuple[str, int, float]]:
    """(host, port, loop time of the process's start) of a fresh node; killed at the end."""
    with tempfile.TemporaryDirectory() as directory:
        (ports,) = free_ports(1)
        lines = {
            "node.id": "1",
            "cluster.id": "benchmark",
            "listeners": f"PLAINTEXT://127.0.0.1:{ports.kafka},INTERNODE://127.0.0.1:{ports.quorum}",
            "controller.quorum.voters": f"1@127.0.0.1:{ports.quorum}",
            "log.dirs": f"{directory}/data",
            "default.replication.factor": "1",
            "offsets.topic.replication.factor": "1",
            **settings,
        }
        config = Path(directory) / "node.toml"
        config.write_text("".join(f'"{name}" = "{value}"\n' for name, value in lines.items()))
        started = time.monotonic()
        with open(Path(directory) / "node.log", "wb") as log:
            process = subprocess.Popen([*program, "--config", str(config)], stderr=log, stdout=log)
        try:
            yield "127.0.0.1", ports.kafka, started
        finally:
            process.kill()
            process.wait()


def acknowledged(client: WireClient, topic: str) -> bool:
    return client.produce(topic, b"x") == ErrorCode.NONE


def wait_for_ack(host: str, port: int, topic: str, *, deadline_s: float = 20.0) -> None:
    """Until a record is acknowledged, whatever happens on the way."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        try:
            client = WireClient(host, port)
            try:
                while time.monotonic() < end:
                    if client.leader_of(topic) is not None and acknowledged(client, topic):
                        return
                    time.sleep(0.002)
            finally:
                client.close()
        except OSError:
            time.sleep(0.002)
    raise TimeoutError(f"no acknowledgement from {host}:{port} in {deadline_s} s")


def first_ack() -> float:
    with single_node(NODE) as (host, port, started):
        wait_for_ack(host, port, "first")
        return time.monotonic() - started


def three_ready() -> tuple[float, float, float]:
    """(seconds until `cluster up --detach` returns, idle RssAnon MiB, idle CPU %): worst node."""
    with tempfile.TemporaryDirectory() as directory:
        cli = [str(Path(sys.executable).with_name("logboat")), "cluster"]
        where = ["--data-dir", f"{directory}/d"]
        started = time.monotonic()
        up = [*cli, "up", "--detach", "--any-port", *where]
        subprocess.run(up, check=True, capture_output=True)
        seconds = time.monotonic() - started
        try:
            pids = node_pids(f"{directory}/d")
            time.sleep(3.0)
            before = [cpu_ticks(pid) for pid in pids]
            time.sleep(IDLE_S)
            used = [cpu_ticks(pid) - b for pid, b in zip(pids, before, strict=True)]
            cpu = 100 * max(used) / TICKS_PER_S / IDLE_S
            return seconds, max(rss_anon_mib(pid) for pid in pids), cpu
        finally:
            subprocess.run([*cli, "down", *where], check=True, capture_output=True)


def node_pids(data_dir: str) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if b"logboat.node" in command and data_dir.encode() in command:
                found.append(int(process.name))
    return found


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def rss_anon_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"no RssAnon for {pid}")


def leaderless(cluster: LocalCluster, topic: str, *, with_controller: bool) -> float | None:
    """Seconds from SIGKILL of a partition's leader to the next leader's first acknowledgement.

    None when no partition's leader is (or is not) the active controller, as asked.
    """
    controller = quorum_leader(cluster)
    for partition in range(6):
        leader = cluster.leader_of(topic, partition)
        if (leader == controller) is with_controller:
            break
    else:
        return None
    others = [n for n in cluster.node_ids if n != leader]
    addresses = [cluster.node(n).kafka.rpartition(":") for n in others]
    clients = [WireClient(host, int(port)) for host, _, port in addresses]
    killed = time.monotonic()
    cluster.kill(leader)
    try:
        while time.monotonic() < killed + 30:
            for client in clients:
                if client.produce(topic, b"x", partition=partition) == ErrorCode.NONE:
                    return time.monotonic() - killed
            time.sleep(0.005)
        raise TimeoutError("no leader in 30 s")
    finally:
        for client in clients:
            client.close()
        cluster.start(leader)
        cluster.wait_in_sync(topic)


def quorum_leader(cluster: LocalCluster) -> int:
    answer = cluster.get("/api/v1/cluster")
    assert answer is not None
    return int(answer.body["controller_id"])


def leaderless_times(kills: int) -> tuple[list[float], list[float]]:
    """(the controller survives, the controller dies too)."""
    survives: list[float] = []
    dies: list[float] = []
    with LocalCluster(nodes=3) as cluster:
        body = {"name": "kills", "partitions": 6}
        cluster.post("/api/v1/topics", body)
        cluster.wait_in_sync("kills")
        for _ in range(kills * 3):
            for times, with_controller in ((survives, False), (dies, True)):
                if len(times) < kills:
                    seconds = leaderless(cluster, "kills", with_controller=with_controller)
                    if seconds is not None:
                        times.append(seconds)
            if len(survives) >= kills and len(dies) >= kills:
                break
    return survives, dies


def throughput(program: list[str], *, synced: bool) -> float:
    """MB/s of one librdkafka producer, acks=1, 1 KiB records."""
    mode = "1" if synced else "9223372036854775807"
    with single_node(program, **{"log.flush.interval.messages": mode}) as (host, port, _):
        wait_for_ack(host, port, "throughput")
        producer = Producer(
            {
                "bootstrap.servers": f"{host}:{port}",
                "acks": "1",
                "linger.ms": 5,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": 200_000,
                "queue.buffering.max.kbytes": 1_000_000,
            }
        )
        started = time.monotonic()
        for number in range(RECORDS):
            while True:
                try:
                    producer.produce("throughput", RECORD, partition=0)
                    break
                except BufferError:
                    producer.poll(0.01)
            if number % 1_000 == 0:
                producer.poll(0)
        left = producer.flush(120)
        seconds = time.monotonic() - started
        assert left == 0, f"{left} records were not acknowledged"
        return RECORDS * len(RECORD) / 1e6 / seconds


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    compile_as_installed()

    ack = Figure("first ack, single node", "s", "0.5 s after process start")
    ready = Figure("3 nodes ready", "s", "2 s")
    rss = Figure("idle RssAnon, worst node", "MiB", "60 MiB")
    cpu = Figure("idle CPU, worst node", "% of a core", "3 %")
    survives = Figure("without leader, controller survives", "s", "worst 1.5 s")
    dies = Figure("without leader, controller dies too", "s", "worst 3 s")
    page = Figure("producer, page-cache mode", "MB/s", "60 % of discarding")
    sync = Figure("producer, synced mode", "MB/s", "40 % of discarding")
    ceiling = Figure("producer, discarding disk, no CRC", "MB/s", "the ceiling")

    for round_number in range(arguments.rounds):
        print(f"round {round_number + 1} of {arguments.rounds}", file=sys.stderr)
        ack.values.append(first_ack())
        for figure, value in zip((ready, rss, cpu), three_ready(), strict=True):
            figure.values.append(value)
        ceiling.values.append(throughput(DISCARDING, synced=False))
        page.values.append(throughput(NODE, synced=False))
        sync.values.append(throughput(NODE, synced=True))
    if arguments.kills:
        survives.values, dies.values = leaderless_times(arguments.kills)

    text = (
        f"Machine: {machine()}. Client and nodes share it. `benchmarks/run.py`, "
        f"{arguments.rounds} interleaved rounds; kills: every one counted.\n\n"
        + table([ack, ready, rss, cpu, survives, dies, page, sync, ceiling])
    )
    tell("First light", text, write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
