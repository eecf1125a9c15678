"""The Python client and the clusters of `logboat.testing`.

    python benchmarks/client.py [--rounds 3] [--write]

* records of 100 bytes a second from one producer over HTTP to one page-cache node, and with acks
  from three replicas;
* the process's growth while a server takes nothing;
* a single node from entering `LocalCluster` to a record acknowledged being possible; ten of them
  side by side.
"""

from __future__ import annotations

import argparse
import asyncio
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
        stalled.values.append(asyncio.run(growth_when_stalled()))
    text = f"{machine()}.\n\n{table([one, three, stalled, fixture, ten])}"
    tell("Python client and test clusters", text, write=options.write)


if __name__ == "__main__":
    main()
