"""What the image gives a node is taken up in slices (RULES F1), by topic id (RULES A7)."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import World
from logboat.metadata.image import ClusterImage, PartitionImage, TopicImage
from logboat.metadata.snapshot import compare, empty_image
from logboat.partitions import Role
from logboat.partitions import assignments as assignments_module
from logboat.partitions.assignments import (
    LOOKED_AT_ONCE,
    Assigned,
    Assignments,
    Changed,
    News,
    TopicGone,
    Unassigned,
)
from logboat.wire import ErrorCode
from tests.partitions.replication.replica_scene import ReplicaScene

ME = 1
HERE, ELSEWHERE = (1, 2, 3), (2, 3, 4)


def partition(number: int, replicas: tuple[int, ...] = HERE, epoch: int = 0) -> PartitionImage:
    return PartitionImage(number, replicas, replicas, replicas[0], epoch, epoch)


def topic(name: str, id: int, *partitions: PartitionImage, **fields: object) -> TopicImage:
    plain = TopicImage(name, UUID(int=id), partitions, min_insync_replicas=2, flush_messages=1)
    return replace(plain, **fields)  # type: ignore[arg-type]


def image(index: int, *topics: TopicImage) -> ClusterImage:
    return replace(
        empty_image("c"),
        index=index,
        topics={topic.name: topic for topic in topics},
        topic_names={topic.topic_id: topic.name for topic in topics},
    )


class Node:
    def __init__(self) -> None:
        self.assignments = Assignments(ME)
        self.image = empty_image("c")
        self.turns = 0

    def hear(self, image: ClusterImage) -> None:
        self.assignments.on_change(compare(self.image, image))
        self.image = image

    def take_up(self) -> list[News]:
        news: list[News] = []
        while self.assignments.behind:
            news += self.assignments.take_up(self.image)
            self.turns += 1
        return news

    def news(self, image: ClusterImage) -> list[News]:
        self.hear(image)
        return self.take_up()


def test_a_topic_comes_changes_and_goes() -> None:
    node = Node()
    first = topic("t", 7, partition(0), partition(1, ELSEWHERE))
    assert node.news(image(1, first)) == [Assigned("t", 0, UUID(int=7))]
    more = replace(first, partitions=(*first.partitions, partition(2)))
    assert node.news(image(2, more)) == [Assigned("t", 2, UUID(int=7))]
    elected = replace(more, partitions=(*more.partitions[:2], partition(2, epoch=1)))
    assert node.news(image(3, elected)) == [Changed("t", 2, False)]
    assert node.news(image(4, replace(elected, min_insync_replicas=1))) == [
        Changed("t", 0, False),
        Changed("t", 2, False),
    ]
    assert node.news(image(5, replace(elected, configs={"retention.ms": "1"}))) == [
        Changed("t", 0, True),
        Changed("t", 2, True),
    ]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.news(image(6)) == [
        TopicGone("t"),
        Unassigned("t", 0, UUID(int=7), unknown),
        Unassigned("t", 2, UUID(int=7), unknown),
    ]


def test_a_partition_moves_to_other_nodes() -> None:
    node = Node()
    node.news(image(1, topic("t", 7, partition(0))))
    assert node.news(image(2, topic("t", 7, partition(0, ELSEWHERE)))) == [
        Unassigned("t", 0, UUID(int=7), ErrorCode.NOT_LEADER_OR_FOLLOWER)
    ]


def test_a7_a_topic_made_again_under_its_name_is_another_one() -> None:
    node = Node()
    node.news(image(1, topic("t", 7, partition(0))))
    assert node.news(image(3, topic("t", 8, partition(0)))) == [
        TopicGone("t"),
        Unassigned("t", 0, UUID(int=7), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        Assigned("t", 0, UUID(int=8)),
    ]


def test_a_topic_that_came_and_went_in_between_was_never_there() -> None:
    node = Node()
    node.hear(image(1, topic("t", 7, partition(0))))
    node.hear(image(2))
    assert node.take_up() == []


def test_f1_thousands_of_partitions_are_taken_up_over_many_turns() -> None:
    node = Node()
    large = topic("large", 1, *(partition(number) for number in range(1_000)))
    small = [topic(f"small-{id}", id, partition(0)) for id in range(2, 1_002)]
    assert len(node.news(image(1, large, *small))) == 2_000
    assert node.turns >= 2_000 // LOOKED_AT_ONCE
    node.turns = 0
    elected = replace(large, partitions=tuple(partition(n, epoch=1) for n in range(1_000)))
    node.hear(image(2, elected, *small))
    first = node.assignments.take_up(node.image)
    assert len(first) == LOOKED_AT_ONCE
    # Meanwhile it is deleted: who was told of a part of it is told of its end.
    node.hear(image(3, *small))
    rest = node.take_up()
    assert len(rest) == 1_000 - LOOKED_AT_ONCE + 1 + 1_000
    assert rest[-1] == Unassigned("large", 999, UUID(int=1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_whatever_comes_in_between_a_node_ends_with_what_the_image_gives_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assignments_module, "LOOKED_AT_ONCE", 3)
    for seed in range(200):
        rng, node, held = Random(seed), Node(), dict[tuple[str, int], tuple[UUID, PartitionImage]]()
        topics = dict[str, TopicImage]()
        for index in range(1, 40):
            name = rng.choice("abc")
            count = rng.choice((1, 2, 3, 4, 7))
            if name in topics and rng.random() < 0.3:
                del topics[name]
            elif name in topics and rng.random() < 0.7:
                changed = list(topics[name].partitions)
                number = rng.randrange(len(changed))
                changed[number] = partition(number, rng.choice((HERE, ELSEWHERE)), index)
                topics[name] = replace(topics[name], partitions=tuple(changed))
            else:
                replicas = [rng.choice((HERE, ELSEWHERE)) for _ in range(count)]
                topics[name] = topic(
                    name, index, *(partition(n, r) for n, r in enumerate(replicas))
                )
            node.hear(image(index, *topics.values()))
            last = index == 39
            for _ in range(100 if last else rng.choice((0, 1, 1, 2))):
                for news in node.assignments.take_up(node.image):
                    follow(held, news, node.image)
        expected = {
            (t.name, p.partition): (t.topic_id, p)
            for t in topics.values()
            for p in t.partitions
            if ME in p.replicas
        }
        assert held == expected, seed


def test_f1_no_log_is_set_aside_while_the_image_is_still_being_taken_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stored log that nobody seems to want may be wanted by what was not yet looked at."""
    monkeypatch.setattr(assignments_module, "LOOKED_AT_ONCE", 1)
    with World(1) as world:
        scene = ReplicaScene(world, nodes=1)
        scene.create(1, min_isr=1, partitions=4)
        scene.await_role(1, Role.LEADER)
        assert scene.produce(1, b"kept").error == ErrorCode.NONE
        scene.kill(1)
        scene.start(1)
        for number in range(4):
            scene.await_role(1, Role.LEADER, number)
        assert scene.consume(1) == [b"kept"]
        assert not [name for name in scene.nodes[1].host.disk.list("data") if "stray" in name]


def follow(
    held: dict[tuple[str, int], tuple[UUID, PartitionImage]], news: News, image: ClusterImage
) -> None:
    """As replicas do: what changed is looked up in the newest image, if that still has it."""
    if isinstance(news, TopicGone):
        return
    key = news.topic, news.partition
    now = image.topics.get(news.topic)
    if isinstance(news, Unassigned):
        assert held.pop(key)[0] == news.topic_id
    elif isinstance(news, Assigned):
        assert key not in held
        held[key] = (news.topic_id, PartitionImage(0, (), (), -1, 0, 0))
    if isinstance(news, Assigned | Changed) and now is not None and now.topic_id == held[key][0]:
        held[key] = (now.topic_id, now.partitions[news.partition])
