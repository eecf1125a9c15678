"""What is looked at when all is over: replicas against each other, the history by the checkers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..checkers import Status, Verdict, kafka
from ..checkers.polynomial.log import LogHistory, check_log
from ..history import History, Operation, Outcome
from ..history.history import history_of
from ..judge import judge_run
from .disks import Key
from .ledger import Ledger

TOLD = 5
"""Anomalies of one verdict that are told."""


def replica_divergence(ledger: Ledger, ends: Mapping[Key, int]) -> Iterator[str]:
    """RULES V4: batches, not files, up to the watermark; from where none may have been deleted."""
    for key, partition in ledger.partitions():
        if ledger.compacted.has(key):
            yield from _other_values(ledger, key, partition.replicas, ends[key])
            continue
        reference: list[tuple[int, tuple[int, int, int]]] | None = None
        for node_id in partition.replicas:
            batches = [
                (batch.base_offset, batch.name)
                for batch in ledger.disks[node_id].batches(key)
                if ledger.start(key) <= batch.base_offset < ends[key]
            ]
            if reference is None:
                reference = batches
            elif batches != reference:
                at = next(
                    (one[0] for one, two in zip(reference, batches, strict=False) if one != two),
                    min(len(reference), len(batches)),
                )
                yield f"divergence: {key} on node {node_id} differs from another at {at}"


def _other_values(ledger: Ledger, key: Key, replicas: Sequence[int], end: int) -> Iterator[str]:
    """Of keys; of one that a replica may have forgotten nothing is said."""
    first, *others = (ledger.compacted.last(node_id, key, end) for node_id in replicas)
    for other in others:
        for record_key in sorted(first.keys() & other.keys()):
            if first[record_key] != other[record_key]:
                yield f"divergence: {key} differs in the last value of {record_key}"


def judge_history(history: History, given_up: Sequence[Key] = ()) -> list[str]:
    """The Kafka suite over all of it, and each partition as a log that must be linearizable.

    Schedules stay inside the guarantee of synced topics, so nothing that the history tells of disks
    or of the ISR is an excuse, unless a partition that trusts the page cache was `given_up`: then
    the history says of each record whether the promise on it was in force.
    """
    ledger = kafka.Ledger.of(history) if given_up else kafka.Ledger()
    found = _told("Kafka", judge_run(history, model="Kafka", ledger=ledger).verdict)
    for key, log in sorted(logs_of(history).items()):
        if key not in given_up:
            found += _told(f"log {key}", check_log(LogHistory.of(log)))
    return found


def _told(model: str, verdict: Verdict) -> list[str]:
    if verdict.status is Status.VALID:
        return []
    if not verdict.anomalies:
        return [f"history: {model}: {verdict.reason}"]
    return [f"history: {model}: {anomaly}" for anomaly in verdict.anomalies[:TOLD]]


def logs_of(history: History) -> dict[str, History]:
    """By partition: each record's send as an append, each record polled as a read of its offset."""
    by_key: dict[str, list[Operation]] = {}
    for operation in history:
        if operation.function == "send":
            _appends(operation, by_key)
        elif operation.function == "poll" and operation.outcome is Outcome.OK:
            _reads(operation, by_key)
    return {key: history_of(operations) for key, operations in by_key.items()}


def _appends(operation: Operation, by_key: dict[str, list[Operation]]) -> None:
    ok = operation.outcome is Outcome.OK
    for _, key, sent in operation.result if ok else operation.argument:
        offset, value = sent if ok else (None, sent)
        by_key.setdefault(key, []).append(_part(operation, "append", value, offset))


def _reads(operation: Operation, by_key: dict[str, list[Operation]]) -> None:
    for _, polled in operation.result:
        for key, records in polled.items():
            for offset, value in records:
                by_key.setdefault(key, []).append(_part(operation, "read", offset, value))


def _part(operation: Operation, function: str, argument: object, result: object) -> Operation:
    return Operation(
        index=operation.index,
        process=operation.process,
        function=function,
        argument=argument,
        result=result,
        outcome=operation.outcome,
        invoked=operation.invoked,
        completed=operation.completed,
        invoke_time=operation.invoke_time,
        complete_time=operation.complete_time,
    )
