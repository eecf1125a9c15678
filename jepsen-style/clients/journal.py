"""Where clients write down what they did: a history, and a witness who looks at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Protocol

from ..history import History, Outcome, outcome_of_error
from .batches import Shown, name_in
from .requests import TopicPartition

OBSERVER = "observer"
"""In whose name a history says what was seen of the cluster."""
NEMESIS = "nemesis"
"""And what was done to it."""


class Witness(Protocol):
    """Hears of every promise in the moment in which a client does."""

    def acknowledged(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """`acks=all` was answered: the record is committed."""
        ...

    def consumed(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """A consumer was given the record: it is committed."""
        ...

    def deleting(self, partition: TopicPartition, before: int) -> None:
        """Somebody is about to ask for this: no promise holds below `before` any more."""
        ...

    def may_begin_at(self, partition: TopicPartition) -> int:
        """Up to which offset deletion was asked for."""
        ...

    def may_end_before(self, partition: TopicPartition) -> bool:
        """Whether its log may end before what was consumed: a loss outside the guarantee."""
        ...

    def leads_in(self, partition: TopicPartition, node_id: int) -> int | None:
        """The leader epoch in which this node leads it for certain, and must know all that was
        acknowledged; None: it does not, or nobody can tell."""
        ...

    def violation(self, text: str) -> None:
        """A client saw what may never be."""
        ...


class Journal:
    """Writes Jepsen's Kafka operations; `now_ns` is the one clock of the harness."""

    def __init__(self, now_ns: Callable[[], int], witness: Witness) -> None:
        self.history = History()
        self.witness = witness
        self.acknowledged = 0
        """Records."""
        self.acknowledged_in: dict[str, int] = {}
        """The same by partition."""
        self._now_ns = now_ns
        self._processes = count()

    def process(self) -> int:
        """A new one; also for a client whose last operation ended unknown, since it may take
        effect behind whatever that client does next."""
        return next(self._processes)

    def sending(self, process: int, partition: TopicPartition, values: Sequence[Shown]) -> None:
        sends = [["send", partition.key, value] for value in values]
        self.history.invoke(process, "send", sends, self._now_ns())

    def sent(
        self, process: int, partition: TopicPartition, values: Sequence[Shown], base_offset: int
    ) -> None:
        sends = [
            ["send", partition.key, [base_offset + number, value]]
            for number, value in enumerate(values)
        ]
        self.history.complete(process, Outcome.OK, sends, self._now_ns())
        self.acknowledged += len(values)
        before = self.acknowledged_in.get(partition.key, 0)
        self.acknowledged_in[partition.key] = before + len(values)
        for number, value in enumerate(values):
            self.witness.acknowledged(partition, base_offset + number, name_in(value).encode())

    def not_sent(
        self,
        process: int,
        partition: TopicPartition,
        values: Sequence[Shown],
        error: str,
        *,
        earlier_unknown: bool,
    ) -> Outcome:
        """FAIL or INFO, by what `error` says."""
        outcome = outcome_of_error(error, earlier_attempt_unknown=earlier_unknown)
        sends = [["send", partition.key, value] for value in values]
        self.history.complete(process, outcome, sends, self._now_ns())
        return outcome

    def assigned(self, process: int, partitions: Sequence[TopicPartition]) -> None:
        keys = [partition.key for partition in partitions]
        self.history.invoke(process, "assign", keys, self._now_ns())
        self.history.complete(process, Outcome.OK, keys, self._now_ns())

    def polling(self, process: int) -> None:
        self.history.invoke(process, "poll", [["poll"]], self._now_ns())

    def polled(
        self, process: int, found: Mapping[TopicPartition, Sequence[tuple[int, bytes, Shown]]]
    ) -> None:
        """(offset, whole value, what the history shows of it) of each record, in order."""
        polls = {
            partition.key: [[offset, value] for offset, _, value in records]
            for partition, records in found.items()
            if records
        }
        self.history.complete(process, Outcome.OK, [["poll", polls]], self._now_ns())
        for partition, records in found.items():
            for offset, value, _ in records:
                self.witness.consumed(partition, offset, value)

    def ask(self, process: int, function: str, micros: list[Any]) -> None:
        """Any other operation: what was asked."""
        self.history.invoke(process, function, micros, self._now_ns())

    def answer(self, process: int, outcome: Outcome, micros: list[Any]) -> None:
        self.history.complete(process, outcome, micros, self._now_ns())

    def deleting(self, partition: TopicPartition, before: int) -> None:
        """Records below `before` may be gone from now on, whatever becomes of the request."""
        self.observe(OBSERVER, "delete-records", {"key": partition.key, "before": before})
        self.witness.deleting(partition, before)

    def outlived(self, key: str, before: int) -> None:
        """Retention has let a replica begin there: records below may be gone from now on."""
        self.observe(OBSERVER, "retention", {"key": key, "before": before})

    def promised(
        self,
        topic: str,
        *,
        synced: bool,
        replication_factor: int,
        min_insync_replicas: int,
        compacted: bool = False,
    ) -> None:
        """By which promise the topic's records are to be judged (RULES C1, D1). `compacted`: values
        are [record key, ...], and of each key the last one stays."""
        value = {
            "topic": topic,
            "mode": "synced" if synced else "page-cache",
            "replication_factor": replication_factor,
            "min_insync_replicas": min_insync_replicas,
        }
        if compacted:
            value["compacted"] = True
        self.observe(OBSERVER, "durability", value)

    def observe(self, process: str, function: str, value: Any) -> None:
        event = {"process": process, "type": "info", "f": function, "value": value}
        self.history.observe({**event, "time": self._now_ns()})
