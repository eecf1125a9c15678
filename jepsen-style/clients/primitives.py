"""Kafka's non-flexible field types, by the protocol guide."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class Malformed(Exception):
    """The bytes are no message of the expected kind."""


class Writer:
    """Appends fields; `data` is what was written."""

    def __init__(self) -> None:
        self.data = bytearray()

    def int8(self, value: int) -> Writer:
        self.data += _INT8.pack(value)
        return self

    def int16(self, value: int) -> Writer:
        self.data += _INT16.pack(value)
        return self

    def int32(self, value: int) -> Writer:
        self.data += _INT32.pack(value)
        return self

    def int64(self, value: int) -> Writer:
        self.data += _INT64.pack(value)
        return self

    def string(self, text: str | None) -> Writer:
        if text is None:
            return self.int16(-1)
        encoded = text.encode()
        self.int16(len(encoded))
        self.data += encoded
        return self

    def blob(self, value: bytes) -> Writer:
        self.int32(len(value))
        self.data += value
        return self

    def array(self, items: Iterable[T], write: Callable[[Writer, T], object]) -> Writer:
        known = list(items)
        self.int32(len(known))
        for item in known:
            write(self, item)
        return self


class Reader:
    """Takes fields off the front. Raises Malformed where they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def _take(self, kind: struct.Struct) -> int:
        try:
            (value,) = kind.unpack_from(self._data, self._position)
        except struct.error as error:
            raise Malformed(str(error)) from None
        self._position += kind.size
        return int(value)

    def int8(self) -> int:
        return self._take(_INT8)

    def int16(self) -> int:
        return self._take(_INT16)

    def int32(self) -> int:
        return self._take(_INT32)

    def int64(self) -> int:
        return self._take(_INT64)

    def string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self.raw(length).decode()

    def blob(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self.raw(length)

    def raw(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise Malformed(f"{length} bytes wanted, {len(self._data) - self._position} are left")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def array(self, read: Callable[[Reader], T]) -> list[T]:
        return [read(self) for _ in range(max(0, self.int32()))]
