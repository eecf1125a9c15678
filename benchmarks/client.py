"""The Python client and the clusters of `logboat.testing`.

    python benchmarks/client.py [--rounds 3] [--write]

* records of 100 bytes a second from one producer over HTTP to one page-cache node, and with acks
  from three replicas;
* the process's growth while a server takes nothing;
* from a record's sending, with acks from three replicas, to its line of a following `consume`;
* a single node from entering `LocalCluster` to a record acknowledged being possible; ten of them
  side by side.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aiohttp import web
from figures import Figure, machine, table, tell

from logboat.client import Client
from logboat.testing import LocalCluster

RECORDS = 150_000
VALUE = b"x" * 100
PAGE_CACHE = {"flush.messages": str(2**63 - 1)}
BUFFER_BYTES = 32 << 20
TEN = 10
PRINTED = 100


def rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


async def produced(urls: list[str], replication: int) -> float:
    """Records a second."""
    async with Client(*urls) as client:
        topic = f"t{time.time_ns():x}"
        await client.admin.topics.create(
            topic, partitions=3, replication=replication, configs=PAGE_CACHE
        )
        async with client.producer() as producer:
            await producer.send(topic, VALUE)
            started = time.perf_counter()
            for _ in range(RECORDS):
                await producer.enqueue(topic, VALUE)
            await producer.flush()
            return RECORDS / (time.perf_counter() - started)


async def growth_when_stalled() -> float:
    """MiB above the start, with a server that takes connections and answers nothing but what a
    producer must know."""

    async def topic(_: web.Request) -> web.Response:
        return web.json_response({"name": "t", "partition_count": 3})

    async def never(_: web.Request) -> web.Response:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    app = web.Application()
    app.router.add_get("/api/v1/topics/t", topic)
    app.router.add_route("*", "/{rest:.*}", never)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    before = rss_mib()
    async with Client(f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
        producer = client.producer(idempotent=False, buffer_bytes=BUFFER_BYTES)

        async def fill() -> None:
            while True:
                await producer.enqueue("t", VALUE)

        filling = asyncio.create_task(fill())
        await asyncio.sleep(5)
        grown = rss_mib() - before
        filling.cancel()
        await producer.close(0)
    await runner.cleanup()
    return grown


async def milliseconds_until_printed(urls: list[str]) -> list[float]:
    """Of records sent one at a time, at moments that nobody can have waited for."""
    async with Client(*urls) as client, client.producer(linger=0.0) as producer:
        topic = f"t{time.time_ns():x}"
        await client.admin.topics.create(topic, partitions=3, replication=3)
        consume = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "logboat.client.cli", "consume", topic),
            env={**os.environ, "LOGBOAT_HTTP": ",".join(urls)},
            stdout=asyncio.subprocess.PIPE,
        )
        assert consume.stdout is not None
        # Once it prints, it follows.
        await producer.send(topic, b"first", partition=0)
        await consume.stdout.readline()
        took = []
        for number in range(PRINTED):
            await asyncio.sleep(random.uniform(0.01, 0.1))
            started = time.perf_counter()
            await producer.send(topic, b"%d" % number, partition=number % 3)
            await consume.stdout.readline()
            took.append((time.perf_counter() - started) * 1000)
        consume.kill()
        await consume.wait()
        return sorted(took)


def seconds_until_ready() -> float:
    started = time.perf_counter()
    with LocalCluster(nodes=1):
        return time.perf_counter() - started


def seconds_until_ten_are_ready() -> float:
    started = time.perf_counter()
    clusters = [LocalCluster(nodes=1) for _ in range(TEN)]
    with ThreadPoolExecutor(TEN) as pool:
        list(pool.map(LocalCluster.__enter__, clusters))
        took = time.perf_counter() - started
        list(pool.map(LocalCluster.close, clusters))
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    one = Figure("one node, page-cache", "records/s", "50,000")
    three = Figure("three replicas, acks=all", "records/s", "")
    printed = Figure("record to a line of consume, p50", "ms", "")
    latest = Figure("the same, p99", "ms", "")
    stalled = Figure(f"growth when stalled, {BUFFER_BYTES >> 20} MiB buffer", "MiB", "bounded")
    fixture = Figure("single node ready", "s", "1")
    ten = Figure("ten nodes side by side", "s", "8")
    for _ in range(options.rounds):
        fixture.values.append(seconds_until_ready())
        ten.values.append(seconds_until_ten_are_ready())
        with LocalCluster(nodes=1) as cluster:
            one.values.append(asyncio.run(produced(cluster.http_urls, 1)))
        with LocalCluster(nodes=3) as cluster:
            three.values.append(asyncio.run(produced(cluster.http_urls, 3)))
            took = asyncio.run(milliseconds_until_printed(cluster.http_urls))
            printed.values.append(took[len(took) // 2])
            latest.values.append(took[len(took) * 99 // 100])
        stalled.values.append(asyncio.run(growth_when_stalled()))
    text = f"{machine()}.\n\n{table([one, three, printed, latest, stalled, fixture, ten])}"
    tell("Python client and test clusters", text, write=options.write)


if __name__ == "__main__":
    main()
