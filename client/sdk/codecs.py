"""How a program's values become bytes and come back."""

from __future__ import annotations

from typing import Any, Generic, Literal, Protocol, TypeVar

import orjson

T = TypeVar("T")


class Codec(Protocol[T]):
    """`None` never reaches a codec: it is a null key, or a tombstone."""

    def encode(self, value: T) -> bytes:
        """Raises ValueError or TypeError for what it cannot say."""
        ...

    def decode(self, data: bytes) -> T:
        """Raises ValueError for bytes it does not take."""
        ...


class Bytes:
    """Bytes as they are."""

    def encode(self, value: bytes) -> bytes:
        if type(value) is bytes:
            return value
        if not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"{type(value).__name__} is not bytes")
        return bytes(value)

    def decode(self, data: bytes) -> bytes:
        return data


class Text:
    """UTF-8."""

    def encode(self, value: str) -> bytes:
        if not isinstance(value, str):
            raise TypeError(f"{type(value).__name__} is not str")
        return value.encode()

    def decode(self, data: bytes) -> str:
        return data.decode()


class Json:
    """Any JSON value. `on_error="yield"`: bytes that are no JSON are handed out as they are, so
    that one bad record does not stop a reader."""

    def __init__(self, *, on_error: Literal["raise", "yield"] = "raise") -> None:
        self._yields = on_error == "yield"

    def encode(self, value: Any) -> bytes:
        return orjson.dumps(value)

    def decode(self, data: bytes) -> Any:
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            if self._yields:
                return data
            raise


class Coded(Generic[T]):
    """A codec that lets None pass."""

    __slots__ = ("_codec",)

    def __init__(self, codec: Codec[T]) -> None:
        self._codec = codec

    def encode(self, value: T | None) -> bytes | None:
        return None if value is None else self._codec.encode(value)

    def decode(self, data: bytes | None) -> T | None:
        return None if data is None else self._codec.decode(data)
