"""The end of the log and committed offsets as their readers see them (L3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...history import NEVER
from ...history.history import Process
from ..linearizability.check import check_calls
from ..linearizability.models import Call, Register
from ..linearizability.search import TimedCall
from ..polynomial.register import check_register_calls
from ..verdict import Anomaly, Status, Verdict
from .observations import observed
from .records import Records

NOTHING_COMMITTED = None
SEARCH_LIMIT = 2_000_000


def stale_ends(records: Records) -> Iterator[Anomaly]:
    """`stale-end`: the latest offset was asked for after an append had been acknowledged, and the
    answer lies at or below it. `end-went-back`: or below an earlier answer.
    """
    history = records.history
    for key in dict.fromkeys(asked_key for _, asked_key, _ in records.latest):
        log = records.log(key)
        known: list[tuple[int, int, str, int]] = []
        for value, offset in log.acked.items():
            operation = log.writer[value]
            known.append((history.completed[operation], offset + 1, "stale-end", operation))
        asked = [(index, end) for index, asked_key, end in records.latest if asked_key == key]
        for index, end in asked:
            known.append((history.completed[index], end, "end-went-back", index))
        known.sort()
        asked.sort(key=lambda ask: history.invoked[ask[0]])
        position, highest, kind, proof = 0, 0, "", -1
        for index, end in asked:
            while position < len(known) and known[position][0] < history.invoked[index]:
                if known[position][1] > highest:
                    _, highest, kind, proof = known[position]
                position += 1
            if end < highest:
                yield Anomaly(
                    kind,
                    f"the end of {key!r} was {highest} before, and then {end}",
                    (proof, index),
                    {"key": key, "offset": end},
                )


def committed_offsets(records: Records) -> Iterator[Anomaly]:
    """`lost-commit`: offsets of a (group, key) are no linearizable register.

    Commits may repeat a value; where they do not, the decision takes linear time.
    """
    history = records.history
    registers: dict[tuple[str, str], list[TimedCall]] = {}
    for index, name, offset in records.commits:
        call = Call("write", offset)
        timed = (call, history.invoked[index], history.completed[index], index)
        registers.setdefault(name, []).append(timed)
    for index, name, found in records.committed:
        call = Call("read", None, found)
        timed = (call, history.invoked[index], history.completed[index], index)
        registers.setdefault(name, []).append(timed)
    for register, calls in registers.items():
        verdict = register_verdict(calls)
        if verdict.status is Status.UNKNOWN:
            yield Anomaly("undecided", f"committed offsets of {register}: {verdict.reason}")
        for anomaly in verdict.anomalies:
            yield Anomaly(
                "lost-commit",
                f"{register}: {anomaly.description}",
                anomaly.operations,
                {"register": register, "group": register[0]},
            )


def register_verdict(calls: list[TimedCall]) -> Verdict:
    verdict = check_register_calls(calls, initial=NOTHING_COMMITTED)
    if verdict.status is not Status.UNKNOWN:
        return verdict
    return check_calls(calls, Register(NOTHING_COMMITTED), SEARCH_LIMIT, minimise=True)


def group_ownership(records: Records) -> Iterator[Anomaly]:
    """`two-owners`: two members were given one key in one generation. `generation-went-back`: a
    group's generation fell, in real time.
    """
    owner: dict[tuple[str, int, str], tuple[str, int]] = {}
    for index, group, generation, member, keys in records.assignments:
        for key in keys:
            first, shown = owner.setdefault((group, generation, key), (member, index))
            if first != member:
                yield Anomaly(
                    "two-owners",
                    f"{key!r} belongs to {first!r} and {member!r} "
                    f"in generation {generation} of {group!r}",
                    (shown, index),
                    {"key": key, "group": group},
                )
    yield from stale_generations(
        records,
        [(index, group, generation) for index, group, generation, _, _ in records.assignments],
        "generation-went-back",
        "{group!r} was in generation {highest} and later in {generation}",
    )


def stale_commits(records: Records) -> Iterator[Anomaly]:
    """`stale-commit`: a commit of one generation was taken after a member had been given its part
    in a later one: somebody else owns what it was for.
    """
    yield from stale_generations(
        records,
        records.commit_generations,
        "stale-commit",
        "{group!r} was in generation {highest} and took a commit of {generation}",
    )


def stale_generations(
    records: Records, named: Sequence[tuple[int, str, int]], kind: str, text: str
) -> Iterator[Anomaly]:
    """Operations that name a generation below one in which a member had its part before."""
    history = records.history
    ended: dict[str, list[tuple[int, int, int]]] = {}
    for index, group, generation, _, _ in records.assignments:
        if history.completed[index] != NEVER:
            ended.setdefault(group, []).append((history.completed[index], generation, index))
    by_group: dict[str, list[tuple[int, int, int]]] = {}
    for index, group, generation in named:
        by_group.setdefault(group, []).append((history.invoked[index], generation, index))
    for group, asked in by_group.items():
        done = sorted(ended.get(group, ()))
        position, highest, proof = 0, -1, -1
        for invoked, generation, index in sorted(asked):
            while position < len(done) and done[position][0] < invoked:
                if done[position][1] > highest:
                    _, highest, proof = done[position]
                position += 1
            if generation < highest:
                said = text.format(group=group, highest=highest, generation=generation)
                yield Anomaly(kind, said, (proof, index), {"group": group})


def skipped_by_groups(records: Records) -> Iterator[Anomaly]:
    """`skipped-by-group`: a group has committed up to the end, and none of its members was ever
    given this acknowledged record (at-least-once is what a group promises).
    """
    history = records.history
    members: dict[str, set[Process]] = {}
    for index, group, _, _, _ in records.assignments:
        members.setdefault(group, set()).add(history.process[index])
    for _, seen in observed(history, "group-done"):
        group, ends = seen["group"], seen["ends"]
        own = members.get(group, set())
        for key, end in ends.items():
            log = records.log(key)
            polls = (offsets for poll, offsets in log.polls if history.process[poll] in own)
            given = {offset for offsets in polls for offset in offsets}
            for value, offset in log.acked.items():
                if offset < end and offset >= log.log_start and offset not in given:
                    yield Anomaly(
                        "skipped-by-group",
                        f"{group!r} has passed offset {end} of {key!r}, and none of its members "
                        f"was given {value!r} at {offset}",
                        (log.writer[value],),
                        {"key": key, "offset": offset, "value": value},
                    )
