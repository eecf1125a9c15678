"""The HTTP API: lines produced over one connection, and how soon an event follows its record.

    python benchmarks/http_api.py [--rounds 3] [--records 300000] [--write]

Lines are 100-byte values as NDJSON over one connection, page-cache mode; every verdict is read.
CPU seconds of the nodes stand beside each rate, for a machine that others use too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from figures import Figure, machine, table, tell
from run import compile_as_installed, cpu_ticks

from logboat.testing import LocalCluster

TOPIC = "lines"
VALUE = "x" * 100
PIECE_LINES = 500
TICKS_PER_S = 100
PAGE_CACHE = {"flush.messages": str(2**63 - 1)}


@dataclass(frozen=True)
class Rate:
    records_per_s: float
    node_cpu_s_per_million: float


@contextmanager
def cluster_with_topic(nodes: int, partitions: int = 1) -> Iterator[LocalCluster]:
    with LocalCluster(nodes=nodes) as cluster:
        body = {"name": TOPIC, "partitions": partitions, "configs": PAGE_CACHE}
        answer = cluster.post("/api/v1/topics", body)
        assert answer is not None
        assert answer.status == 201, answer
        cluster.wait_in_sync(TOPIC)
        yield cluster


def produce(cluster: LocalCluster, node_id: int, records: int) -> Rate:
    """Over one connection to that node; raises AssertionError unless every line was applied."""
    line = json.dumps({"value": VALUE}, separators=(",", ":")).encode() + b"\n"
    piece = line * PIECE_LINES
    chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
    host, _, port = cluster.node(node_id).http.rpartition(":")
    head = (
        f"POST /api/v1/topics/{TOPIC}/records HTTP/1.1\r\nHost: {host}:{port}\r\n"
        "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    before = cpu(cluster)
    started = time.monotonic()
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode())

        def send() -> None:
            for _ in range(records // PIECE_LINES):
                connection.sendall(chunk)
            connection.sendall(b"0\r\n\r\n")

        sender = threading.Thread(target=send)
        sender.start()
        applied = count_applied(connection)
        sender.join()
    seconds = time.monotonic() - started
    assert applied == records, f"{applied} of {records} lines were applied"
    return Rate(records / seconds, (cpu(cluster) - before) / records * 1e6)


def count_applied(connection: socket.socket) -> int:
    """Reads to the end of the answer."""
    word, end = b'"applied"', b"0\r\n\r\n"
    count, tail = 0, b""
    while not tail.endswith(end):
        data = connection.recv(1 << 18)
        assert data, "the node closed the connection"
        text = tail + data
        count += text.count(word) - tail.count(word)
        tail = text[-len(word) :]
    return count


# Tails


class Readers:
    """Server-sent events of one topic, many readers on one loop; each notes how old records were
    when they came. The value of a record is the monotonic time at which it was sent."""

    def __init__(self) -> None:
        self.delays_ms: list[float] = []
        self.opened = 0
        self.tasks: list[asyncio.Task[None]] = []

    async def read(self, host: str, port: int) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(
            f"GET /api/v1/topics/{TOPIC}/tail HTTP/1.1\r\nHost: {host}:{port}\r\n"
            "Accept: text/event-stream\r\n\r\n".encode()
        )
        mark = b'"value":"'
        while line := await reader.readline():
            if line.startswith(b"event: open"):
                self.opened += 1
            at = line.find(mark)
            if at >= 0:
                sent = float(line[at + len(mark) :].partition(b'"')[0])
                self.delays_ms.append((time.monotonic() - sent) * 1_000)


async def events(
    cluster: LocalCluster, readers: int, records: int, interval_s: float
) -> list[float]:
    """Delays in milliseconds from before the request of a record to its event, for each reader;
    every reader of every record is waited for."""
    leader = cluster.leader_of(TOPIC, 0)
    others = [n for n in cluster.node_ids if n != leader] or [leader]
    everyone = Readers()
    for number in range(readers):
        host, _, port = cluster.node(others[number % len(others)]).http.rpartition(":")
        everyone.tasks.append(asyncio.create_task(everyone.read(host, int(port))))
    async with asyncio.timeout(60):
        while everyone.opened < readers:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    host, _, port = cluster.node(leader).http.rpartition(":")
    answers, writer = await asyncio.open_connection(host, int(port))
    for _ in range(records):
        body = b'{"records":[{"value":"%.6f"}]}' % time.monotonic()
        writer.write(
            f"POST /api/v1/topics/{TOPIC}/records HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await answers.readuntil(b"\r\n\r\n")
        assert b" 200 " in head, head
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        await answers.readexactly(length)
        await asyncio.sleep(interval_s)
    async with asyncio.timeout(60):
        while len(everyone.delays_ms) < readers * records:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    for task in everyone.tasks:
        task.cancel()
    await asyncio.wait(everyone.tasks)
    return everyone.delays_ms


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def cpu(cluster: LocalCluster) -> float:
    return sum(cpu_ticks(cluster.pid(node_id)) for node_id in cluster.node_ids) / TICKS_PER_S


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    compile_as_installed()

    one = Figure("lines, 1 node", "records/s", "100,000")
    one_cpu = Figure("CPU of the node", "s per million", "")
    three = Figure("lines, 3 nodes, acks=all", "records/s", "33,000")
    three_cpu = Figure("CPU of the 3 nodes", "s per million", "")
    for figure, cpu_figure, nodes in ((one, one_cpu, 1), (three, three_cpu, 3)):
        with cluster_with_topic(nodes) as cluster:
            leader = cluster.leader_of(TOPIC, 0)
            produce(cluster, leader, 20_000)
            for _ in range(arguments.rounds):
                rate = produce(cluster, leader, arguments.records)
                figure.values.append(rate.records_per_s)
                cpu_figure.values.append(rate.node_cpu_s_per_million)
    soon = Figure("record to event, 10 readers, p99", "ms", "50 ms")
    many = Figure("record to event, 500 readers, p99", "ms", "none")
    with cluster_with_topic(3) as cluster:
        asyncio.run(events(cluster, 1, 20, 0.01))
        for _ in range(arguments.rounds):
            soon.values.append(percentile(asyncio.run(events(cluster, 10, 300, 0.01)), 0.99))
            many.values.append(percentile(asyncio.run(events(cluster, 500, 30, 0.2)), 0.99))
    text = (
        f"Machine: {machine()}. Client and nodes share it. `benchmarks/http_api.py`, "
        f"{arguments.records:,} records of 100 bytes over one connection, {arguments.rounds} "
        "rounds. Events: acks=all on 3 nodes, readers at the two that do not lead.\n\n"
        + table([one, one_cpu, three, three_cpu, soon, many])
    )
    tell("HTTP", text, write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
