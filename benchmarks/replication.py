"""How fast a replica that missed 1 GB catches up, against a pipe of two processes.

    python benchmarks/replication.py [--rounds 3] [--megabytes 1000] [--kills 10] [--write]

The pipe does what cannot be left out: one process reads the same segments and sends them over
loopback, the other checks every batch's CRC32C and writes and fdatasyncs each 8 MiB. Both are timed
from the first byte to the last; the replica until it is back in the ISR. CPU seconds stand beside
each, for a machine that others use too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from confluent_kafka import Producer
from figures import Figure, machine, table, tell
from run import compile_as_installed, cpu_ticks, leaderless_times

from logboat.seam.checksum import crc32c
from logboat.testing import LocalCluster
from logboat.wire.records import HEADER_SIZE, OVERHEAD, parse_header

TOPIC = "missed"
SYNC_BYTES = 8 << 20
RECORD = bytes(1000)
TICKS_PER_S = 100
CRC_FROM = 21


@dataclass(frozen=True)
class Copying:
    seconds: float
    cpu_seconds: float
    megabytes: float

    @property
    def rate(self) -> float:
        """MB/s."""
        return self.megabytes / self.seconds


# The replica


def rejoin(megabytes: int, settings: dict[str, str]) -> tuple[Copying, Copying]:
    """(the replica, the pipe over the leader's segments)."""
    with LocalCluster(nodes=3, settings=settings) as cluster:
        body = {"name": TOPIC, "partitions": 1, "replication_factor": 3}
        body["configs"] = {"segment.bytes": str(1 << 30)}
        answer = cluster.post("/api/v1/topics", body)
        assert answer is not None
        assert answer.status == 201, answer
        cluster.wait_in_sync(TOPIC)
        leader = cluster.leader_of(TOPIC, 0)
        controller = controller_of(cluster)
        late = next(n for n in cluster.node_ids if n not in (leader, controller))
        cluster.kill(late)
        produce(cluster.bootstrap_servers, megabytes)
        end = local(cluster, leader)["log_end_offset"]
        cluster.start(late, wait=False)
        cluster.wait_until(
            lambda: None if (here := local(cluster, late)) and here["log_end_offset"] else "empty",
            "the first records on the replica",
        )
        began, cpu = time.monotonic(), used(cluster, leader, late)
        begin_offset = local(cluster, late)["log_end_offset"]
        cluster.wait_in_sync(TOPIC, 300)
        seconds, cpu = time.monotonic() - began, used(cluster, leader, late) - cpu
        segments = sorted(Path(cluster.data_dir(leader), f"{TOPIC}-0").glob("*.log"))
        size = sum(path.stat().st_size for path in segments) / 1e6
        replica = Copying(seconds, cpu, size * (end - begin_offset) / end)
        return replica, pipe(segments)


def controller_of(cluster: LocalCluster) -> int:
    answer = cluster.get("/api/v1/cluster")
    assert answer is not None
    return int(answer.body["controller_id"])


def local(cluster: LocalCluster, node_id: int) -> dict[str, int]:
    """What the node says of its own replica; empty while it says nothing."""
    answer = cluster.get(f"/api/v1/topics/{TOPIC}", node_id=node_id)
    if answer is None or answer.status != 200:
        return {}
    found: dict[str, int] = answer.body["partitions"][0]["local"] or {}
    return found


def used(cluster: LocalCluster, *node_ids: int) -> float:
    return sum(cpu_ticks(cluster.pid(node_id)) for node_id in node_ids) / TICKS_PER_S


def produce(bootstrap_servers: str, megabytes: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "acks": "1",
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "queue.buffering.max.kbytes": 200_000,
            "message.timeout.ms": 300_000,
        }
    )
    for _ in range(megabytes * 1_000_000 // len(RECORD)):
        while True:
            try:
                producer.produce(TOPIC, RECORD, partition=0)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(300) == 0


# The pipe


def pipe(segments: list[Path]) -> Copying:
    listener = socket.create_server(("127.0.0.1", 0))
    ours, theirs = multiprocessing.Pipe()
    before = os.times()
    context = multiprocessing.get_context("fork")
    reader = context.Process(target=send_segments, args=(segments, listener.getsockname()))
    writer = context.Process(target=receive_segments, args=(listener, segments[0].parent, theirs))
    writer.start()
    reader.start()
    seconds, size = ours.recv()
    reader.join()
    writer.join()
    after = os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    listener.close()
    return Copying(seconds, cpu, size / 1e6)


def send_segments(segments: list[Path], address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        for path in segments:
            with open(path, "rb", buffering=0) as file:
                while data := file.read(SYNC_BYTES):
                    connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)


def receive_segments(listener: socket.socket, folder: Path, result: Connection) -> None:
    connection, _ = listener.accept()
    began, size = time.monotonic(), 0
    buffer, held = bytearray(2 * SYNC_BYTES), 0
    view = memoryview(buffer)
    with tempfile.TemporaryFile(dir=folder) as file:
        while True:
            count = connection.recv_into(view[held:])
            held += count
            size += count
            if held >= SYNC_BYTES or not count:
                whole = check_batches(view[:held])
                os.write(file.fileno(), view[:whole])
                os.fdatasync(file.fileno())
                rest = bytes(view[whole:held])
                view[: len(rest)] = rest
                held = len(rest)
            if not count:
                break
    result.send((time.monotonic() - began, size))


def check_batches(data: memoryview) -> int:
    """Where the last whole batch ends."""
    position = 0
    while len(data) - position >= HEADER_SIZE:
        header = parse_header(data, position)
        after = position + header.batch_length + OVERHEAD
        if after > len(data) or header.batch_length <= 0:
            break
        assert crc32c(data[position + CRC_FROM : after]) == header.crc
        position = after
    return position


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    compile_as_installed()
    settings = dict(setting.split("=", 1) for setting in arguments.setting)

    replica = Figure("replica catches up", "MB/s", "")
    reference = Figure("pipe of two processes", "MB/s", "the reference")
    ratio = Figure("replica / pipe", "", "0.3")
    replica_cpu = Figure("CPU of leader and replica", "s per GB", "")
    pipe_cpu = Figure("CPU of the pipe", "s per GB", "")
    survives = Figure("without leader, controller survives", "s", "worst 1.5 s")
    dies = Figure("without leader, controller dies too", "s", "worst 3 s")
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
        ours, theirs = rejoin(arguments.megabytes, settings)
        replica.values.append(ours.rate)
        reference.values.append(theirs.rate)
        ratio.values.append(ours.rate / theirs.rate)
        replica_cpu.values.append(1_000 * ours.cpu_seconds / ours.megabytes)
        pipe_cpu.values.append(1_000 * theirs.cpu_seconds / theirs.megabytes)
    if arguments.kills:
        survives.values, dies.values = leaderless_times(arguments.kills)
    text = (
        f"Machine: {machine()}. `benchmarks/replication.py`, {arguments.megabytes} MB missed, "
        f"{arguments.rounds} rounds; kills: every one counted.\n\n"
        + table([replica, reference, ratio, replica_cpu, pipe_cpu, survives, dies])
    )
    tell("Replication", text, write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
