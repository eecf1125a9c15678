"""Streams and tails of a real cluster while nodes are killed under them: the client is told, and
what was acknowledged is there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout

from logboat.testing import LocalCluster
from tests.waiting import until

pytestmark = pytest.mark.processes

TOPIC = "survives"
LINES = {"Content-Type": "application/x-ndjson"}
SECONDS = ClientTimeout(total=600)


class Producer:
    """Numbers as lines, over one request, until it is stopped or the node is gone."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stopped = False
        self.sent = 0
        self.verdicts: list[dict[str, Any]] = []
        self.broken = False

    def stop(self) -> None:
        self._stopped = True

    async def _body(self) -> AsyncIterator[bytes]:
        while not self._stopped:
            self.sent += 1
            yield b'{"value":"%d"}\n' % (self.sent - 1)
            await asyncio.sleep(0.002)

    async def run(self) -> None:
        path = f"{self._url}/api/v1/topics/{TOPIC}/records"
        try:
            async with (
                ClientSession(timeout=SECONDS) as session,
                session.post(path, data=self._body(), headers=LINES) as response,
            ):
                assert response.status == 200
                while line := await response.content.readline():
                    self.verdicts.append(json.loads(line))
        except ClientError:
            self.broken = True

    @property
    def applied(self) -> dict[int, str]:
        """Offset -> value; the verdicts are in the order of the lines."""
        return {
            verdict["offset"]: str(number)
            for number, verdict in enumerate(self.verdicts)
            if verdict.get("outcome") == "applied"
        }


class Reader:
    """A tail that goes on at another node when its own is gone."""

    def __init__(self, *urls: str) -> None:
        self._urls = urls
        self.records: list[tuple[int, str]] = []
        self.other: list[dict[str, Any]] = []
        self.broken = 0
        self._last_id = ""

    async def run(self) -> None:
        for url in self._urls:
            headers = {"Last-Event-ID": self._last_id} if self._last_id else {}
            path = f"{url}/api/v1/topics/{TOPIC}/tail"
            query = "" if self._last_id else "?from=earliest"
            try:
                async with (
                    ClientSession(timeout=SECONDS) as session,
                    session.get(path + query, headers=headers) as response,
                ):
                    while line := await response.content.readline():
                        self._take(json.loads(line))
            except ClientError:
                self.broken += 1

    def _take(self, event: dict[str, Any]) -> None:
        self._last_id = event.get("id", self._last_id)
        if event["event"] == "record":
            self.records.append((event["offset"], event["value"]))
        elif event["event"] not in ("heartbeat", "open"):
            self.other.append(event)


def test_nothing_acknowledged_is_lost_when_nodes_die_under_streams_and_tails() -> None:
    with LocalCluster(nodes=3) as cluster:
        answer = cluster.post("/api/v1/topics", {"name": TOPIC, "partitions": 1})
        assert answer is not None
        assert answer.status == 201
        cluster.wait_in_sync(TOPIC)
        asyncio.run(scenario(cluster))


async def scenario(cluster: LocalCluster) -> None:
    urls = dict(zip(cluster.node_ids, cluster.http_urls, strict=True))
    leader = await asyncio.to_thread(cluster.wait_leader, TOPIC, 0)
    near, far = (node_id for node_id in cluster.node_ids if node_id != leader)
    staying = Reader(urls[far])
    moving = Reader(urls[leader], urls[near])
    tails = [asyncio.create_task(reader.run()) for reader in (staying, moving)]

    # The partition's leader dies: the stream goes on through a node that stays.
    first = Producer(urls[near])
    writing = asyncio.create_task(first.run())
    await until(lambda: len(first.applied) > 50 and len(moving.records) > 50)
    before = len(first.verdicts)
    await asyncio.to_thread(cluster.kill, leader)
    await until(lambda: len([v for v in first.verdicts[before:] if v["outcome"] == "applied"]) > 50)
    first.stop()
    await asyncio.wait_for(writing, 60)
    assert not first.broken
    assert len(first.verdicts) == first.sent
    assert {v["outcome"] for v in first.verdicts} <= {"applied", "failed", "unknown"}

    # The node that takes the stream dies: the answer breaks off.
    await asyncio.to_thread(cluster.start, leader)
    await asyncio.to_thread(cluster.wait_in_sync, TOPIC)
    second = Producer(urls[far])
    writing = asyncio.create_task(second.run())
    await until(lambda: len(second.applied) > 50)
    await asyncio.to_thread(cluster.kill, far)
    await asyncio.wait_for(writing, 60)
    assert second.broken

    acknowledged = {**first.applied, **second.applied}
    assert len(acknowledged) == len(first.applied) + len(second.applied)
    end = max(acknowledged)
    await until(lambda: bool(moving.records) and moving.records[-1][0] >= end)
    await until(lambda: staying.broken)
    for task in tails:
        task.cancel()
    await asyncio.wait(tails)
    assert staying.broken == 1
    assert moving.broken >= 1
    for reader in (staying, moving):
        offsets = [offset for offset, _ in reader.records]
        assert offsets == list(range(len(offsets))), "every record once, in order"
        assert not [event for event in reader.other if event["event"] != "stalled"]
    seen = dict(moving.records)
    assert {offset: seen[offset] for offset in acknowledged} == acknowledged
