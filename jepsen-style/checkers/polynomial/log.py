"""An append-only log with known offsets, in n log n.

Every operation fixes its place among the appends by the offset that it names, so only one order is
left to try. Going up the offsets, an append cannot take effect before any append below it was
invoked: the running maximum of invocations is its earliest possible point, and the history is
linearizable iff that point is not after its completion. Besides:

* a read of the end at e lies between the appends below e and those from e on: it both pushes the
  running maximum and must keep it;
* a read of nothing at o only pushes: the append at o comes after its invocation;
* a read of a value at o must only keep: it completes after the earliest point of append o;
* an indeterminate append has no completion; its offset is where its value was read, and when nobody
  read it, it need not have happened;
* retention moves the log's start up by itself. The start is a second such ladder: a value read at o
  says that the start was at most o, a read refused at o that it was above o.

Example: append a -> 0 [0,5], append b -> 1 [1,2], end -> 0 [3,4]: b's earliest point is 1, the
read pushes 3 below a, so b's point becomes 3, after its completion at 2: not linearizable.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import ge, gt

from ...history import NEVER, History, Outcome
from ...history.edn import freeze
from ..running_maximum import running_maximum
from ..verdict import Anomaly, Verdict, invalid, valid
from .certificate import Certificate, placed


@dataclass(slots=True)
class Column:
    """Operations of one sort: offset, value and time, one entry each."""

    offset: list[int] = field(default_factory=list)
    value: list[Hashable] = field(default_factory=list)
    invoked: list[int] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    number: list[int] = field(default_factory=list)

    def add(self, offset: int, value: Hashable, invoked: int, completed: int, number: int) -> None:
        self.offset.append(offset)
        self.value.append(value)
        self.invoked.append(invoked)
        self.completed.append(completed)
        self.number.append(number)


@dataclass(slots=True)
class LogHistory:
    """`appends` with offsets; `pending` without; `failed` that did not happen. `reads` of a value
    at an offset, `empties` of nothing there, `ends` of the next offset, `starts` of the log start
    and `refusals` of offsets below it (`offset` as asked).
    """

    appends: Column = field(default_factory=Column)
    pending: Column = field(default_factory=Column)
    failed: Column = field(default_factory=Column)
    reads: Column = field(default_factory=Column)
    empties: Column = field(default_factory=Column)
    ends: Column = field(default_factory=Column)
    starts: Column = field(default_factory=Column)
    refusals: Column = field(default_factory=Column)

    @classmethod
    def of(cls, history: History) -> LogHistory:
        """Functions `append`, `read` (answer a value, nil, or `below-start`), `end`, `start`."""
        columns = cls()
        for operation in history:
            times = (operation.invoked, operation.completed, operation.index)
            ok = operation.outcome is Outcome.OK
            if operation.function == "append":
                value = freeze(operation.argument)
                if ok and operation.result is not None:
                    columns.appends.add(operation.result, value, *times)
                elif operation.outcome is Outcome.FAIL:
                    columns.failed.add(-1, value, *times)
                else:
                    columns.pending.add(-1, value, *times)
            elif not ok:
                continue
            elif operation.function == "end":
                columns.ends.add(operation.result, None, *times)
            elif operation.function == "start":
                columns.starts.add(operation.result, None, *times)
            elif operation.result is None:
                columns.empties.add(operation.argument, None, *times)
            elif operation.result == "below-start":
                columns.refusals.add(operation.argument, None, *times)
            else:
                columns.reads.add(operation.argument, freeze(operation.result), *times)
        return columns


def check_log(log: LogHistory, *, retries_duplicate: bool = False, gaps: bool = True) -> Verdict:
    """`retries_duplicate`: one append may have landed at several offsets (no idempotence).
    `gaps`: offsets may hold nothing (control records take them); otherwise every offset below
    another one, or below the end, was filled by some append.
    """
    for column in (log.appends, log.ends, log.starts):
        if column.offset and min(column.offset) < 0:
            number = column.number[column.offset.index(min(column.offset))]
            return invalid(Anomaly("negative-offset", "no log has such an offset", (number,)))
    appends, problem = placed_appends(log, retries_duplicate)
    if problem is None and not gaps:
        appends, problem = filled(log, appends)
    if problem is not None:
        return invalid(problem)
    order = in_order(appends.offset)
    offsets = sorted(appends.offset)
    invoked = [appends.invoked[position] for position in order]
    completed = [appends.completed[position] for position in order]
    for sort in (log.ends, log.empties):
        push(sort, offsets, invoked)
    points = running_maximum(invoked)
    late = first_true(map(ge, points, completed))
    if late is not None:
        return stale_append(log, appends, order, points, late)
    problem = late_end(log.ends, log.empties, offsets, points) or late_read(
        log.reads, offsets, points
    )
    if problem is None and (log.starts.offset or log.refusals.offset):
        problem = late_start(log, offsets, points)
    if problem is not None:
        return invalid(problem)
    return valid(certificate=LogCertificate(log, appends, order, points))


def in_order(offsets: list[int]) -> Sequence[int]:
    """The positions by rising offset."""
    if not any(map(gt, offsets, offsets[1:])):
        return range(len(offsets))
    return sorted(range(len(offsets)), key=offsets.__getitem__)


def first_true(flags: map[bool]) -> int | None:
    return next(compress(range(1 << 62), flags), None)


def placed_appends(log: LogHistory, retries_duplicate: bool) -> tuple[Column, Anomaly | None]:
    """The appends that took effect, with offsets; or the contradiction about what is where."""
    acked, reads = log.appends, log.reads
    value_at = dict(zip(acked.offset, acked.value, strict=True))
    if len(value_at) < len(acked.offset):
        return acked, two_values(acked)
    found = list(map(value_at.get, reads.offset))
    if found == reads.value:
        if retries_duplicate or len(set(acked.value)) == len(acked.value):
            return acked, None
        return acked, repeated(acked)
    return learned_appends(log, retries_duplicate, value_at)


def two_values(acked: Column) -> Anomaly:
    there: dict[int, int] = {}
    for offset, number in zip(acked.offset, acked.number, strict=True):
        if offset in there:
            both = (there[offset], number)
            return Anomaly("inconsistent-offsets", f"two appends were given {offset}", both)
        there[offset] = number
    raise AssertionError("called for columns with a repeated offset")


def repeated(acked: Column) -> Anomaly:
    there: dict[Hashable, int] = {}
    for value, number in zip(acked.value, acked.number, strict=True):
        if value in there:
            return Anomaly("duplicate", f"{value!r} has two offsets", (there[value], number))
        there[value] = number
    raise AssertionError("called for columns with a repeated value")


def learned_appends(
    log: LogHistory, retries_duplicate: bool, value_at: dict[int, Hashable]
) -> tuple[Column, Anomaly | None]:
    """Appends whose offset only a read tells: indeterminate ones, and retries that landed twice."""
    appends = copied(log.appends)
    begun = dict(
        zip(
            log.appends.value,
            zip(log.appends.invoked, log.appends.number, strict=True),
            strict=True,
        )
    )
    taken = set(begun)
    for value, invoked, number in zip(
        log.pending.value, log.pending.invoked, log.pending.number, strict=True
    ):
        begun.setdefault(value, (invoked, number))
    failed = dict(zip(log.failed.value, log.failed.number, strict=True))
    for offset, value, reader in zip(
        log.reads.offset, log.reads.value, log.reads.number, strict=True
    ):
        there = value_at.get(offset)
        if there == value and offset in value_at:
            continue
        if offset in value_at:
            text = f"offset {offset} held {there!r} and {value!r}"
            return appends, Anomaly("inconsistent-offsets", text, (reader,))
        if value not in begun:
            if value in failed:
                both = (failed[value], reader)
                return appends, Anomaly("G1a", f"{value!r} failed and was read", both)
            return appends, Anomaly("phantom", f"nobody appended {value!r}", (reader,))
        if value in taken and not retries_duplicate:
            return appends, Anomaly("duplicate", f"{value!r} is also at {offset}", (reader,))
        taken.add(value)
        value_at[offset] = value
        invoked, number = begun[value]
        appends.add(offset, value, invoked, NEVER, number)
    if len(set(appends.value)) < len(appends.value) and not retries_duplicate:
        return appends, repeated(appends)
    return appends, None


def filled(log: LogHistory, appends: Column) -> tuple[Column, Anomaly | None]:
    """Indeterminate appends in the offsets that must hold something; the earliest one lowest,
    since it constrains least there.
    """
    known = set(appends.offset)
    end = max([*(offset + 1 for offset in known), *log.ends.offset, *log.starts.offset, 0])
    holes = [offset for offset in range(end) if offset not in known]
    if not holes:
        return appends, None
    appends = copied(appends)
    used = set(appends.value)
    spare = sorted(
        (invoked, number, value)
        for invoked, number, value in zip(
            log.pending.invoked, log.pending.number, log.pending.value, strict=True
        )
        if value not in used
    )
    if len(spare) < len(holes):
        return appends, Anomaly("missing-append", f"nobody can have filled offset {holes[-1]}")
    for offset, (invoked, number, value) in zip(holes, spare, strict=False):
        appends.add(offset, value, invoked, NEVER, number)
    return appends, None


def copied(column: Column) -> Column:
    return Column(
        list(column.offset),
        list(column.value),
        list(column.invoked),
        list(column.completed),
        list(column.number),
    )


def push(sort: Column, offsets: list[int], invoked: list[int]) -> None:
    """Appends from the named offset on come after this operation was invoked."""
    count = len(offsets)
    for end, begin in zip(sort.offset, sort.invoked, strict=True):
        position = end if end < count and offsets[end] == end else bisect_left(offsets, end)
        if position < count and invoked[position] < begin:
            invoked[position] = begin


def stale_append(
    log: LogHistory, appends: Column, order: Sequence[int], points: list[int], late: int
) -> Verdict:
    """Name the operation that pushed the point past the completion."""
    pusher = next(
        (
            column.number[position]
            for column in (appends, log.ends, log.empties)
            for position, invoked in enumerate(column.invoked)
            if invoked == points[late]
        ),
        -1,
    )
    victim = order[late]
    return invalid(
        Anomaly(
            "append-order-inversion",
            f"offset {appends.offset[victim]} was acknowledged before something below it began",
            (pusher, appends.number[victim]),
        )
    )


def late_end(
    ends: Column, empties: Column, offsets: list[int], points: list[int]
) -> Anomaly | None:
    """Reads of the end, by rising answer: each keeps what lies below, and pushes the next."""
    if empties.offset:
        ends = copied(ends)
        for offset, begin, number in zip(
            empties.offset, empties.invoked, empties.number, strict=True
        ):
            ends.add(offset, None, begin, NEVER, number)
    answers, invoked, completed = ends.offset, ends.invoked, ends.completed
    above = -1  # the running maximum of reads with a smaller answer
    pending = -1  # and of those with this one
    current = -1
    count = len(offsets)
    for asked in in_order(answers):
        end, begin = answers[asked], invoked[asked]
        # This runs for every read of the end: comparisons instead of calls of max.
        if end != current:
            current = end
            if pending > above:
                above = pending
        position = end if end < count and offsets[end] == end else bisect_left(offsets, end)
        point = points[position - 1] if position else -1
        if above > point:
            point = above
        if begin > point:
            point = begin
        if point >= completed[asked]:
            text = f"the end was read as {end} when it was larger or smaller"
            return Anomaly("stale-end", text, (ends.number[asked],))
        if begin > pending:
            pending = begin
    return None


def late_read(reads: Column, offsets: list[int], points: list[int]) -> Anomaly | None:
    """A value was read before its append can have happened."""
    if not offsets:
        return None  # no read either: every value read has an append
    if offsets[-1] == len(offsets) - 1:
        earliest = map(points.__getitem__, reads.offset)
    else:
        earliest = map(dict(zip(offsets, points, strict=True)).__getitem__, reads.offset)
    late = first_true(map(ge, earliest, reads.completed))
    if late is None:
        return None
    text = f"offset {reads.offset[late]} was read before it can have been appended"
    return Anomaly("read-before-append", text, (reads.number[late],))


def late_start(log: LogHistory, offsets: list[int], points: list[int]) -> Anomaly | None:
    """The ladder of the log's start: who pushes, who keeps, by rising start."""
    point_of = dict(zip(offsets, points, strict=True))
    # (start, 0 pushes only | 1 both | 2 keeps only, earliest, completed, number)
    steps: list[tuple[int, int, int, int, int]] = []
    for offset, begin, number in zip(
        log.reads.offset, log.reads.invoked, log.reads.number, strict=True
    ):
        steps.append((offset, 0, max(begin, point_of[offset]), NEVER, number))
    for column, shift, role in ((log.starts, 0, 1), (log.refusals, 1, 2)):
        for offset, begin, done, number in zip(
            column.offset, column.invoked, column.completed, column.number, strict=True
        ):
            position = bisect_left(offsets, offset + shift)
            earliest = max(begin, points[position - 1] if position else -1)
            steps.append((offset + shift, role, earliest, done, number))
    steps.sort()
    above = pending = current = -1
    for start, role, earliest, done, number in steps:
        if start != current:
            above, current = max(above, pending), start
        if role and max(earliest, above) >= done:
            text = f"the log start was {start} and later below it, or above the end"
            return Anomaly("start-went-back", text, (number,))
        if role < 2:
            pending = max(pending, earliest)
    return None


class LogCertificate:
    """The order, spelled out only when asked for."""

    def __init__(
        self, log: LogHistory, appends: Column, order: Sequence[int], points: list[int]
    ) -> None:
        self._log, self._appends = log, appends
        self._order, self._points = order, points

    def certificate(self) -> Certificate:
        offsets = sorted(self._appends.offset)
        point_of = dict(zip(offsets, self._points, strict=True))
        steps: list[tuple[int, int, int, int]] = []
        for position, point in zip(self._order, self._points, strict=True):
            number = self._appends.number[position]
            steps.append((point, 4 * self._appends.offset[position] + 1, point, number))
        for column, shift in ((self._log.empties, 0), (self._log.reads, 2)):
            for offset, begin, number in zip(
                column.offset, column.invoked, column.number, strict=True
            ):
                point = max(begin, point_of[offset]) if shift else begin
                steps.append((point, 4 * offset + shift, point, number))
        above = pending = current = -1
        ends = self._log.ends
        for end, begin, number in sorted(zip(ends.offset, ends.invoked, ends.number, strict=True)):
            if end != current:
                above, current = max(above, pending), end
            position = bisect_left(offsets, end)
            point = max(begin, above, self._points[position - 1] if position else -1)
            steps.append((point, 4 * end, point, number))
            pending = max(pending, point)
        steps.sort()
        return placed([step[3] for step in steps], [step[2] for step in steps])
