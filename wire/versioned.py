"""Messages that carry their own version in front: two bytes, then the body."""

from __future__ import annotations

from struct import Struct as Format
from typing import ClassVar, Self

from .buffers import Buffer
from .exceptions import DecodeError
from .schema import Message

_PREFIX = Format(">h")


class Versioned(Message):
    """A value that is prefixed with its version."""

    def encode_versioned(self, version: int) -> bytes:
        """
        Raises:
            EncodeError: as `Message.encode`.
        """
        return b"".join(self.encode_behind(bytearray(_PREFIX.pack(version)), version))

    @classmethod
    def decode_versioned(cls, buffer: Buffer) -> Self:
        """
        Raises:
            DecodeError: no value of a known version.
        """
        version = prefix(buffer)
        message, position = cls.decode_from(buffer, 2, version)
        if position != len(buffer):
            raise DecodeError(f"{cls.__name__} v{version} ends at {position} of {len(buffer)}")
        return message


class CoordinatorKey(Message):
    """The key of a coordinator's record, prefixed with the record's type; its body is version 0.

    (Kafka calls the prefix a version, too: offsets have the types 0 and 1, groups 2, and so on.)
    """

    record_type: ClassVar[int] = -1

    def __init_subclass__(cls, versions: str, record_type: int) -> None:
        super().__init_subclass__(versions=versions)
        cls.record_type = record_type

    def encode_versioned(self) -> bytes:
        """
        Raises:
            EncodeError: as `Message.encode`.
        """
        return b"".join(self.encode_behind(bytearray(_PREFIX.pack(self.record_type)), 0))

    @classmethod
    def decode_versioned(cls, buffer: Buffer) -> Self:
        """
        Raises:
            DecodeError: another record type, or no valid key.
        """
        if prefix(buffer) != cls.record_type:
            raise DecodeError(f"{cls.__name__} has type {cls.record_type}, not {prefix(buffer)}")
        message, position = cls.decode_from(buffer, 2, 0)
        if position != len(buffer):
            raise DecodeError(f"{cls.__name__} ends at {position} of {len(buffer)}")
        return message


def prefix(buffer: Buffer) -> int:
    """The first two bytes: the version of a value, the type of a key.

    Raises:
        DecodeError: there are fewer.
    """
    if len(buffer) < 2:
        raise DecodeError(f"no room for a version in {len(buffer)} bytes")
    number: int = _PREFIX.unpack_from(buffer)[0]
    return number
