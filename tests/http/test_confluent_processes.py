"""v2 and v3 of a real cluster: any node answers, and nodes are killed in the middle."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest

from logboat.testing import PATIENT, LocalCluster
from tests.http.http_asker import JSON, Asker

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3, settings=PATIENT) as running:
        yield running


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


@pytest.fixture
def nodes(cluster: LocalCluster, session: aiohttp.ClientSession) -> dict[int, Asker]:
    urls = zip(cluster.node_ids, cluster.http_urls, strict=True)
    return {node_id: Asker(session, url) for node_id, url in urls}


@pytest.fixture
async def topic(nodes: dict[int, Asker], request: pytest.FixtureRequest) -> str:
    name = request.node.name.removeprefix("test_")[:60]
    body = {"topic_name": name, "partitions_count": 3, "replication_factor": 3}
    await nodes[1].good("POST", "/admin/topics", body)
    return str(name)


async def write(node: Asker, topic: str, *values: Any) -> None:
    records = [{"value": value, "partition": n % 3} for n, value in enumerate(values)]
    answer = await node.good("POST", f"/topics/{topic}", {"records": records}, content_type=JSON)
    assert all(one["error_code"] is None for one in answer["offsets"]), answer


async def created(node: Asker, group: str, **config: Any) -> str:
    wanted = {"format": "json", "auto.offset.reset": "earliest", **config}
    answer = await node.good("POST", f"/consumers/{group}", wanted)
    path: str = "/consumers/" + answer["base_uri"].partition("/consumers/")[2]
    return path


async def read(node: Asker, path: str, count: int) -> list[Any]:
    found: list[Any] = []
    async with asyncio.timeout(60):
        while len(found) < count:
            records = await node.good("GET", f"{path}/records?timeout=2000")
            found += [record["value"] for record in records]
    return sorted(found)


@contextlib.contextmanager
def killed(cluster: LocalCluster, node_id: int) -> Iterator[None]:
    cluster.kill(node_id)
    try:
        yield
    finally:
        cluster.start(node_id)


@pytest.mark.parametrize("name", [None, "given"])
async def test_an_instance_is_reached_through_any_node(
    nodes: dict[int, Asker], name: str | None
) -> None:
    topic = f"anywhere-{name}"
    body = {"topic_name": topic, "partitions_count": 3, "replication_factor": 3}
    await nodes[1].good("POST", "/admin/topics", body)
    named = {} if name is None else {"name": name}
    path = await created(nodes[1], topic, **named)
    await nodes[2].good("POST", f"{path}/subscription", {"topics": [topic]})
    await write(nodes[3], topic, *range(6))
    assert await read(nodes[3], path, 6) == list(range(6))
    await nodes[2].good("POST", f"{path}/offsets")
    offsets = (await nodes[1].good("GET", f"{path}/offsets"))["offsets"]
    assert [one["offset"] for one in offsets] == [2, 2, 2]
    if name is not None:
        for node in nodes.values():
            again = await node.ask("POST", f"/consumers/{topic}", {"name": name})
            assert again.error == (409, 40902)
    await nodes[3].good("DELETE", path)
    for node in nodes.values():
        assert (await node.ask("GET", f"{path}/records")).error == (404, 40403)


async def test_another_node_says_why_an_instance_is_gone(
    nodes: dict[int, Asker], topic: str
) -> None:
    short = {"consumer.instance.timeout.ms": 1000}
    paths = [await created(nodes[1], topic, name="short", **short)]
    paths.append(await created(nodes[1], topic, **short))
    for path in paths:
        await expired(nodes[1], path)
        for node in nodes.values():
            answer = await node.ask("GET", f"{path}/records")
            assert answer.error == (404, 40403)
            assert "expired after 1 s" in answer.json["message"]


async def expired(node: Asker, path: str) -> None:
    """Left alone for as long as it takes: each question to an instance that is there is a use."""
    async with asyncio.timeout(60):
        await asyncio.sleep(2.5)
        while (await node.ask("GET", f"{path}/assignments")).status != 404:  # noqa: ASYNC110
            await asyncio.sleep(5)


async def test_a_poll_whose_node_between_is_killed_has_read_nothing(
    cluster: LocalCluster, nodes: dict[int, Asker], topic: str
) -> None:
    path = await created(nodes[2], topic)
    await nodes[2].good("POST", f"{path}/subscription", {"topics": [topic]})
    await nodes[2].good("GET", f"{path}/records?timeout=3000")
    waiting = asyncio.create_task(nodes[1].ask("GET", f"{path}/records?timeout=20000"))
    await asyncio.sleep(0.5)
    with killed(cluster, 1):
        with pytest.raises(aiohttp.ClientError):
            await waiting
        await write(nodes[3], topic, *range(6))
        assert await read(nodes[3], path, 6) == list(range(6))


async def test_a_poll_whose_instance_s_node_is_killed_is_told_and_loses_nothing(
    cluster: LocalCluster, nodes: dict[int, Asker], topic: str
) -> None:
    path = await created(nodes[2], topic)
    await nodes[1].good("POST", f"{path}/subscription", {"topics": [topic]})
    await write(nodes[1], topic, *range(3))
    assert await read(nodes[1], path, 3) == [0, 1, 2]
    await nodes[1].good("POST", f"{path}/offsets")
    await write(nodes[1], topic, *range(3, 6))
    assert await read(nodes[3], path, 3) == [3, 4, 5]  # given out and not committed
    waiting = asyncio.create_task(nodes[1].ask("GET", f"{path}/records?timeout=20000"))
    await asyncio.sleep(0.5)
    with killed(cluster, 2):
        status, code = (await waiting).error
        assert (status, code) in ((503, 50302), (404, 40403))
        async with asyncio.timeout(60):
            while (status, code) != (404, 40403):
                await asyncio.sleep(0.2)
                status, code = (await nodes[3].ask("GET", f"{path}/records?timeout=0")).error
        # Where the group has committed the next reader goes on.
        following = await created(nodes[3], topic)
        partitions = [{"topic": topic, "partition": n} for n in range(3)]
        await nodes[3].good("POST", f"{following}/assignments", {"partitions": partitions})
        assert await read(nodes[3], following, 3) == [3, 4, 5]
    for node in nodes.values():  # Its node is back, and does not know it.
        assert (await node.ask("GET", f"{path}/records?timeout=0")).error == (404, 40403)


class Stream:
    """A streaming produce to one partition; what it was told so far."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self._stop = asyncio.Event()
        self._more = asyncio.Event()
        self.sent = 0
        self.written: set[int] = set()
        self.refused: list[Any] = []
        self.broken = False

    async def _records(self) -> AsyncIterator[bytes]:
        while not self._stop.is_set():
            record = {
                "partition_id": 0,
                "value": {"type": "JSON", "data": self.sent},
            }
            self.sent += 1
            yield json.dumps(record).encode()
            await asyncio.sleep(0.005)

    async def run(self) -> None:
        headers = {"Content-Type": "application/json"}
        answered = 0
        try:
            posted = self._session.post(self._url, data=self._records(), headers=headers)
            async with posted as answer:
                assert answer.status == 200
                async for line in answer.content:
                    document = json.loads(line)
                    if document["error_code"] == 200:
                        self.written.add(answered)
                    else:
                        self.refused.append(document)
                    answered += 1
                    self._more.set()
        except aiohttp.ClientError:
            self.broken = True

    async def until(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.written) < count:
                self._more.clear()
                await self._more.wait()

    def stop(self) -> None:
        self._stop.set()


async def stored(node: Asker, topic: str) -> list[int]:
    """Partition 0 whole."""
    end = (await node.good("GET", f"/topics/{topic}/partitions/0/offsets"))["end_offset"]
    path = await created(node, f"{topic}-audit")
    there = {"partitions": [{"topic": topic, "partition": 0}]}
    await node.good("POST", f"{path}/assignments", there)
    return await read(node, path, end)


@pytest.mark.parametrize("victim", ["leader", "node between"])
async def test_a_stream_through_a_kill_loses_nothing_that_was_answered(
    cluster: LocalCluster,
    nodes: dict[int, Asker],
    session: aiohttp.ClientSession,
    victim: str,
) -> None:
    topic = f"stream-{victim.replace(' ', '-')}"
    body = {"topic_name": topic, "partitions_count": 1, "replication_factor": 3}
    await nodes[1].good("POST", "/admin/topics", body)
    leader = cluster.wait_leader(topic, 0)
    between = next(n for n in cluster.node_ids if n != leader)
    url = dict(zip(cluster.node_ids, cluster.http_urls, strict=True))[between]
    cluster_id = (await nodes[1].good("GET", "/v3/clusters"))["data"][0]["cluster_id"]
    stream = Stream(session, f"{url}/v3/clusters/{cluster_id}/topics/{topic}/records")
    running = asyncio.create_task(stream.run())
    await stream.until(20)  # answered while the request is open
    dead = leader if victim == "leader" else between
    with killed(cluster, dead):
        if victim == "leader":
            await stream.until(len(stream.written) + 20)
            stream.stop()
            await running
            assert not stream.broken
            assert len(stream.written) + len(stream.refused) == stream.sent
        else:
            await running
            assert stream.broken
            stream.stop()
        alive = next(node for number, node in nodes.items() if number != dead)
        found = await stored(alive, topic)
    assert stream.written <= set(found)
    # What was told to be in doubt may be there; nothing else is.
    assert set(found) <= set(range(stream.sent))
