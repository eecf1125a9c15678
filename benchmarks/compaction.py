"""Produce latency while a large log is compacted, against a quiet node.

    python benchmarks/compaction.py [--gib 1.0] [--record-bytes 1024] [--codec none] [--write]

One node, synced mode. A compacted topic is filled and left alone; a client sends one record at a
time to another topic, a hundred times a second, and its latencies are taken. Then the topic may be
compacted, and they are taken again until the cleaner's checkpoint says that it is done.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic
from figures import Figure, machine, table, write_section
from run import NODE, compile_as_installed, single_node, wait_for_ack
from wire_client import WireClient

from logboat.wire import ErrorCode

TABLE = "table"
PROBE = "probe"
KEYS = 100_000
QUIET_S = 20.0
INTERVAL_S = 0.01
LONGEST_S = 900.0


def fill(server: str, size: int, record_bytes: int, codec: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": server,
            "compression.type": codec,
            "linger.ms": 20,
            "batch.size": 100_000,
            "queue.buffering.max.kbytes": 200_000,
        }
    )
    value = bytes(range(256)) * (record_bytes // 256) or bytes(record_bytes)
    for number in range(size // record_bytes):
        while True:
            try:
                producer.produce(TABLE, value, key=b"key-%d" % (number * 7919 % KEYS))
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


def latencies(client: WireClient, until: Callable[[], bool]) -> list[float]:
    """Seconds of one produce after the other, begun at a steady rate."""
    found = []
    due = time.perf_counter()
    while not until():
        due = max(due + INTERVAL_S, time.perf_counter())
        time.sleep(max(0.0, due - time.perf_counter()))
        began = time.perf_counter()
        error = client.produce(PROBE, bytes(1024))
        found.append(time.perf_counter() - began)
        assert error == ErrorCode.NONE, ErrorCode(error)
    return found


def p99_ms(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[-1] * 1000


def cleaned_offset(data: Path) -> int:
    path = data / "cleaner-offset-checkpoint"
    if not path.exists():
        return 0
    for line in path.read_text().splitlines()[2:]:
        topic, _, offset = line.split()
        if topic == TABLE:
            return int(offset)
    return 0


def measure(size: int, record_bytes: int, codec: str) -> list[Figure]:
    with TemporaryDirectory() as root:
        data = Path(root) / "data"
        settings = {"log.cleaner.backoff.ms": "200", "log.dirs": str(data)}
        return _measured(settings, data, size, record_bytes, codec)


def _measured(
    settings: dict[str, str], data: Path, size: int, record_bytes: int, codec: str
) -> list[Figure]:
    with single_node(NODE, **settings) as (host, port, _):
        server = f"{host}:{port}"
        wait_for_ack(host, port, "ready")
        admin = AdminClient({"bootstrap.servers": server})
        waiting = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "1.0",
            "segment.bytes": str(max(size // 16, 1 << 20)),
        }
        topics = [NewTopic(TABLE, 1, 1, config=waiting), NewTopic(PROBE, 1, 1)]
        for made in admin.create_topics(topics).values():
            made.result()
        fill(server, size, record_bytes, codec)
        client = WireClient(host, port)
        before = sum(path.stat().st_size for path in (data / f"{TABLE}-0").glob("*.log"))
        end = time.perf_counter() + QUIET_S
        quiet = latencies(client, lambda: time.perf_counter() >= end)
        now = ConfigResource(
            ConfigResource.Type.TOPIC,
            TABLE,
            incremental_configs=[
                ConfigEntry(
                    "min.cleanable.dirty.ratio",
                    "0.0",
                    incremental_operation=AlterConfigOpType.SET,
                )
            ],
        )
        began = time.perf_counter()
        for done in admin.incremental_alter_configs([now]).values():
            done.result()
        latest = time.perf_counter() + LONGEST_S
        busy = latencies(client, lambda: cleaned_offset(data) > 0 or time.perf_counter() >= latest)
        took = time.perf_counter() - began
        assert cleaned_offset(data) > 0, f"not compacted within {LONGEST_S} s"
    figures = [
        Figure("p99 of a produce, quiet", "ms", ""),
        Figure("p99 of a produce while compacting", "ms", "at most twice the quiet one"),
        Figure("compaction", "MiB/s", ""),
    ]
    for figure, value in zip(
        figures, (p99_ms(quiet), p99_ms(busy), (before >> 20) / took), strict=True
    ):
        figure.values.append(value)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--record-bytes", type=int, default=1024)
    parser.add_argument("--codec", default="none")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="into docs/NUMBERS.md")
    asked = parser.parse_args()
    compile_as_installed()
    figures: list[Figure] = []
    for _ in range(asked.rounds):
        round_ = measure(int(asked.gib * (1 << 30)), asked.record_bytes, asked.codec)
        if not figures:
            figures = round_
        else:
            for figure, new in zip(figures, round_, strict=True):
                figure.values += new.values
    text = (
        f"{asked.gib} GiB of {asked.record_bytes}-byte records over {KEYS} keys, codec "
        f"{asked.codec}. {machine()}.\n\n{table(figures)}"
    )
    print(text)
    if asked.write:
        write_section("Compaction", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
