"""What a history tells about each key's log: the version order, who wrote and who read what."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ...history import History, HistoryError, Outcome
from ...history.edn import freeze


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
        self.read_by: dict[Hashable, int] = {}
        """Value to the first ok poll that returned it."""
        self.polls: list[tuple[int, list[int]]] = []
        """(ok operation, the offsets it polled, in the order of delivery)."""
        self.sends: list[tuple[int, list[Hashable]]] = []
        """(ok or indeterminate operation, the values it sent, in order)."""
        self.offsets: list[int] = []
        self.index_of: dict[int, int] = {}
        self.log_start = 0

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

    def number(self) -> None:
        """Fix the version order, once everything was seen."""
        self.offsets = sorted(self.value_at)
        self.index_of = dict(zip(self.offsets, range(len(self.offsets)), strict=True))
        # A duplicate counts where it first appears, and `last_index` knows where it ends.
        for value, offsets in self.repeated.items():
            self.offset_of[value] = min(offsets)

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

    def __init__(self, history: History) -> None:
        self.history = history
        self.keys: dict[str, KeyLog] = {}
        self.multi: dict[int, list[list[Any]]] = {}
        """Micro-operations of ok operations that both send and poll, or send several times."""
        self.latest: list[tuple[int, str, int]] = []
        self.earliest: list[tuple[int, str, int]] = []
        self.commits: list[tuple[int, tuple[str, str], int]] = []
        self.committed: list[tuple[int, tuple[str, str], int | None]] = []
        self.assignments: list[tuple[int, str, int, str, tuple[str, ...]]] = []
        self.certain = bytearray(len(history))
        """1 for operations that took effect: ok, or indeterminate with a send that was seen."""
        self._uncertain: list[tuple[int, str, Hashable]] = []
        self._read(history)
        for operation, key, value in self._uncertain:
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
        outcomes, results, arguments = history.outcome, history.result, history.argument
        functions, certain = history.function, self.certain
        ok, info = Outcome.OK.value, Outcome.INFO.value
        for index in range(len(history)):
            if functions[index] in ("assign", "subscribe"):
                continue
            outcome = outcomes[index]
            if outcome == ok:
                certain[index] = 1
                micros = results[index] or []
                # Most operations are one fresh send or one poll of one key.
                if len(micros) == 1 and micros[0][0] == "poll" and len(micros[0]) == 2:
                    for key, pairs in micros[0][1].items():
                        self._polled(index, key, pairs)
                else:
                    self._ok(index, micros)
            else:
                self._asked(index, arguments[index] or [], failed=outcome != info)
                # Even an aborted transaction's polls saw what they saw.
                for micro in results[index] or ():
                    if type(micro) is list and micro[0] == "poll" and len(micro) > 1:
                        self._seen_only(index, micro[1])

    def _ok(self, index: int, micros: list[Any]) -> None:
        sent = polled = 0
        keys = self.keys
        for micro in micros:
            try:
                verb = micro[0]
                if verb == "send":
                    sent += 1
                    key = micro[1]
                    offset, value = micro[2]
                    if type(value) is list:
                        value = freeze(value)
                    log = keys.get(key) or self.log(key)
                    log.writer[value] = index
                    if sent == 1:
                        log.sends.append((index, [value]))
                    else:
                        append_group(log.sends, index, value)
                    if offset is not None:
                        log.acked[value] = offset
                        if log.value_at.get(offset) != value:
                            log.saw(offset, value, index)
                elif verb == "poll":
                    polled += 1
                    for key, pairs in (micro[1] if len(micro) > 1 else {}).items():
                        self._polled(index, key, pairs)
                else:
                    self._other(index, verb, micro)
            except (TypeError, ValueError, IndexError, AttributeError) as error:
                raise HistoryError(
                    f"operation {index}: cannot understand {micro!r} ({error})"
                ) from error
        if sent > 1 or (sent and polled):
            self.multi[index] = micros

    def _polled(self, index: int, key: str, pairs: list[list[Any]]) -> None:
        log = self.keys.get(key) or self.log(key)
        read_by, value_at = log.read_by, log.value_at
        offsets = []
        for offset, value in pairs:
            if type(value) is list:
                value = freeze(value)
            offsets.append(offset)
            if value not in read_by:
                read_by[value] = index
            # Most records were seen before: this line runs for every record polled.
            if value_at.get(offset) != value:
                log.saw(offset, value, index)
        if not offsets:
            return
        if log.polls and log.polls[-1][0] == index:
            log.polls[-1][1].extend(offsets)
        else:
            log.polls.append((index, offsets))

    def _other(self, index: int, verb: str, micro: list[Any]) -> None:
        if verb == "latest":
            self.latest.append((index, micro[1], micro[2]))
        elif verb == "earliest":
            self.earliest.append((index, micro[1], micro[2]))
            log = self.log(micro[1])
            log.log_start = max(log.log_start, micro[2])
        elif verb == "commit":
            self.commits.append((index, (micro[1], micro[2]), micro[3]))
        elif verb == "committed":
            self.committed.append((index, (micro[1], micro[2]), micro[3]))
        elif verb == "assignment":
            keys = tuple(micro[4])
            self.assignments.append((index, micro[1], micro[2], micro[3], keys))
        else:
            raise ValueError(f"unknown micro-operation {verb!r}")

    def _asked(self, index: int, micros: list[Any], *, failed: bool) -> None:
        for micro in micros:
            if micro[0] != "send":
                if micro[0] == "commit" and not failed:
                    self.commits.append((index, (micro[1], micro[2]), micro[3]))
                continue
            key, value = micro[1], freeze(micro[2])
            log = self.log(key)
            if failed:
                log.failed[value] = index
            else:
                log.writer[value] = index
                append_group(log.sends, index, value)
                self._uncertain.append((index, key, value))

    def _seen_only(self, index: int, found: Any) -> None:
        for key, pairs in (found or {}).items():
            log = self.log(key)
            for offset, value in pairs:
                log.saw(offset, freeze(value), index)


def append_group(groups: list[tuple[int, list[Hashable]]], index: int, value: Hashable) -> None:
    if groups and groups[-1][0] == index:
        groups[-1][1].append(value)
    else:
        groups.append((index, [value]))


__all__ = ["KeyLog", "Records"]
