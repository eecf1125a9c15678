"""RULES F2: saturating produce from three processes; elections, and how late each node's loop is.

    python benchmarks/one_loop.py [--seconds 120] [--write]

The bar is for two minutes: 0 elections, 99.9th percentile of the loop lag below 100 ms. Both are
read from the nodes' /metrics, whose window (the last 4 to 5 minutes) includes start-up. At ten
samples a second the percentile is the second largest of two minutes, the largest of a shorter run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import urllib.request
from dataclasses import dataclass

from confluent_kafka import Producer
from figures import Figure, machine, table, tell
from run import compile_as_installed

from logboat.testing import LocalCluster

TOPIC = "saturated"
CLIENTS = 3
RECORD = bytes(1024)
EPOCH = "kafka_server_raftmetrics_current_epoch"
P999 = 'logboat_loop_lag_seconds{quantile="0.999"}'
LARGEST = "logboat_loop_lag_max_seconds"


@dataclass(frozen=True)
class Outcome:
    elections: int
    p999_ms: list[float]
    largest_ms: list[float]
    """Of each node."""
    megabytes_per_s: float


def produce(bootstrap_servers: str, seconds: float) -> int:
    """As fast as the cluster takes it, acks=all; how many records were acknowledged."""
    acknowledged = 0

    def on_delivery(error: object, _: object) -> None:
        nonlocal acknowledged
        acknowledged += error is None

    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "linger.ms": 5})
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            producer.produce(TOPIC, RECORD, on_delivery=on_delivery)
        except BufferError:
            producer.poll(0.01)
        else:
            producer.poll(0)
    producer.flush(60)
    return acknowledged


def scrape(url: str) -> dict[str, float]:
    """Values by name with labels, as the page writes them."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as response:
        lines = response.read().decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
    }


def saturate(seconds: float) -> Outcome:
    with LocalCluster(nodes=3) as cluster:
        cluster.post("/api/v1/topics", {"name": TOPIC, "partitions": 6})
        cluster.wait_in_sync(TOPIC)
        # The first scrape loads the metrics' library: before the load, not during it.
        before = [scrape(url) for url in cluster.http_urls]
        with multiprocessing.get_context("spawn").Pool(CLIENTS) as clients:
            work = [(cluster.bootstrap_servers, seconds)] * CLIENTS
            started = time.monotonic()
            acknowledged = sum(clients.starmap(produce, work))
            elapsed = time.monotonic() - started
        after = [scrape(url) for url in cluster.http_urls]
    # The term counts elections that nobody won, too.
    elections = max(node[EPOCH] for node in after) - max(node[EPOCH] for node in before)
    return Outcome(
        elections=int(elections),
        p999_ms=[1_000 * node[P999] for node in after],
        largest_ms=[1_000 * node[LARGEST] for node in after],
        megabytes_per_s=acknowledged * len(RECORD) / 1e6 / elapsed,
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    compile_as_installed()

    outcome = saturate(arguments.seconds)
    figures = [
        Figure("elections", "", "0", [float(outcome.elections)]),
        Figure("p99.9 of loop lag, by node", "ms", "100 ms", outcome.p999_ms),
        Figure("largest loop lag, by node", "ms", "none", outcome.largest_ms),
        Figure("acknowledged, acks=all", "MB/s", "none", [outcome.megabytes_per_s]),
    ]
    text = (
        f"Machine: {machine()}. Three clients and three nodes share it. `benchmarks/one_loop.py`, "
        f"{arguments.seconds:g} s; lag: one value per node, start-up included.\n\n" + table(figures)
    )
    tell("The one loop (F2)", text, write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
