"""What holds after every command of any log (RULES A1, A3, B1, D8)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.metadata.apply import apply
from logboat.metadata.codec import decode_command, encode_command
from logboat.metadata.commands import ReplicasLost
from logboat.metadata.draft import ImageDraft
from logboat.metadata.elections import change_partition
from logboat.metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from logboat.metadata.snapshot import (
    compare,
    decode_snapshot,
    digest_of,
    empty_image,
    encode_snapshot,
)
from tests.metadata.random_commands import Walk

seeds = st.integers(0, 2**32)
STEPS = 60


def check_partition(image: ClusterImage, topic: TopicImage, partition: PartitionImage) -> None:
    replicas = set(partition.replicas)
    isr, elr = set(partition.isr), set(partition.elr)
    alive = {node_id for node_id, broker in image.brokers.items() if broker.active}
    assert partition.leader == NO_LEADER or partition.leader in isr
    assert isr <= replicas & alive
    assert elr <= replicas - isr
    assert set(partition.last_known_elr) <= replicas - isr - elr
    minimum = min(topic.min_insync_replicas, len(replicas))
    assert len(isr) < minimum or not elr
    assert bool(isr) == (partition.leader != NO_LEADER)
    if partition.leader == NO_LEADER:
        assert not elr & alive
    else:
        assert partition.last_known_leader == NO_LEADER


def check_image(image: ClusterImage) -> None:
    assert {topic.topic_id: name for name, topic in image.topics.items()} == dict(image.topic_names)
    for name, topic in image.topics.items():
        assert name == topic.name
        for number, partition in enumerate(topic.partitions):
            assert partition.partition == number
            check_partition(image, topic, partition)


def check_step(before: ClusterImage, after: ClusterImage, *, lossy: bool) -> None:
    for topic in after.topics.values():
        old_topic = before.topic_by_id(topic.topic_id)
        if old_topic is None:
            continue
        for old, new in zip(old_topic.partitions, topic.partitions, strict=False):
            grown = new.leader_epoch - old.leader_epoch
            # A leader that has lost data may be elected again, but in a new epoch.
            assert grown == (new.leader != old.leader) or (lossy and grown == 1)
            assert new.partition_epoch - old.partition_epoch == (new != old)
            assert sorted(new.replicas) == sorted(old.replicas)
            restarted = new.leader != NO_LEADER and (
                before.brokers[new.leader].broker_epoch != after.brokers[new.leader].broker_epoch
                if new.leader in before.brokers
                else True
            )
            # B1: whoever leads in an epoch has led it in one life only.
            assert not restarted or new.leader_epoch > old.leader_epoch


@given(seed=seeds)
@settings(max_examples=60, deadline=None)
def test_every_image_of_any_log_is_consistent(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(STEPS):
        before = walk.cluster.image
        command = walk.step()
        check_image(walk.cluster.image)
        check_step(before, walk.cluster.image, lossy=isinstance(command, ReplicasLost))


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_a_partition_is_always_where_the_election_rules_leave_it(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()
    draft = ImageDraft(walk.cluster.image)
    for topic in walk.cluster.image.topics.values():
        for partition in topic.partitions:
            assert change_partition(partition, draft.rules(topic)) is partition


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_a1_same_commands_give_the_same_image_from_a_snapshot_of_any_moment(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()
    log = walk.cluster.log
    cut = seed % len(log)
    image = empty_image("test-cluster")
    for index, command in log[:cut]:
        image, _ = apply(image, index, decode_command(encode_command(command)))
    jumped = decode_snapshot(encode_snapshot(image))
    assert jumped == image
    for index, command in log[cut:]:
        image, result = apply(image, index, command)
        jumped, again = apply(jumped, index, decode_command(encode_command(command)))
        assert again == result
        assert encode_snapshot(jumped) == encode_snapshot(image)
    assert digest_of(image) == digest_of(walk.cluster.image)


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_a7_changes_lead_from_any_image_to_any_later_one(seed: int) -> None:
    walk = Walk(seed)
    images = [walk.cluster.image]
    for _ in range(STEPS):
        walk.step()
        images.append(walk.cluster.image)
    before, after = images[seed % len(images)], images[-1]
    for later in (after, decode_snapshot(encode_snapshot(after))):
        change = compare(before, later)
        topics = {t.topic_id: t for t in before.topics.values()}
        for gone in change.deleted_topics:
            del topics[gone.topic_id]
        topics.update({t.topic_id: t for t in change.changed_topics})
        assert topics == {t.topic_id: t for t in later.topics.values()}
        assert set(change.changed_brokers) == {
            node_id
            for node_id in before.brokers.keys() | later.brokers.keys()
            if before.brokers.get(node_id) != later.brokers.get(node_id)
        }


def test_a1_two_hash_seeds_give_the_same_bytes() -> None:
    script = (
        "from tests.metadata.random_commands import Walk\n"
        "from logboat.metadata.snapshot import digest_of\n"
        "from logboat.metadata.codec import encode_command\n"
        "import hashlib\n"
        "for seed in range(5):\n"
        "    walk = Walk(seed)\n"
        "    log = hashlib.sha256()\n"
        "    for _ in range(200): log.update(encode_command(walk.step()))\n"
        "    print(log.hexdigest(), digest_of(walk.cluster.image).hex())\n"
    )
    root = Path(__file__).parents[2]
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 5
