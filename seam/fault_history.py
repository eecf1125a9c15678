"""What was broken on purpose at this node: the last faults, when, until when and by whom.

Kept in a file of the node's directory, so that the life that a full disk has ended is told by the
next one. The file is for people: it is not synced, and a line that cannot be written or read is
missing, nothing more.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from .clock import Clock
from .disk import Disk, File, read_file
from .frozen_values import frozen

logger = logging.getLogger(__name__)

MOST_KEPT = 500
"""Faults; older ones are forgotten."""


@frozen
class InjectedFault:
    """Times are milliseconds since 1970, by the machine's clock."""

    kind: str
    at_ms: int
    until_ms: int
    """When it ends by itself, or when it was healed or ended with its process before."""
    by: str
    """Who asked for it."""
    node: int | None = None
    """The other node, where there is one."""
    amount: str | None = None
    """How much, in the words of who asked: a delay, a chance, an offset."""


class FaultHistory:
    def __init__(self, clock: Clock, disk: Disk | None = None, path: str = "") -> None:
        """`clock` and `disk` as they are, not as faults make them. Without a disk it is forgotten
        with the process."""
        self._clock = clock
        self._disk = disk
        self._path = path
        self._started_ms = clock.now_ms()
        self._kept: deque[InjectedFault] | None = None
        self._lines = 0

    def entries(self) -> list[InjectedFault]:
        """In the order in which they began."""
        return list(self._faults())

    def note(
        self,
        kind: str,
        for_s: float,
        by: str,
        *,
        node: int | None = None,
        amount: str | None = None,
    ) -> None:
        """This fault begins now."""
        now_ms = self._clock.now_ms()
        faults = self._faults()
        faults.append(InjectedFault(kind, now_ms, now_ms + round(for_s * 1000), by, node, amount))
        self._write(asdict(faults[-1]))

    def healed(self) -> None:
        """All that lasts ends now."""
        self._end_all(self._faults(), self._clock.now_ms())

    def _faults(self) -> deque[InjectedFault]:
        if self._kept is None:
            self._kept = deque(maxlen=MOST_KEPT)
            for told in self._read():
                if isinstance(told, int):
                    _cut_short(self._kept, told)
                else:
                    self._kept.append(told)
            # What the process before this one had broken in itself ended with it.
            self._end_all(self._kept, self._started_ms)
        return self._kept

    def _end_all(self, faults: deque[InjectedFault], at_ms: int) -> None:
        if _cut_short(faults, at_ms):
            self._write({"ended_ms": at_ms})

    def _read(self) -> Iterator[InjectedFault | int]:
        """Faults, and when all before it had ended."""
        if self._disk is None or not self._disk.exists(self._path):
            return
        for line in read_file(self._disk, self._path).splitlines():
            self._lines += 1
            told = _told(line)
            if told is not None:
                yield told

    def _write(self, document: dict[str, Any]) -> None:
        if self._disk is None:
            return
        try:
            file = self._disk.open(self._path, create=True)
            try:
                self._append(file, document)
            finally:
                file.close()
        except OSError as error:
            logger.warning("the history of faults cannot be written: %s", error)

    def _append(self, file: File, document: dict[str, Any]) -> None:
        self._lines += 1
        if self._lines <= 2 * MOST_KEPT:
            file.append([_line(document)])
            return
        file.truncate(0)
        file.append([_line(asdict(one)) for one in self._faults()])
        self._lines = len(self._faults())


def _cut_short(faults: deque[InjectedFault], at_ms: int) -> bool:
    """Whether any of them would have lasted longer."""
    lasting = [one for one in faults if one.until_ms > at_ms]
    if lasting:
        ended = [replace(one, until_ms=min(one.until_ms, max(one.at_ms, at_ms))) for one in faults]
        faults.clear()
        faults.extend(ended)
    return bool(lasting)


def _told(line: bytes) -> InjectedFault | int | None:
    """None: it is torn, or of another version."""
    try:
        document = json.loads(line)
        if document.keys() == {"ended_ms"}:
            ended_ms = document["ended_ms"]
            return ended_ms if type(ended_ms) is int else None
        fault = InjectedFault(**document)
    except (ValueError, TypeError, AttributeError):
        return None
    whole = type(fault.at_ms) is int and type(fault.until_ms) is int
    return fault if whole else None


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode() + b"\n"
