"""The state machine under the quorum's log (RULES A3, A6, A7)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from logboat.metadata.codec import encode_command
from logboat.metadata.commands import Command, CreateTopics, DeleteTopics, Digest, NewController
from logboat.metadata.image import ImageChange
from logboat.metadata.machine import DIGEST_INTERVAL, MetadataMachine
from logboat.metadata.snapshot import digest_of
from logboat.seam import Fatal, all_at_once
from tests.metadata.cluster_builder import Cluster, new_topic, topic_id


class Log:
    """A machine, its changes, its fatal errors, and the commands of a builder fed to it."""

    def __init__(self) -> None:
        self.fatal: list[BaseException] = []
        self.failed = asyncio.Event()
        self.changes: list[ImageChange] = []
        self.digests: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        self.machine = MetadataMachine(cluster_id="test-cluster", on_fatal=self._on_fatal)
        self.machine.subscribe(self.changes.append)
        self.machine.subscribe_to_digests(lambda *made: self.digests.put_nowait(made))
        self.fed = 0

    def _on_fatal(self, error: BaseException) -> None:
        self.fatal.append(error)
        self.failed.set()

    def feed(self, cluster: Cluster) -> None:
        for index, command in cluster.log[self.fed :]:
            self.apply(index, command)
        self.fed = len(cluster.log)

    def apply(self, index: int, command: Command) -> object:
        return all_at_once(self.machine.apply(index, encode_command(command)))


async def test_parts_are_handed_every_change_in_log_order() -> None:
    cluster, log = Cluster(), Log()
    cluster.create((1, 2, 3))
    cluster.fence(1)
    log.feed(cluster)
    assert [change.after.index for change in log.changes] == list(range(1, cluster.index + 1))
    for earlier, later in zip(log.changes, log.changes[1:], strict=False):
        assert later.before is earlier.after
    assert [topic.name for topic in log.changes[-1].changed_topics] == ["t"]
    assert log.changes[-1].changed_brokers == (1,)
    assert log.machine.image == cluster.image


async def test_late_subscriber_starts_with_the_present_image() -> None:
    cluster, log = Cluster(), Log()
    cluster.create((1, 2, 3))
    log.feed(cluster)
    late: list[ImageChange] = []
    log.machine.subscribe(late.append)
    assert [topic.name for topic in late[0].changed_topics] == ["t"]
    assert late[0].changed_brokers == (1, 2, 3)
    assert late[0].before.index == 0


async def test_a7_topic_deleted_and_recreated_across_a_snapshot_is_seen_as_both() -> None:
    cluster, log = Cluster(), Log()
    cluster.create((1, 2, 3))
    log.feed(cluster)
    other = Log()
    cluster.must(DeleteTopics(cluster.epoch, (topic_id("t"),), None))
    again = replace(new_topic("t"), topic_id=topic_id("another"))
    cluster.must(CreateTopics(cluster.epoch, (again,), None))
    other.feed(cluster)
    log.machine.decode(other.machine.capture()())(cluster.index + 5)
    change = log.changes[-1]
    assert [topic.topic_id for topic in change.deleted_topics] == [topic_id("t")]
    assert [topic.topic_id for topic in change.changed_topics] == [topic_id("another")]
    assert log.machine.image == cluster.image


async def test_a6_waiting_ends_when_the_image_has_reached_the_index() -> None:
    log = Log()
    loop = asyncio.get_running_loop()
    far = loop.time() + 60
    waits = [asyncio.create_task(log.machine.wait_for(index, far)) for index in (5, 3, 4)]
    await asyncio.sleep(0)
    log.apply(4, NewController(1, 1))
    assert await waits[1]
    assert await waits[2]
    assert not waits[0].done()
    assert await log.machine.wait_for(4, loop.time())
    log.apply(9, NewController(1, 2))
    assert await waits[0]


async def test_a6_waiting_ends_at_its_deadline() -> None:
    log = Log()
    assert not await log.machine.wait_for(1, asyncio.get_running_loop().time())
    log.apply(1, NewController(1, 1))


async def test_a6_cancelled_waiter_is_forgotten() -> None:
    log = Log()
    wait = asyncio.create_task(log.machine.wait_for(1, asyncio.get_running_loop().time() + 60))
    await asyncio.sleep(0)
    wait.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait
    log.apply(1, NewController(1, 1))


async def test_capture_is_the_image_of_that_moment() -> None:
    cluster, log = Cluster(), Log()
    log.feed(cluster)
    image = log.machine.image
    encode = log.machine.capture()
    cluster.create((1, 2))
    log.feed(cluster)
    other = Log()
    other.machine.decode(encode())(image.index)
    assert other.machine.image == image


async def test_snapshot_of_another_cluster_or_of_the_past_is_fatal() -> None:
    log = Log()
    stranger = MetadataMachine(cluster_id="other", on_fatal=log.fatal.append)
    with pytest.raises(Fatal, match="cluster"):
        log.machine.decode(stranger.capture()())(3)
    old = Log().machine.capture()()
    log.apply(1, NewController(1, 1))
    with pytest.raises(Fatal, match="applied"):
        log.machine.decode(old)(0)


async def test_a3_digest_is_made_every_thousand_commands_also_when_indexes_skip() -> None:
    log = Log()
    log.apply(1, NewController(1, 1))
    log.apply(DIGEST_INTERVAL + 7, NewController(1, 2))
    at = log.machine.image
    log.apply(DIGEST_INTERVAL + 8, NewController(1, 3))
    assert await log.digests.get() == (DIGEST_INTERVAL + 7, digest_of(at))
    assert log.digests.empty()
    await log.machine.close()


async def test_a3_node_that_differs_from_the_leader_stops() -> None:
    good, bad = Log(), Log()
    index = DIGEST_INTERVAL
    for log in (good, bad):
        log.apply(1, NewController(1, 1))
        log.apply(index, NewController(1, 2))
    _, digest = await good.digests.get()
    good.apply(index + 1, Digest(index, index, digest))
    assert good.fatal == []
    await bad.digests.get()
    with pytest.raises(Fatal, match=f"index {index}"):
        bad.apply(index + 1, Digest(index, index, bytes(32)))
    await good.machine.close()
    await bad.machine.close()


async def test_a3_digest_that_comes_before_the_own_one_is_compared_later() -> None:
    log = Log()
    log.apply(1, NewController(1, 1))
    log.apply(DIGEST_INTERVAL, NewController(1, 2))
    log.apply(DIGEST_INTERVAL + 1, Digest(DIGEST_INTERVAL, DIGEST_INTERVAL, bytes(32)))
    await log.failed.wait()
    assert isinstance(log.fatal[0], Fatal)
    await log.machine.close()
