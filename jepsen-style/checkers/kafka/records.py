"""What a history tells about each key's log: the version order, who wrote and who read what."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cached_property
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any

from ...history import History, HistoryError, Outcome
from ...history.edn import freeze
from ..linearizability.models import Call, topic_call

NOBODY = -1
DELETIONS = frozenset({"delete-records", "retention"})
"""Observations after which what lies below an offset may be missing."""
MOVING = frozenset({"assign", "subscribe"})
"""Functions that move a client's positions, and neither send nor poll."""
CERTAIN_IF_OK = bytes.maketrans(bytes(Outcome), bytes(outcome is Outcome.OK for outcome in Outcome))
TOPIC_VERBS = frozenset({"create-topic", "delete-topic", "describe-topic"})


class KeyLog:
    """One partition as its clients saw it.

    The *version order* is `offsets`: every offset known to hold a record, ascending; an *index* is
    a place in it. Gaps (markers of transactions, aborted or compacted records) vanish that way.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.value_at: dict[int, Hashable] = {}
        self.conflicts: dict[int, set[Hashable]] = {}
        self.offset_of: dict[Hashable, int] = {}
        self.repeated: dict[Hashable, set[int]] = {}
        self.witness: dict[int, int] = {}
        """An operation that showed a conflicting or repeating offset."""
        self.writer: dict[Hashable, int] = {}
        self.acked: dict[Hashable, int] = {}
        """Value to the offset its ok send was given."""
        self.failed: dict[Hashable, int] = {}
        self.strays: dict[Hashable, int] = {}
        """Value polled at an offset that holds another one, to the first such ok poll."""
        self.misread: dict[tuple[int, int], Hashable] = {}
        """(ok poll, offset) to what it got there, where that is not what `value_at` says."""
        self.polls: list[tuple[int, list[int]]] = []
        """(ok operation, the offsets it polled, in the order of delivery)."""
        self.senders: list[int] = []
        """By send: the ok or indeterminate operation; those of one operation follow each other."""
        self.sent_values: list[Hashable] = []
        """By send: its value."""
        self.log_start = 0
        self.offsets: list[int] = []
        self.index_of: dict[int, int] = {}
        self.more_sends = False
        """Whether an operation sent several values to this key."""
        self.plain = False
        """Each value was sent once and lies at one offset: the version order tells everything."""
        self.told = False
        """And each record has a sender and a reader: no loss to look for, and no stranger."""
        self.writers: list[int] = []
        """By index: the operation that sent the record there; NOBODY for one unknown."""
        self.readers: list[int] = []
        """By index: the first ok poll that delivered the record there; NOBODY where none did."""
        self.first_polled: list[int] = []
        self.last_polled: list[int] = []
        """By place in `polls`: the index that it delivered first, and last."""
        self.jumbled: list[int] = []
        """Places in `polls` that did not deliver what the log holds, as the log holds it."""

    def sent(self, operation: int, value: Hashable) -> None:
        """An operation that may have taken effect sent this value, after its others."""
        self.writer[value] = operation
        self.senders.append(operation)
        self.sent_values.append(value)

    @cached_property
    def sends(self) -> list[tuple[int, list[Hashable]]]:
        """(ok or indeterminate operation, the values it sent, in order)."""
        grouped = groupby(zip(self.senders, self.sent_values, strict=True), key=itemgetter(0))
        return [(operation, [value for _, value in sends]) for operation, sends in grouped]

    def saw(self, offset: int, value: Hashable, operation: int) -> None:
        """Some client was told that this offset holds this value."""
        there = self.value_at.setdefault(offset, value)
        if there != value:
            self.conflicts.setdefault(offset, {there}).add(value)
            self.witness[offset] = operation
        first = self.offset_of.setdefault(value, offset)
        if first != offset:
            self.repeated.setdefault(value, {first}).add(offset)
            self.witness[offset] = operation

    def polled(self, offset: int, value: Hashable, operation: int) -> None:
        """An ok poll delivered this value from there."""
        if self.value_at.get(offset) == value:
            return
        self.saw(offset, value, operation)
        if self.value_at[offset] != value:
            self.strays.setdefault(value, operation)
            self.misread[operation, offset] = value

    def number(self) -> None:
        """Fix the version order, once everything was seen."""
        self.offsets = sorted(self.value_at)
        self.index_of = dict(zip(self.offsets, range(len(self.offsets)), strict=True))
        # A duplicate counts where it first appears, and `last_index` knows where it ends.
        for value, offsets in self.repeated.items():
            self.offset_of[value] = min(offsets)
        sent = len(self.senders)
        self.more_sends = len(set(self.senders)) < sent
        self.plain = not self.repeated and not self.conflicts and sent == len(self.writer)
        values = map(self.value_at.__getitem__, self.offsets)
        self.writers = list(map(self.writer.get, values, repeat(NOBODY)))
        self._number_polls()
        self.told = self.plain and NOBODY not in self.readers and NOBODY not in self.writers

    def _number_polls(self) -> None:
        offsets, index_of = self.offsets, self.index_of
        readers = self.readers = [NOBODY] * len(offsets)
        for poll, (operation, polled) in enumerate(self.polls):
            first, last = index_of[polled[0]], index_of[polled[-1]]
            self.first_polled.append(first)
            self.last_polled.append(last)
            places: Iterable[int] = range(first, last + 1)
            if polled != offsets[first : last + 1]:
                self.jumbled.append(poll)
                places = map(index_of.__getitem__, polled)
            elif readers[last] != NOBODY and NOBODY not in readers[first:last]:
                continue
            for place in places:
                if readers[place] == NOBODY:
                    readers[place] = operation

    def reader(self, value: Hashable) -> int | None:
        """An ok poll that delivered the value; None when none did."""
        first = self.offset_of.get(value)
        for offset in self.repeated.get(value, () if first is None else (first,)):
            reader = self.readers[self.index_of[offset]]
            if reader != NOBODY and self.value_at[offset] == value:
                return reader
        return self.strays.get(value)

    def highest_polled(self) -> list[int]:
        """By place in `polls`: the highest index that it delivered."""
        highest = list(self.last_polled)
        for place in self.jumbled:
            highest[place] = max(map(self.index_of.__getitem__, self.polls[place][1]))
        return highest

    def index(self, value: Hashable) -> int | None:
        """The first place of a value; None when nobody knows it."""
        offset = self.offset_of.get(value)
        return None if offset is None else self.index_of[offset]

    def last_index(self, value: Hashable) -> int | None:
        if value in self.repeated:
            return self.index_of[max(self.repeated[value])]
        return self.index(value)


class Records:
    """All keys of a history, and its other micro-operations, sorted out in one pass."""

    def __init__(self, history: History, *, acks_all: bool = True) -> None:
        self.history = history
        self._acks_all = acks_all
        self.keys: dict[str, KeyLog] = {}
        self.multi: dict[int, list[list[Any]]] = {}
        """Micro-operations of ok operations that both send and poll, or send several times."""
        self.latest: list[tuple[int, str, int]] = []
        self.earliest: list[tuple[int, str, int]] = []
        self.commits: list[tuple[int, tuple[str, str], int]] = []
        self.commit_generations: list[tuple[int, str, int]] = []
        """(ok operation, group, generation) of the commits whose member told its generation."""
        self.committed: list[tuple[int, tuple[str, str], int | None]] = []
        self.assignments: list[tuple[int, str, int, str, tuple[str, ...]]] = []
        self.lone = True
        """Each operation is one send or some polls: no transaction of both, or of several sends."""
        self.topics: list[tuple[int, Call]] = []
        self.certain = history.outcome.translate(CERTAIN_IF_OK)
        """1 for operations that took effect: ok, or indeterminate with a send that was seen."""
        self.uncertain: list[tuple[int, str, Hashable]] = []
        """(operation, key, value) of every send without an answer."""
        self._read(history)
        self._read_deletions(history)
        for operation, key, value in self.uncertain:
            if value in self.keys[key].offset_of:
                self.certain[operation] = 1
        for log in self.keys.values():
            log.number()

    def log(self, key: str) -> KeyLog:
        log = self.keys.get(key)
        if log is None:
            log = self.keys[key] = KeyLog(key)
        return log

    def _read(self, history: History) -> None:
        """Raises HistoryError, naming the operation, for micro-operations of another shape."""
        functions, outcomes = history.function, history.outcome
        ok = Outcome.OK.value
        index, micros = 0, None
        moving = not MOVING.isdisjoint(functions)
        try:
            for index, micros in enumerate(history.result):
                if moving and functions[index] in MOVING:
                    continue
                if outcomes[index] != ok:
                    self._not_ok(index, history.argument[index], micros)
                    continue
                if not micros:
                    continue
                # Most operations are one send, or one poll.
                first = micros[0]
                if len(micros) > 1:
                    self._several(index, micros)
                elif first[0] == "send":
                    self._sent(index, first[1], first[2])
                elif first[0] == "poll":
                    for key, pairs in first[1].items() if len(first) > 1 else ():
                        self._polled(index, key, pairs)
                else:
                    self._other(index, first)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
            shown = shortened(micros if micros else history.argument[index])
            raise HistoryError(f"operation {index}: cannot understand {shown} ({error})") from error

    def _read_deletions(self, history: History) -> None:
        """What a client has asked to delete may be missing, whether it was told so or not, and what
        retention has let a replica drop."""
        for _, event in history.observations:
            if event.get("f") in DELETIONS:
                log = self.log(event["value"]["key"])
                log.log_start = max(log.log_start, event["value"]["before"])

    def _several(self, index: int, micros: list[Any]) -> None:
        verbs = [micro[0] for micro in micros]
        for micro in micros:
            if micro[0] == "send":
                self._sent(index, micro[1], micro[2])
            elif micro[0] == "poll":
                for key, pairs in (micro[1] if len(micro) > 1 else {}).items():
                    self._polled(index, key, pairs)
            else:
                self._other(index, micro)
        if verbs.count("send") > 1 or ("send" in verbs and "poll" in verbs):
            self.multi[index] = micros
            self.lone = False

    def _sent(self, index: int, key: str, answer: Any) -> None:
        """`answer` without an offset is just the value: acknowledged, and nobody knows where."""
        offset, value = answer if type(answer) is list else (None, answer)
        if type(value) is list:
            value = freeze(value)
        log = self.keys.get(key) or self.log(key)
        log.sent(index, value)
        if offset is not None and self._acks_all:
            log.acked[value] = offset
            if log.value_at.get(offset) != value:
                log.saw(offset, value, index)

    def _polled(self, index: int, key: str, pairs: list[list[Any]]) -> None:
        log = self.keys.get(key) or self.log(key)
        value_at = log.value_at
        offsets = []
        for offset, value in pairs:
            offsets.append(offset)
            # Most records were seen before: this line runs for every record polled.
            if value_at.get(offset) != value:
                log.polled(offset, freeze(value), index)
        if not offsets:
            return
        if log.polls and log.polls[-1][0] == index:
            log.polls[-1][1].extend(offsets)
        else:
            log.polls.append((index, offsets))

    def _other(self, index: int, micro: list[Any]) -> None:
        verb = micro[0]
        if verb == "latest":
            self.latest.append((index, micro[1], micro[2]))
        elif verb == "earliest":
            self.earliest.append((index, micro[1], micro[2]))
            log = self.log(micro[1])
            log.log_start = max(log.log_start, micro[2])
        elif verb == "commit":
            self.commits.append((index, (micro[1], micro[2]), micro[3]))
            if len(micro) > 4:
                self.commit_generations.append((index, micro[1], micro[4]))
        elif verb == "committed":
            self.committed.append((index, (micro[1], micro[2]), micro[3]))
        elif verb == "assignment":
            keys = tuple(micro[4])
            self.assignments.append((index, micro[1], micro[2], micro[3], keys))
        elif verb in TOPIC_VERBS:
            self._topic(index, micro, known=True)
        else:
            raise ValueError(f"unknown micro-operation {verb!r}")

    def _topic(self, index: int, micro: list[Any], *, known: bool) -> None:
        """What stands behind the arguments that its verb takes is the answer."""
        verb, name, *more = micro
        configuration = more.pop(0) if verb == "create-topic" and more else None
        answer = more[0] if more else None
        call = topic_call(verb, name, configuration, answer, known=known)
        if call is not None:
            self.topics.append((index, call))

    def _not_ok(self, index: int, asked: Any, answered: Any) -> None:
        failed = self.history.outcome[index] == Outcome.FAIL
        self.lone = self.lone and len(asked or ()) < 2
        for micro in asked or ():
            if micro[0] != "send":
                if micro[0] == "commit" and not failed:
                    self.commits.append((index, (micro[1], micro[2]), micro[3]))
                elif micro[0] in TOPIC_VERBS and not failed:
                    self._topic(index, micro, known=False)
                continue
            key, value = micro[1], freeze(micro[2])
            log = self.log(key)
            if failed:
                log.failed[value] = index
            else:
                log.sent(index, value)
                self.uncertain.append((index, key, value))
        # Even an aborted transaction's polls saw what they saw.
        for micro in answered or ():
            if micro[0] == "poll" and len(micro) > 1:
                for key, pairs in (micro[1] or {}).items():
                    for offset, value in pairs:
                        self.log(key).saw(offset, freeze(value), index)


def shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


__all__ = ["NOBODY", "KeyLog", "Records"]
