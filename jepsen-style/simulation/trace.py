"""What happened in a run, as one hash; on demand as a list, to find where two runs part."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from itertools import zip_longest

_TURN = struct.Struct("<cdII")
_SEGMENT = struct.Struct("<cdHHII")
_DISK = struct.Struct("<cdIQQII")
_NOTE = struct.Struct("<cdI")
_FLUSH_BYTES = 1 << 16


class Trace:
    """A hash over every turn, delivered segment and disk call, with their virtual times.

    With `labelled` every event is kept as a line of text too; memory then grows with the run.
    """

    def __init__(self, *, labelled: bool = False) -> None:
        self.labelled = labelled
        self.events: list[str] = []
        self._hash = hashlib.blake2b(digest_size=16)
        self._pending = bytearray()

    def turn(self, when: float, host: int, callbacks: int, labels: Sequence[str]) -> None:
        """A host's loop ran `callbacks` callbacks (timers included)."""
        pending = self._pending
        pending += _TURN.pack(b"t", when, host, callbacks)
        if len(pending) >= _FLUSH_BYTES:
            self._flush()
        if self.labelled:
            self.events.append(f"{when:.9f} host {host} runs {', '.join(labels)}")

    def segment(
        self, when: float, ports: tuple[int, int], kind: str, data: bytes, count: int
    ) -> None:
        """A segment reached the kernel of its receiver; `ports` are (receiver's, sender's)."""
        to, sender = ports
        crc = zlib.crc32(data)
        self._add(_SEGMENT.pack(b"s", when, to, sender, crc, count))
        self._add(kind.encode())
        if self.labelled:
            self.events.append(
                f"{when:.9f} {kind} {sender}->{to} {len(data)} bytes crc {crc:08x} count {count}"
            )

    def disk(
        self, when: float, host: int, kind: str, path: str, position: int, data: bytes, size: int
    ) -> None:
        """A process asked its disk for something."""
        crc = zlib.crc32(data)
        name = f"{kind} {path}".encode()
        self._add(_DISK.pack(b"d", when, host, position, size, crc, len(name)))
        self._add(name)
        if self.labelled:
            self.events.append(
                f"{when:.9f} host {host} disk {kind} {path} at {position} size {size} crc {crc:08x}"
            )

    def note(self, when: float, text: str) -> None:
        """A step of the schedule or a fault."""
        data = text.encode()
        self._add(_NOTE.pack(b"n", when, len(data)))
        self._add(data)
        if self.labelled:
            self.events.append(f"{when:.9f} {text}")

    def digest(self) -> str:
        """The hash so far, as hexadecimal digits."""
        self._flush()
        return self._hash.copy().hexdigest()

    def _add(self, data: bytes) -> None:
        self._pending += data
        if len(self._pending) >= _FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._hash.update(self._pending)
        self._pending.clear()


def first_difference(one: Trace, other: Trace, *, context: int = 3) -> str | None:
    """Where two labelled runs part, with the events before it; None when they are equal."""
    for number, (left, right) in enumerate(zip_longest(one.events, other.events)):
        if left != right:
            before = one.events[max(0, number - context) : number]
            lines = [
                *before,
                f"event {number} of one:   {left}",
                f"event {number} of other: {right}",
            ]
            return "\n".join(lines)
    return None
