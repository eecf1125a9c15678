"""JSON objects one after the other, as they arrive: with blanks or line breaks between them, or
nothing at all (`{"a":1}{"a":2}`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

from .errors import ApiError
from .request_lines import RequestLines

_STRUCTURE = re.compile(rb'["{}\[\]]')
_IN_STRING = re.compile(rb'["\\]')
_BLANK = b" \t\r\n"


class ObjectSplitter:
    """Cuts bytes where an object of the outermost level ends; what is inside is not looked at."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        """From the start of the object under way."""
        self._looked = 0
        """How much of the buffer has been looked at."""
        self._depth = 0
        self._in_string = False
        self.problem: ApiError | None = None
        """400 at a byte outside of objects that is no blank, 413 for one object of more than
        `max_bytes`: nothing is taken any more."""

    @property
    def unfinished(self) -> bool:
        return bool(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """The objects that are complete now, in order."""
        self._buffer += data
        found: list[bytes] = []
        start = 0
        while (end := self._end_of_object(start)) is not None:
            found.append(bytes(self._buffer[start:end]).lstrip(_BLANK))
            start = end
        # What is before `_looked` and after `start` belongs to the object under way.
        del self._buffer[:start]
        self._looked -= start
        if self.problem is None and len(self._buffer) > self._max_bytes:
            self.problem = ApiError(413, f"a record is longer than {self._max_bytes} bytes")
        return found

    def _end_of_object(self, start: int) -> int | None:
        """None: it has not arrived. Blanks before it go with it."""
        buffer = self._buffer
        if not self._depth and not self._begins(start):
            return None
        while True:
            if self._in_string:
                match = _IN_STRING.search(buffer, self._looked)
                if match is None:
                    self._looked = len(buffer)
                    return None
                if match[0] == b"\\":
                    if match.end() == len(buffer):
                        # What it escapes has not arrived.
                        self._looked = match.start()
                        return None
                    self._looked = match.end() + 1
                else:
                    self._looked, self._in_string = match.end(), False
                continue
            match = _STRUCTURE.search(buffer, self._looked)
            if match is None:
                self._looked = len(buffer)
                return None
            self._looked = match.end()
            if match[0] == b'"':
                self._in_string = True
            elif match[0] in b"{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    self._depth = 0
                    return self._looked

    def _begins(self, start: int) -> bool:
        """Step into the next object; False when there are only blanks."""
        buffer = self._buffer
        position = max(start, self._looked)
        while position < len(buffer) and buffer[position] in _BLANK:
            position += 1
        if position == len(buffer):
            self._looked = position
            del buffer[start:]
            self._looked = start
            return False
        if buffer[position] != ord("{"):
            what = bytes(buffer[position : position + 20]).decode("utf-8", "replace")
            self.problem = ApiError(400, f"{what!r} stands where a JSON object should begin")
            return False
        self._depth, self._looked = 1, position + 1
        return True


class RequestObjects(RequestLines):
    """Blocks of whole objects of a request body that is still being sent."""

    async def blocks(self) -> AsyncIterator[list[bytes]]:
        """What came before an error is given out first. Raises ApiError 400, 408 or 413, or
        ClientGone."""
        splitter = ObjectSplitter(self._max_line)
        while data := await self._read():
            for block in self._cut(splitter.feed(data)):
                yield block
                if self._ended:
                    return
                await asyncio.sleep(0)
            if splitter.problem is not None:
                raise splitter.problem
        if splitter.unfinished and not self._ended:
            raise ApiError(400, "the body ends inside a JSON object")
