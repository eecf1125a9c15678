"""Order within a key: of polls, of sends, and of appends across clients (L2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, pairwise
from operator import gt, sub
from typing import Any

from ...history import NEVER, History, Outcome
from ..running_maximum import running_maximum
from ..verdict import Anomaly
from .content import excused
from .records import MOVING, NOBODY, KeyLog, Records
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
        for poll in log.jumbled:
            operation, offsets = log.polls[poll]
            if key in rebalanced_keys(records.history, operation):
                continue
            places = [log.index_of[offset] for offset in offsets]
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
        {"key": log.key, "offset": second, "since": first},
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
        positions: dict[Any, tuple[int, int]] = {}
        following = zip(log.polls, log.first_polled, log.last_polled, strict=True)
        for (operation, _), after, last in following:
            process = processes[operation]
            there = positions.get(process)
            positions[process] = (last, operation)
            if there is None:
                continue
            before, earlier = there
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
    functions = history.function
    # Few operations move anything: those of these functions, and those whose outcome is not OK (0).
    everything = range(len(functions))
    candidates: Iterable[int] = everything
    if MOVING.isdisjoint(functions):
        candidates = compress(everything, history.outcome)
    for index in candidates:
        if functions[index] in MOVING:
            kept = frozenset(history.argument[index] or ())
            moves.setdefault(history.process[index], []).append((index, kept))
        elif history.outcome[index] != Outcome.OK and asked_to_poll(history.argument[index]):
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
        for operation, values in log.sends if log.more_sends else ():
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
        if log.plain and each_sent_in_order(log.writers, processes):
            continue
        latest: dict[Any, tuple[int, int]] = {}
        for operation, values in log.sends:
            if not records.certain[operation]:
                continue
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


def each_sent_in_order(writers: Sequence[int], processes: Sequence[Any]) -> bool:
    """The quick answer for a plain log: going up it, no process's operations go back."""
    latest: dict[Any, int] = {}
    for writer in writers:
        process = processes[writer]
        if latest.get(process, NOBODY) > writer:
            return False
        latest[process] = writer
    return True


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
    if not log.plain:
        return False
    known = log.writers if log.told else [w for w in log.writers if w != NOBODY]
    invoked, completed = history.invoked, history.completed
    begun = running_maximum([invoked[writer] for writer in known])
    return not any(map(gt, begun, [completed[writer] for writer in known]))


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
                {"key": log.key, "offset": offset, "since": highest},
            )


def worst_realtime_lag(records: Records) -> tuple[int, str, int] | None:
    """(nanoseconds, key, operation) of the stalest poll: how long before its invocation the
    record after its last one was already known to exist. A lower bound; never a failure.
    """
    begun, done = records.history.invoke_time, records.history.complete_time
    worst: tuple[int, str, int] | None = None
    for key, log in records.keys.items():
        # By index: when a client first knew of this record or of a later one.
        if log.told and not records.uncertain:
            known = [done[writer] for writer in log.writers]
        else:
            known = [NEVER] * len(log.offsets)
            for value, offset in log.acked.items():
                place = log.index_of[offset]
                known[place] = min(known[place], done[log.writer[value]])
        known.append(NEVER)
        readers = [operation for operation, _ in log.polls]
        for operation, place in zip(readers, log.last_polled, strict=True):
            if done[operation] < known[place]:
                known[place] = done[operation]
        first = NEVER  # (`accumulate(..., min)` takes five times as long.)
        known = [first := place if place < first else first for place in reversed(known)]
        known.reverse()
        after = map(known[1:].__getitem__, log.last_polled)
        lags = map(sub, map(begun.__getitem__, readers), after)
        lag, operation = max(zip(lags, readers, strict=True), default=(0, NOBODY))
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
