"""What an observer of real processes can say of when a change of the ISR came into force."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from logboat.jepsen_style.clients import Journal, TopicPartition
from logboat.jepsen_style.processes.view import RunView
from logboat.testing import LocalCluster


class Nobody:
    """A witness who is told nothing here."""

    def acknowledged(self, partition: TopicPartition, offset: int, value: bytes) -> None: ...

    def consumed(self, partition: TopicPartition, offset: int, value: bytes) -> None: ...

    def deleting(self, partition: TopicPartition, before: int) -> None: ...

    def may_begin_at(self, partition: TopicPartition) -> int:
        return 0

    def may_end_before(self, partition: TopicPartition) -> bool:
        return False

    def leads_in(self, partition: TopicPartition, node_id: int) -> int | None:
        return None

    def violation(self, text: str) -> None: ...


class ThreeNodes:
    node_ids = (1, 2, 3)

    def is_running(self, node_id: int) -> bool:
        return True


class Looks(RunView):
    """What each node answers is set by the test: None for silence, else (ISR, partition epoch)."""

    def __init__(self) -> None:
        self.journal = Journal(lambda: 0, Nobody())
        super().__init__(cast(LocalCluster, ThreeNodes()), ["orders"], self.journal)
        self.answers: dict[int, tuple[list[int], int] | None] = {}

    async def _ask(self, node_id: int, path: str) -> Any:
        answer = self.answers[node_id]
        if answer is None or path == "/api/v1/cluster":
            return None
        isr, epoch = answer
        view = {"partition": 0, "leader": 1, "leader_epoch": 0, "isr": isr, "elr": []}
        return {"partitions": [{**view, "partition_epoch": epoch}]}

    def look(self, node_id: int, *answer: Any) -> None:
        self.answers[node_id] = (answer[0], answer[1]) if answer else None
        asyncio.run(self._look_through(node_id))

    def pass_time(self, events: int) -> int:
        for _ in range(events):
            self.journal.observe("nemesis", "heal", {})
        return self.journal.history.events

    def seen(self) -> list[dict[str, Any]]:
        observations = self.journal.history.observations
        return [event["value"] for _, event in observations if event["f"] == "isr"]


def test_a_change_is_no_older_than_the_last_look_at_whoever_was_looked_at_longest_ago() -> None:
    looks = Looks()
    began = []
    for node_id in (1, 2, 3):
        began.append(looks.pass_time(5))
        looks.look(node_id, [1, 2, 3], 4)
    began.append(looks.pass_time(5))
    looks.look(1, [1, 2, 3], 4)
    looks.pass_time(5)
    looks.look(1, [1, 2], 5)
    assert [seen["isr"] for seen in looks.seen()] == [[1, 2, 3], [1, 2]]
    # Node 2 might have had it right after it was looked at, and nobody knew.
    assert looks.seen()[-1]["proposed"] == began[1]


def test_who_does_not_answer_keeps_a_change_doubtful() -> None:
    looks = Looks()
    looks.look(1, [1, 2, 3], 4)
    looks.look(2, [1, 2, 3], 4)
    third = looks.pass_time(5)
    looks.look(3, [1, 2, 3], 4)
    for _ in range(3):
        looks.pass_time(5)
        looks.look(3)
        looks.look(1, [1, 2, 3], 4)
        looks.look(2, [1, 2, 3], 4)
    looks.look(1, [1, 2], 5)
    assert looks.seen()[-1]["proposed"] == third


def test_a_look_that_tells_an_old_state_says_that_nothing_newer_was_there() -> None:
    looks = Looks()
    for node_id in (1, 2, 3):
        looks.look(node_id, [1, 2, 3], 4)
    looks.look(1, [1, 2], 5)
    late = looks.pass_time(5)
    looks.look(2, [1, 2, 3], 4)
    looks.look(3, [1, 2], 5)
    looks.look(1, [1, 2], 5)
    looks.look(1, [1], 6)
    assert looks.seen()[-1]["proposed"] == late


def test_before_all_nodes_were_looked_at_a_change_may_be_as_old_as_the_run() -> None:
    looks = Looks()
    looks.pass_time(5)
    looks.look(1, [1, 2], 5)
    assert looks.seen()[-1]["proposed"] == 0
