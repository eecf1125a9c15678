"""v2: consumer instances of one node: the flows of tutorials, and how they end (case D05)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from logboat.node.http.keys import OPEN
from logboat.node.run import Node
from tests.http.http_asker import BINARY, JSON, TEXT, V2, Asker
from tests.http.serving_node import serving_node

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = itertools.count()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def serving(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[Node, Asker]]:
    async with serving_node(tmp_path_factory.mktemp("v2") / "data") as found:
        yield found


@pytest.fixture
def v2(serving: tuple[Node, Asker]) -> Asker:
    return serving[1]


@pytest_asyncio.fixture(loop_scope="module")
async def topic(v2: Asker) -> str:
    """A new topic of two partitions."""
    name = f"orders-{next(_numbers)}"
    body = {"topic_name": name, "partitions_count": 2, "replication_factor": 1}
    await v2.good("POST", "/admin/topics", body)
    return name


async def write(v2: Asker, topic: str, *values: Any, partition: int = 0) -> None:
    records = [{"value": value, "partition": partition} for value in values]
    await v2.good("POST", f"/topics/{topic}", {"records": records}, content_type=JSON)


async def created(v2: Asker, group: str, **config: Any) -> str:
    """The path of a new instance."""
    wanted = {"format": "json", "auto.offset.reset": "earliest", **config}
    answer = await v2.good("POST", f"/consumers/{group}", wanted)
    path: str = "/consumers/" + answer["base_uri"].partition("/consumers/")[2]
    return path


async def subscribed(v2: Asker, group: str, topic: str, **config: Any) -> str:
    path = await created(v2, group, **config)
    await v2.good("POST", f"{path}/subscription", {"topics": [topic]})
    return path


async def poll(v2: Asker, path: str, timeout_ms: int = 5_000) -> Any:
    return await v2.good("GET", f"{path}/records?timeout={timeout_ms}")


async def values(v2: Asker, path: str, timeout_ms: int = 5_000) -> list[Any]:
    return [record["value"] for record in await poll(v2, path, timeout_ms)]


def place(topic: str, partition: int = 0, **more: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, **more}


# Flows


async def test_the_first_poll_waits_for_the_join_and_brings_the_records(
    v2: Asker, topic: str
) -> None:
    await write(v2, topic, {"a": 1}, "x")
    path = await subscribed(v2, topic, topic)
    first, second = await poll(v2, path)
    assert first == {
        "topic": topic,
        "key": None,
        "value": {"a": 1},
        "partition": 0,
        "offset": 0,
        "timestamp": first["timestamp"],
        "headers": [],
    }
    assert (second["offset"], second["value"]) == (1, "x")


async def test_a_poll_without_records_ends_in_its_time(v2: Asker, topic: str) -> None:
    path = await subscribed(v2, topic, topic)
    await poll(v2, path, 0)
    loop = asyncio.get_running_loop()
    for timeout_ms in (0, 300):
        started = loop.time()
        assert await poll(v2, path, timeout_ms) == []
        assert loop.time() - started < timeout_ms / 1000 + 10


async def test_a_poll_is_answered_when_a_record_comes(v2: Asker, topic: str) -> None:
    path = await subscribed(v2, topic, topic)
    await poll(v2, path, 100)
    waiting = asyncio.create_task(values(v2, path, 20_000))
    await asyncio.sleep(0.2)
    await write(v2, topic, "at last", partition=1)
    assert await waiting == ["at last"]


async def test_a_poll_whose_client_went_leaves_the_records_to_the_next(
    v2: Asker, topic: str, serving: tuple[Node, Asker]
) -> None:
    http = serving[0]._http
    assert http is not None
    open_requests = http._runner.app[OPEN]._ends
    path = await subscribed(v2, topic, topic)
    await poll(v2, path, 100)
    waiting = asyncio.create_task(poll(v2, path, 60_000))
    async with asyncio.timeout(30):
        while not open_requests:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        waiting.cancel()
        await asyncio.wait([waiting])
        # The node looks for its client now and then.
        while open_requests:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await write(v2, topic, "kept")
    assert await values(v2, path) == ["kept"]


async def test_a_member_that_is_dead_does_not_make_a_poll_late(
    v2: Asker, topic: str, serving: tuple[Node, Asker]
) -> None:
    """A member that holds partitions and never speaks again, until its session ends."""
    dead = await subscribed(v2, topic, topic)
    await poll(v2, dead, 300)
    alive = await subscribed(v2, topic, topic)
    loop = asyncio.get_running_loop()
    started = loop.time()
    await poll(v2, alive, 500)
    assert loop.time() - started < 10


async def test_a_commit_without_a_body_is_of_what_was_given_out(v2: Asker, topic: str) -> None:
    await write(v2, topic, 1, 2, 3)
    path = await subscribed(v2, topic, topic, **{"auto.commit.enable": "false"})
    assert await values(v2, path) == [1, 2, 3]
    body = {"partitions": [place(topic), place(topic, 1)]}
    assert await v2.good("GET", f"{path}/offsets", body) == {"offsets": []}
    assert (await v2.ask("POST", f"{path}/offsets")).status == 204
    assert await v2.good("GET", f"{path}/offsets", body) == {
        "offsets": [place(topic, offset=3, metadata="")]
    }


async def test_a_committed_offset_is_where_the_next_instance_begins(v2: Asker, topic: str) -> None:
    await write(v2, topic, 0, 1, 2)
    path = await subscribed(v2, topic, topic, **{"auto.commit.enable": "false"})
    await values(v2, path)
    body = {"offsets": [place(topic, offset=1, metadata="so far")]}
    assert (await v2.ask("POST", f"{path}/offsets", body)).status == 204
    assert (await v2.good("GET", f"{path}/offsets"))["offsets"] == [
        place(topic, offset=1, metadata="so far")
    ]
    await v2.good("DELETE", path)
    assert await values(v2, await subscribed(v2, topic, topic)) == [1, 2]


async def test_an_end_in_order_commits_what_was_given_out(v2: Asker, topic: str) -> None:
    await write(v2, topic, 0, 1)
    path = await subscribed(v2, topic, topic)
    assert await values(v2, path) == [0, 1]
    await v2.good("DELETE", path)
    await write(v2, topic, 2)
    assert await values(v2, await subscribed(v2, topic, topic)) == [2]


async def test_seeking_to_an_offset_the_beginning_the_end_and_a_time(v2: Asker, topic: str) -> None:
    await write(v2, topic, 0, 1, 2)
    path = await subscribed(v2, topic, topic)
    await values(v2, path)
    await v2.good("POST", f"{path}/positions", {"offsets": [place(topic, offset=1)]})
    assert await values(v2, path) == [1, 2]
    whole = {"partitions": [place(topic)]}
    await v2.good("POST", f"{path}/positions/beginning", whole)
    assert await values(v2, path) == [0, 1, 2]
    await v2.good("POST", f"{path}/positions/beginning", whole)
    await v2.good("POST", f"{path}/positions/end", whole)
    assert await values(v2, path, 200) == []
    await v2.good("POST", f"{path}/positions", {"timestamps": [place(topic, timestamp=0)]})
    assert await values(v2, path) == [0, 1, 2]


async def test_what_is_assigned_by_hand_is_read_without_a_group(v2: Asker, topic: str) -> None:
    await write(v2, topic, 1)
    await write(v2, topic, 2, partition=1)
    path = await created(v2, topic)
    body = {"partitions": [place(topic, 1)]}
    await v2.good("POST", f"{path}/assignments", body)
    assert await v2.good("GET", f"{path}/assignments") == body
    assert await values(v2, path) == [2]
    assert (await v2.ask("POST", f"{path}/offsets")).status == 204
    assert len((await v2.good("GET", f"{path}/offsets"))["offsets"]) == 1


async def test_a_pattern_subscribes_to_what_matches(v2: Asker, topic: str) -> None:
    await write(v2, topic, 1)
    path = await created(v2, topic)
    await v2.good("POST", f"{path}/subscription", {"topic_pattern": f"{topic[:-1]}.?"})
    assert topic in (await poll_until_assigned(v2, path))["topics"]


async def poll_until_assigned(v2: Asker, path: str) -> Any:
    for _ in range(300):
        await poll(v2, path, 100)
        found = await v2.good("GET", f"{path}/subscription")
        if found["topics"]:
            return found
    raise AssertionError("no partitions")


async def test_two_instances_share_the_partitions_and_none_is_read_twice(
    v2: Asker, topic: str
) -> None:
    paths = [await subscribed(v2, topic, topic) for _ in range(2)]
    for path in paths:
        await poll(v2, path, 200)
    for partition in (0, 1):
        await write(v2, topic, *range(10), partition=partition)
    seen: list[tuple[int, int]] = []
    async with asyncio.timeout(60):
        while len(seen) < 20:
            for path in paths:
                for record in await poll(v2, path, 200):
                    seen.append((record["partition"], record["offset"]))
    assert len(set(seen)) == 20
    async with asyncio.timeout(60):
        while True:
            shares = [(await v2.good("GET", f"{p}/assignments"))["partitions"] for p in paths]
            if [len(share) for share in shares] == [1, 1]:
                break
            await asyncio.sleep(0.1)


async def test_max_bytes_bounds_an_answer_but_never_to_nothing(v2: Asker, topic: str) -> None:
    await write(v2, topic, *("x" * 100 for _ in range(10)))
    path = await subscribed(v2, topic, topic)
    sizes: list[int] = []
    while sum(sizes) < 10:
        records = await v2.good("GET", f"{path}/records?timeout=5000&max_bytes=250")
        sizes.append(len(records))
    assert sizes == [2] * 5
    await v2.good("POST", f"{path}/positions/beginning", {"partitions": [place(topic)]})
    assert len(await v2.good("GET", f"{path}/records?timeout=5000&max_bytes=1")) == 1


# Formats


async def test_each_format_says_the_same_bytes_its_own_way(v2: Asker, topic: str) -> None:
    text = "123456789012345678901234567890"
    body = f'{{"records":[{{"value":{text}}}]}}'.encode()
    await v2.good("POST", f"/topics/{topic}/partitions/0", body, content_type=JSON)
    for kind, value, media_type in (
        ("json", int(text), JSON),
        ("text", text, TEXT),
        ("binary", "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkw", BINARY),
    ):
        path = await subscribed(v2, f"{topic}-{kind}", topic, format=kind)
        answer = await v2.ask("GET", f"{path}/records?timeout=5000", accept=media_type)
        assert answer.content_type == media_type
        assert answer.json[0]["value"] == value


async def test_a_format_that_is_not_the_instance_s_is_406(v2: Asker, topic: str) -> None:
    path = await subscribed(v2, topic, topic)
    answer = await v2.ask("GET", f"{path}/records", accept=BINARY)
    assert answer.error == (406, 40601)
    answer = await v2.ask("GET", f"{path}/records", accept="text/html")
    assert answer.error == (406, 406)


async def test_a_record_that_is_no_json_is_named_and_stays_where_it_is(
    v2: Asker, topic: str
) -> None:
    await write(v2, topic, 1)
    body = {"records": [{"value": "not json", "partition": 0}]}
    await v2.good("POST", f"/topics/{topic}", body, content_type=TEXT)
    path = await subscribed(v2, topic, topic)
    assert await values(v2, path) == [1]
    for _ in range(2):
        answer = await v2.ask("GET", f"{path}/records?timeout=3000")
        assert answer.error == (406, 40601)
        assert f"{topic}-0 at offset 1" in answer.json["message"]
    await v2.good("POST", f"{path}/positions", {"offsets": [place(topic, offset=2)]})
    await write(v2, topic, 3)
    assert await values(v2, path) == [3]


# Refusals


async def test_subscriptions_and_assignments_exclude_each_other(v2: Asker, topic: str) -> None:
    both = {"topics": [topic], "topic_pattern": "a"}
    assigned = {"partitions": [place(topic)]}
    path = await created(v2, topic)
    assert (await v2.ask("POST", f"{path}/subscription", both)).error == (409, 40903)
    assert (await v2.ask("GET", f"{path}/records")).error == (409, 40903)
    await v2.good("POST", f"{path}/subscription", {"topics": [topic]})
    assert (await v2.ask("POST", f"{path}/assignments", assigned)).error == (409, 40903)
    await v2.good("DELETE", f"{path}/subscription")
    await v2.good("POST", f"{path}/assignments", assigned)
    subscription = await v2.ask("POST", f"{path}/subscription", {"topics": [topic]})
    assert subscription.error == (409, 40903)


WRONG: list[tuple[str, str, Any, tuple[int, int]]] = [
    ("POST", "/subscription", {}, (422, 422)),
    ("POST", "/subscription", {"topics": []}, (422, 422)),
    ("POST", "/subscription", {"topics": [1]}, (422, 422)),
    ("POST", "/subscription", {"topic_pattern": "("}, (422, 422)),
    ("POST", "/subscription", {"topic": "x"}, (422, 422)),
    ("POST", "/subscription", b"{", (400, 400)),
    ("POST", "/subscription", b"[]", (422, 422)),
    ("POST", "/assignments", {"partitions": [{"topic": "none", "partition": 0}]}, (404, 40401)),
    ("POST", "/assignments", {"partitions": [{"topic": "none"}]}, (422, 422)),
    ("POST", "/positions", {"offsets": [place("none", offset=0)]}, (404, 40401)),
    ("POST", "/positions", {"offsets": [place("none")]}, (422, 422)),
    ("POST", "/offsets", {"offsets": [place("none", offset=0)]}, (404, 40401)),
    ("POST", "/offsets", {"offsets": [place("none", offset=-1)]}, (422, 422)),
    ("POST", "/offsets", {"offsets": 1}, (422, 422)),
    ("GET", "/records?timeout=x", None, (400, 400)),
    ("GET", "/records?max_bytes=-1", None, (400, 400)),
    ("PUT", "/records", None, (405, 405)),
]


async def test_what_an_instance_cannot_do_it_says(v2: Asker, topic: str) -> None:
    path = await created(v2, topic)
    for method, below, body, error in WRONG:
        assert (await v2.ask(method, path + below, body)).error == error, (below, body)
    there = {"partitions": [place(topic)]}
    assert (await v2.ask("POST", f"{path}/positions/end", there)).error == (404, 40402)


@pytest.mark.parametrize(
    "config",
    [
        {"format": "avro"},
        {"auto.offset.reset": "middle"},
        {"auto.commit.enable": "perhaps"},
        {"consumer.request.timeout.ms": "soon"},
        {"fetch.min.bytes": -2},
        {"isolation.level": 1},
        {"name": ""},
        {"name": "x" * 300},
        {"name": ".."},
        {"group": "x"},
    ],
)
async def test_a_setting_that_is_no_setting_is_42204(v2: Asker, config: dict[str, Any]) -> None:
    assert (await v2.ask("POST", "/consumers/g", config)).error == (422, 42204)


# D05: how instances end


async def test_an_idle_instance_expires_says_so_and_frees_its_partitions(
    v2: Asker, topic: str
) -> None:
    short = {"consumer.instance.timeout.ms": 2000, "name": "short"}
    path = await subscribed(v2, topic, topic, **short)
    await poll(v2, path, 200)
    now = asyncio.get_running_loop().time
    used = now()
    for _ in range(5):
        # Any call is a use.
        await asyncio.sleep(0.5)
        asked = now()
        if (await v2.ask("GET", f"{path}/assignments")).status == 404:
            # A busy machine may have left it alone for as long.
            assert now() - used > 2
            break
        used = asked
    members = f"/v3/clusters/test-cluster/consumer-groups/{topic}/consumers"
    async with asyncio.timeout(30):
        while (await v2.good("GET", members))["data"]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    answer = await v2.ask("GET", f"{path}/records")
    assert answer.error == (404, 40403)
    assert "expired after 2 s" in answer.json["message"]
    # Its name is free again, and what it gave out and did not commit is given out again.
    await write(v2, topic, "again")
    assert await values(v2, await subscribed(v2, topic, topic, name="short")) == ["again"]


async def test_a_poll_that_waits_longer_than_the_idle_time_is_a_use(v2: Asker, topic: str) -> None:
    path = await subscribed(v2, topic, topic, **{"consumer.instance.timeout.ms": 1500})
    now = asyncio.get_running_loop().time
    began = now()
    assert await poll(v2, path, 3_000) == []
    status = (await v2.ask("GET", f"{path}/assignments")).status
    assert status == 200 or now() - began > 3 + 1.5, "which is what a busy machine may need"


async def test_names_are_given_once_and_ends_are_final(v2: Asker, topic: str) -> None:
    path = await created(v2, topic, name="mine")
    again = await v2.ask("POST", f"/consumers/{topic}", {"name": "mine"})
    assert again.error == (409, 40902)
    other = await v2.ask("GET", path.replace(topic, "another") + "/records")
    assert other.error == (404, 40403)
    assert (await v2.ask("DELETE", path)).status == 204
    assert (await v2.ask("DELETE", path)).error == (404, 40403)
    for below in ("/records", "/subscription", "/assignments", "/offsets"):
        assert (await v2.ask("GET", path + below)).error == (404, 40403)
    await created(v2, topic, name="mine")


@pytest.mark.parametrize("name", ["a/b", "a%2Fb", "a b", "löwe", "a?b#c", "a'b\"c", "%"])
async def test_any_name_is_safe_in_its_path(v2: Asker, topic: str, name: str) -> None:
    path = await created(v2, topic, name=name)
    assert path.isascii()
    assert path.count("/") == 4
    await v2.good("POST", f"{path}/subscription", {"topics": [topic]})
    await v2.good("DELETE", path)


async def test_paths_may_end_with_a_slash(v2: Asker, topic: str) -> None:
    await write(v2, topic, 1)
    wanted = {"format": "json", "auto.offset.reset": "earliest", "name": "s"}
    await v2.good("POST", f"/consumers/{topic}/", wanted)
    path = f"/consumers/{topic}/instances/s"
    await v2.good("POST", f"{path}/subscription/", {"topics": [topic]})
    assert len(await v2.good("GET", f"{path}/records/?timeout=5000")) == 1
    await v2.good("DELETE", f"{path}/")


async def test_control_takes_json_by_any_of_its_names(v2: Asker, topic: str) -> None:
    for kind in (V2, "application/json", JSON, f"{V2}; charset=utf-8"):
        await v2.good("POST", f"/consumers/{topic}", {"format": "json"}, content_type=kind)
    for wrong in (None, "text/plain"):
        answer = await v2.ask("POST", f"/consumers/{topic}", {}, content_type=wrong)
        assert answer.error == (415, 415)
