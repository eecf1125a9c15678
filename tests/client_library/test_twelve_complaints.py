"""What users of other Python clients complain of most, and how it is here."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest

import logboat.client
from logboat.client import (
    Client,
    ClientError,
    Closed,
    Consumer,
    ForkedProcess,
    NotDelivered,
    OutcomeUnknown,
    Producer,
    Reader,
    SyncClient,
    TopicNotFound,
    Unreachable,
)
from logboat.client.sdk import sync_client
from logboat.client.sdk.admin import Admin, GroupAdmin, TopicAdmin
from tests.client_library.stub_node import StubNode, hang

NOBODY = "http://127.0.0.1:1"


@pytest.fixture
async def node() -> AsyncIterator[StubNode]:
    async with StubNode().serving() as stub:
        yield stub


async def test_1_no_constructor_fails_and_an_unreachable_cluster_is_named_with_the_reason() -> None:
    client = Client(NOBODY, request_timeout=1.5)
    async with client:
        with pytest.raises(Unreachable) as seen:
            await client.admin.topics.list()
    assert NOBODY in seen.value.reasons
    assert "Connect call failed" in str(seen.value)


async def test_2_an_unknown_topic_is_named_at_once_with_the_one_that_was_meant(
    node: StubNode,
) -> None:
    async with Client(node.url) as client, client.producer() as producer:
        started = time.monotonic()
        with pytest.raises(TopicNotFound, match="oders") as seen:
            await producer.send("oders", b"x")
    assert time.monotonic() - started < 20
    assert seen.value.did_you_mean == "orders"


async def test_3_a_full_buffer_makes_the_sender_wait_and_nobody_has_to_poll(
    node: StubNode,
) -> None:
    async with Client(node.url) as client, client.producer(buffer_bytes=2_000) as producer:
        for _ in range(200):
            await producer.enqueue("orders", bytes(500))
    assert len(node.values()) == 200


async def test_4_leaving_delivers_everything_and_no_flush_is_needed(node: StubNode) -> None:
    async with Client(node.url) as client, client.producer(linger=10.0) as producer:
        for number in range(100):
            await producer.enqueue("orders", b"%d" % number)
    assert len(node.values()) == 100


@pytest.mark.parametrize(
    "waiting",
    [
        "pass",  # It waits for the first answer, which would tell it of the other nodes.
        "client.admin.cluster()",
        "next(client.tail('t'))",
        "client.producer().send('t', b'x')",
    ],
)
def test_5_ctrl_c_ends_a_sync_client_that_waits(waiting: str) -> None:
    # Nobody answers: that first one is waited for by itself, or not for long.
    learns_s, connections = (600.0, 1) if waiting == "pass" else (0.1, 2)
    program = textwrap.dedent(
        f"""
        import sys
        from logboat.client import SyncClient
        from logboat.client.sdk import client as sdk
        sdk.LEARN_SECONDS = {learns_s}
        with SyncClient(sys.argv[1], request_timeout=600) as client:
            {waiting}
        """
    )
    with (
        ExitStack() as silent,
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen(
            [sys.executable, "-c", program, f"http://127.0.0.1:{server.getsockname()[1]}"],
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        server.settimeout(60)
        try:
            for _ in range(connections):  # Taken, and never answered.
                silent.enter_context(server.accept()[0])
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert told.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT


async def test_6_an_awaited_record_is_decided_without_a_flush(node: StubNode) -> None:
    async with Client(node.url) as client, client.producer(linger=60.0) as producer:
        async with asyncio.timeout(30):
            place = await producer.send("orders", b"x")
    assert place.offset == 0


def test_7_it_is_typed() -> None:
    """What is exported is annotated throughout; that the annotations hold, `make test` says."""
    folder = os.path.dirname(logboat.__file__)
    assert os.path.exists(os.path.join(folder, "py.typed"))
    functions = [
        (f"{name}.{method}", found)
        for name in logboat.client.__all__
        for method, found in vars(getattr(logboat.client, name)).items()
        if inspect.isfunction(found) and (not method.startswith("_") or method == "__init__")
    ]
    assert len(functions) > 50
    for name, function in functions:
        signature = inspect.signature(function)
        parameters = [one for one in signature.parameters.values() if one.name != "self"]
        for one in parameters:
            assert one.annotation is not one.empty, f"{name}: {one.name}"
        assert signature.return_annotation is not signature.empty, name


THIRD_PARTY = {"aiohttp", "orjson", "typing_extensions"}
OF_AIOHTTP = {"aiohappyeyeballs", "aiosignal", "attr", "attrs", "frozenlist", "idna", "multidict"}
OF_AIOHTTP |= {"propcache", "yarl", "brotli", "brotlicffi", "aiodns", "zstandard", "_brotli"}


def test_8_it_needs_no_compiler_and_nothing_of_the_broker() -> None:
    """aiohttp and orjson beside the standard library; no codec of the wire, no Raft engine."""
    program = "import sys; from logboat.client import Client, SyncClient; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    before = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split()
    assert not {"logboat.wire", "logboat.node"} & set(loaded)
    foreign = {name.partition(".")[0] for name in set(loaded) - set(before)}
    foreign = {name for name in foreign if "cython" not in name}  # How wheels were made.
    foreign -= {*sys.stdlib_module_names, "logboat"}
    assert foreign <= THIRD_PARTY | OF_AIOHTTP
    assert "aiohttp" in loaded


def test_8_nothing_runs_before_it_is_asked_to() -> None:
    before = threading.active_count()
    SyncClient(NOBODY)
    Client(NOBODY).producer()
    assert threading.active_count() == before


async def test_9_sending_and_closing_end_in_time_when_the_cluster_hangs(node: StubNode) -> None:
    node.before = hang
    async with Client(node.url) as client:
        producer = client.producer(delivery_timeout=2.0)
        async with asyncio.timeout(30):
            with pytest.raises(OutcomeUnknown):
                await producer.send("orders", b"x")
            await producer.enqueue("orders", b"y")
            report = await producer.close(0.1)
    assert (report.undelivered, report.unseen) == (1, ())


async def test_9_leaving_reports_what_was_not_delivered() -> None:
    async def produce(client: Client) -> None:
        async with client.producer(delivery_timeout=0.3) as producer:
            await producer.enqueue("orders", b"x", partition=0)
            await producer.enqueue("orders", b"y", partition=0)

    async with Client(NOBODY) as client:
        with pytest.raises(NotDelivered, match="2 records"):
            await produce(client)


async def test_10_a_consumer_says_how_it_is() -> None:
    """Also while nodes go and come back, and complaint 11: `test_group_consumers`. Both, and
    complaint 12, on a cluster: `test_client_on_a_cluster`."""
    async with Client(NOBODY, request_timeout=0.5) as client:
        consumer = client.consumer("orders", group="g")
        with pytest.raises(Unreachable):
            async with consumer:
                pass
        assert consumer.state == "joining"


SYNC_TWINS = [
    (Client, SyncClient, set()),
    (Admin, sync_client.SyncAdmin, set()),
    (TopicAdmin, sync_client.SyncTopics, set()),
    (GroupAdmin, sync_client.SyncGroups, set()),
    (Reader, sync_client.SyncReader, set()),
    # A future, and a stream beside the records, are for programs that have a loop.
    (Producer, sync_client.SyncProducer, {"enqueue"}),
    (Consumer, sync_client.SyncConsumer, {"events"}),
]


@pytest.mark.parametrize(("one", "twin", "not_there"), SYNC_TWINS)
def test_6_who_has_no_loop_finds_the_same_names(one: type, twin: type, not_there: set[str]) -> None:
    def names(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert names(one) - not_there <= names(twin)


async def test_a_client_made_before_a_fork_says_so(
    node: StubNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Client(node.url) as client:
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(ForkedProcess, match="fork"):
            await client.admin.topics.list()


async def test_used_outside_its_block_it_says_so() -> None:
    with pytest.raises(Closed, match="async with"):
        await Client(NOBODY).admin.topics.list()


@pytest.mark.parametrize("url", ["127.0.0.1:8082", "https://x", "http://", "http://a/b"])
def test_an_address_that_cannot_be_one_is_refused_at_once(url: str) -> None:
    with pytest.raises(ClientError, match="host:port"):
        Client(url)
