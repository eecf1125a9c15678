"""Order within a key: of polls, of sends, and of appends across clients (L2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import gt
from typing import Any

from ...history import NEVER, History, Outcome
from ..verdict import Anomaly
from .content import excused
from .records import KeyLog, Records
from .settings import KafkaSettings


def skipped(log: KeyLog, before: int, after: int, settings: KafkaSettings) -> int | None:
    """The first index strictly between that must not be jumped over."""
    for place in range(before + 1, after):
        if not excused(log, place, settings):
            return place
    return None


def rebalanced_keys(history: History, index: int) -> frozenset[str]:
    """Keys that moved while the operation ran; the client lists them in `rebalance-log`."""
    event = history.extra.get(index)
    if event is None:
        return frozenset()
    entries = event.get("rebalance-log") or ()
    return frozenset(key for entry in entries for key in entry.get("keys", ()))


def polls_inside(records: Records, settings: KafkaSettings) -> Iterator[Anomaly]:
    """`int-poll-skip` and `int-nonmonotonic-poll`: within one operation."""
    for key, log in records.keys.items():
        index_of = log.index_of
        for operation, offsets in log.polls:
            if len(offsets) < 2:
                continue
            first = index_of[offsets[0]]
            if offsets == log.offsets[first : first + len(offsets)]:
                continue  # the rule: what the log holds, as it holds it
            places = [index_of[offset] for offset in offsets]
            if key in rebalanced_keys(records.history, operation):
                continue
            for before, after in pairwise(places):
                if after <= before:
                    yield poll_anomaly("int-nonmonotonic-poll", log, before, after, (operation,))
                elif after > before + 1 and skipped(log, before, after, settings) is not None:
                    yield poll_anomaly("int-poll-skip", log, before, after, (operation,))


def poll_anomaly(
    kind: str, log: KeyLog, before: int, after: int, operations: tuple[int, ...]
) -> Anomaly:
    first, second = log.offsets[before], log.offsets[after]
    verb = "skips from" if after > before else "goes back from"
    return Anomaly(
        kind,
        f"{log.key!r} {verb} offset {first} to {second}",
        operations,
        {"key": log.key, "offset": second},
    )


def polls_between(records: Records, settings: KafkaSettings) -> Iterator[Anomaly]:
    """`poll-skip` and `nonmonotonic-poll`: from one ok poll of a process to its next.

    An assignment that drops the key forgets its position, and so does a poll of the process whose
    outcome is not ok: nobody knows where that left it.
    """
    history = records.history
    processes = history.process
    moves = position_moves(records)
    for log in records.keys.values():
        index_of = log.index_of
        positions: dict[Any, tuple[int, int]] = {}
        for operation, offsets in log.polls:
            process = processes[operation]
            there = positions.get(process)
            positions[process] = (index_of[offsets[-1]], operation)
            if there is None:
                continue
            before, earlier = there
            after = index_of[offsets[0]]
            if after == before + 1:
                continue
            if process in moves and forgot(moves[process], log.key, earlier, operation):
                continue
            if log.key in rebalanced_keys(history, operation):
                continue
            if after <= before:
                yield poll_anomaly("nonmonotonic-poll", log, before, after, (earlier, operation))
            elif skipped(log, before, after, settings) is not None:
                yield poll_anomaly("poll-skip", log, before, after, (earlier, operation))


Move = tuple[int, frozenset[str]]
"""(operation, the keys whose position it keeps)."""


def position_moves(records: Records) -> dict[Any, list[Move]]:
    """By process: its assignments, and its polls that left nobody knows where."""
    history = records.history
    moves: dict[Any, list[Move]] = {}
    ok = Outcome.OK.value
    for index, function in enumerate(history.function):
        if function in ("assign", "subscribe"):
            kept = frozenset(history.argument[index] or ())
            moves.setdefault(history.process[index], []).append((index, kept))
        elif history.outcome[index] != ok and asked_to_poll(history.argument[index]):
            moves.setdefault(history.process[index], []).append((index, frozenset()))
    return moves


def forgot(moves: list[Move], key: str, earlier: int, later: int) -> bool:
    """Whether a move between two polls dropped the key's position."""
    first = bisect_right(moves, earlier, key=lambda move: move[0])
    for operation, kept in moves[first:]:
        if operation >= later:
            return False
        if key not in kept:
            return True
    return False


def asked_to_poll(argument: Any) -> bool:
    return any(type(micro) is list and micro and micro[0] == "poll" for micro in argument or ())


def sends_inside(records: Records) -> Iterator[Anomaly]:
    """`int-nonmonotonic-send` and `int-send-skip`: between the sends of one transaction."""
    for log in records.keys.values():
        for operation, values in log.sends:
            if len(values) < 2 or not records.certain[operation]:
                continue
            places = [place for place in map(log.index, values) if place is not None]
            for before, after in pairwise(places):
                if after <= before:
                    yield poll_anomaly("int-nonmonotonic-send", log, before, after, (operation,))
                elif after > before + 1:
                    yield poll_anomaly("int-send-skip", log, before, after, (operation,))


def sends_between(records: Records) -> Iterator[Anomaly]:
    """`nonmonotonic-send`: a process's later operation got an index not above its earlier one."""
    processes = records.history.process
    for log in records.keys.values():
        latest: dict[Any, tuple[int, int]] = {}
        for operation, values in log.sends:
            if not records.certain[operation]:
                continue
            if len(values) == 1:
                place = log.index(values[0])
                if place is None:
                    continue
                first = last = place
            else:
                places = [place for place in map(log.index, values) if place is not None]
                if not places:
                    continue
                first, last = min(places), max(places)
            process = processes[operation]
            before = latest.get(process)
            if before is not None and first <= before[0]:
                both = (before[1], operation)
                yield poll_anomaly("nonmonotonic-send", log, before[0], first, both)
            latest[process] = (last, operation)


def append_order_inversions(records: Records) -> Iterator[Anomaly]:
    """A send acknowledged before another was invoked has the higher offset, whoever sent them."""
    history = records.history
    for log in records.keys.values():
        if appended_in_order(records, log):
            continue
        acks: list[tuple[int, int, int]] = []
        begun: list[tuple[int, int, int]] = []
        for operation, values in log.sends:
            if not records.certain[operation]:
                continue
            done = history.completed[operation]
            for value in values:
                offset = log.offset_of.get(value)
                if offset is None:
                    continue
                begun.append((history.invoked[operation], offset, operation))
                if done != NEVER:
                    # What was acknowledged is the offset of the answer, not a duplicate's.
                    acks.append((done, log.acked.get(value, offset), operation))
        acks.sort()
        begun.sort()
        yield from inverted(log, acks, begun)


def appended_in_order(records: Records, log: KeyLog) -> bool:
    """The quick answer for a log without an inversion: going up the offsets, no append completed
    before one below it was invoked. Says nothing where values repeat.
    """
    history = records.history
    if log.repeated or log.conflicts:
        return False
    writers = [log.writer.get(log.value_at[offset]) for offset in log.offsets]
    known = [writer for writer in writers if writer is not None]
    begun = accumulate(map(history.invoked.__getitem__, known), max)
    return not any(map(gt, begun, map(history.completed.__getitem__, known)))


def inverted(
    log: KeyLog, acks: Sequence[tuple[int, int, int]], begun: Sequence[tuple[int, int, int]]
) -> Iterator[Anomaly]:
    position, highest, holder = 0, -1, -1
    for invoked, offset, operation in begun:
        while position < len(acks) and acks[position][0] < invoked:
            if acks[position][1] > highest:
                highest, holder = acks[position][1], acks[position][2]
            position += 1
        if offset < highest:
            yield Anomaly(
                "append-order-inversion",
                f"offset {offset} of {log.key!r} went to a send that began after "
                f"offset {highest} was acknowledged",
                (holder, operation),
                {"key": log.key, "offset": offset},
            )


def worst_realtime_lag(records: Records) -> tuple[int, str, int] | None:
    """(nanoseconds, key, operation) of the stalest poll: how long before its invocation the
    record after its last one was already known to exist. A lower bound; never a failure.
    """
    history = records.history
    worst: tuple[int, str, int] | None = None
    for key, log in records.keys.items():
        known = [NEVER] * (len(log.offsets) + 1)
        index_of, writer, done = log.index_of, log.writer, history.complete_time
        for value, offset in log.acked.items():
            place, time = index_of[offset], done[writer[value]]
            if time < known[place]:
                known[place] = time
        last = [index_of[offsets[-1]] for _, offsets in log.polls]
        for (operation, _), place in zip(log.polls, last, strict=True):
            if done[operation] < known[place]:
                known[place] = done[operation]
        known = list(accumulate(reversed(known), min))[::-1]
        begun = history.invoke_time
        for (operation, _), place in zip(log.polls, last, strict=True):
            after = known[place + 1]
            lag = begun[operation] - after
            if lag > 0 and (worst is None or lag > worst[0]):
                worst = (lag, key, operation)
    return worst


__all__ = [
    "append_order_inversions",
    "polls_between",
    "polls_inside",
    "sends_between",
    "sends_inside",
    "worst_realtime_lag",
]
