"""The HTTP API: lines produced over one connection, and how soon an event follows its record.

    python benchmarks/http_api.py [--rounds 3] [--records 300000] [--write]

Lines are 100-byte values as NDJSON over one connection, page-cache mode; every verdict is read.
CPU seconds of the nodes stand beside each rate, for a machine that others use too.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
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


SO_TIMESTAMPNS = 35
"""Linux: each `recvmsg` says when the kernel received the last of its bytes. Python has no name for
it."""

PATIENCE_S = 60.0


@dataclass
class Delays:
    """Milliseconds, one for each reader of each record."""

    events: list[float]
    """From before the request of a record until the kernel had its event."""
    own: list[float]
    """From there until this program read it; not in `events`, and no affair of the nodes."""


class Readers:
    """Server-sent events of one topic, many readers side by side.

    When an event came is the kernel's word, so that this program's own slowness does not count as
    the nodes'. The value of a record is the time at which it was sent.
    """

    def __init__(self) -> None:
        self.delays = Delays([], [])
        self.opened = 0
        self._selector = selectors.DefaultSelector()

    def open(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        connection = socket.create_connection((host, int(port)))
        connection.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        connection.sendall(
            f"GET /api/v1/topics/{TOPIC}/tail HTTP/1.1\r\nHost: {host}:{port}\r\n"
            "Accept: text/event-stream\r\n\r\n".encode()
        )
        self._selector.register(connection, selectors.EVENT_READ, bytearray())

    def watch(self, connection: socket.socket) -> None:
        """`read_until` returns when there is something to read here, too."""
        self._selector.register(connection, selectors.EVENT_READ)

    def read_until(self, due: float) -> bool:
        """What comes until then (monotonic time); True as soon as the watched connection has
        something."""
        while True:
            for key, _ in self._selector.select(max(0.0, due - time.monotonic())):
                if key.data is None:
                    return True
                assert isinstance(key.fileobj, socket.socket)
                self._take(key.fileobj, key.data)
            if time.monotonic() >= due:
                return False

    def _take(self, connection: socket.socket, left: bytearray) -> None:
        data, ancillary, _, _ = connection.recvmsg(1 << 16, 64)
        assert data, "a node closed a tail"
        ((_, _, stamp),) = ancillary
        seconds, nanoseconds = struct.unpack("qq", stamp)
        came = seconds * 10**9 + nanoseconds
        now = time.time_ns()
        left += data
        *lines, rest = left.split(b"\n")
        left[:] = rest
        mark = b'"value":"'
        for line in lines:
            if line.startswith(b"event: open"):
                self.opened += 1
            elif (at := line.find(mark)) >= 0:
                sent = int(line[at + len(mark) :].partition(b'"')[0])
                self.delays.events.append((came - sent) / 1e6)
                self.delays.own.append((now - came) / 1e6)

    def close(self) -> None:
        """The nodes hear of it: a tail that stays open is served on."""
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()


def events(cluster: LocalCluster, readers: int, records: int, interval_s: float) -> Delays:
    """Records one after the other, each when the one before is acknowledged and `interval_s` after
    it was sent at the earliest; every reader of every record is waited for."""
    leader = cluster.leader_of(TOPIC, 0)
    others = [n for n in cluster.node_ids if n != leader] or [leader]
    everyone = Readers()
    host, _, port = cluster.node(leader).http.rpartition(":")
    with closing(everyone), socket.create_connection((host, int(port))) as producer:
        for number in range(readers):
            everyone.open(cluster.node(others[number % len(others)]).http)
        _until(lambda: everyone.opened == readers, everyone)
        everyone.watch(producer)
        for _ in range(records):
            due = time.monotonic() + interval_s
            body = b'{"records":[{"value":"%d"}]}' % time.time_ns()
            producer.sendall(
                f"POST /api/v1/topics/{TOPIC}/records HTTP/1.1\r\nHost: {host}:{port}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            assert everyone.read_until(time.monotonic() + PATIENCE_S), "no answer to a record"
            answer = producer.recv(1 << 16)
            assert b" 200 " in answer.partition(b"\r\n")[0], answer
            assert answer.endswith(b"}\n"), "an answer came in pieces"
            everyone.read_until(due)
        _until(lambda: len(everyone.delays.events) == readers * records, everyone)
    return everyone.delays


def _until(done: Callable[[], bool], everyone: Readers) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end, "not all events came"
        everyone.read_until(time.monotonic() + 0.05)


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
    own = Figure("reading it here, 10 readers, p99, not in these", "ms", "")
    own_many = Figure("reading it here, 500 readers, p99, not in these", "ms", "")
    with cluster_with_topic(3) as cluster:
        events(cluster, 1, 100, 0.01)
        for _ in range(arguments.rounds):
            for readers, records, interval_s, figure, own_figure in (
                (10, 300, 0.01, soon, own),
                (500, 30, 0.2, many, own_many),
            ):
                delays = events(cluster, readers, records, interval_s)
                figure.values.append(percentile(delays.events, 0.99))
                own_figure.values.append(percentile(delays.own, 0.99))
    text = (
        f"Machine: {machine()}. Client and nodes share it. `benchmarks/http_api.py`, "
        f"{arguments.records:,} records of 100 bytes over one connection, {arguments.rounds} "
        "rounds. Events: acks=all on 3 nodes, readers at the two that do not lead; from before the "
        "request until the reader's kernel has the event.\n\n"
        + table([one, one_cpu, three, three_cpu, soon, many, own, own_many])
    )
    tell("HTTP", text, write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
