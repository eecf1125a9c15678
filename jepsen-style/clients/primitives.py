"""Kafka's field types, by the protocol guide; the compact ones are those of flexible versions."""

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

    # Flexible versions (KIP-482)

    def uvarint(self, value: int) -> Writer:
        while value >= 0x80:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)
        return self

    def compact_string(self, text: str | None) -> Writer:
        if text is None:
            return self.uvarint(0)
        encoded = text.encode()
        self.uvarint(len(encoded) + 1)
        self.data += encoded
        return self

    def compact_array(
        self, items: Iterable[T] | None, write: Callable[[Writer, T], object]
    ) -> Writer:
        """None is null, which often means "as before"."""
        if items is None:
            return self.uvarint(0)
        known = list(items)
        self.uvarint(len(known) + 1)
        for item in known:
            write(self, item)
        return self

    def no_tags(self) -> Writer:
        """The end of every structure."""
        return self.uvarint(0)


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

    # Flexible versions (KIP-482)

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self.int8() & 0xFF
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def compact_string(self) -> str | None:
        length = self.uvarint() - 1
        return None if length < 0 else self.raw(length).decode()

    def compact_array(self, read: Callable[[Reader], T]) -> list[T]:
        """Empty for null, too."""
        return [read(self) for _ in range(max(0, self.uvarint() - 1))]

    def tags(self) -> None:
        """Whatever optional fields the end of a structure has; none of them is needed."""
        for _ in range(self.uvarint()):
            self.uvarint()
            self.raw(self.uvarint())
