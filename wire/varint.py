"""Variable-length integers: seven bits a byte, low bits first, the top bit says "more"."""

from __future__ import annotations

from struct import Struct as Format

from .buffers import Buffer
from .exceptions import DecodeError


def encode_unsigned(value: int) -> bytes:
    """An unsigned varint, as lengths and tags of flexible versions use it."""
    # Written out for the lengths of everyday's strings and batches.
    if value < 1 << 7:
        return _ONE_BYTE[value]
    if value < 1 << 14:
        return _TWO_BYTES(value & 127 | 128, value >> 7)
    if value < 1 << 21:
        return _THREE_BYTES(value & 127 | 128, value >> 7 & 127 | 128, value >> 14)
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_unsigned(buffer: Buffer, position: int) -> tuple[int, int]:
    """The unsigned 32-bit varint at `position`, and the position behind it.

    Raises:
        DecodeError: more than 32 bits (a longer spelling of a small number is legal up to 5 bytes).
        IndexError: the buffer ends inside it.
    """
    value = buffer[position]
    if value < 128:
        return value, position + 1
    byte = buffer[position + 1]
    if byte < 128:
        return value & 127 | byte << 7, position + 2
    value = value & 127 | (byte & 127) << 7
    byte = buffer[position + 2]
    if byte < 128:
        return value | byte << 14, position + 3
    value |= (byte & 127) << 14
    byte = buffer[position + 3]
    if byte < 128:
        return value | byte << 21, position + 4
    value |= (byte & 127) << 21
    byte = buffer[position + 4]
    if byte > 15:
        raise DecodeError(f"varint of more than 32 bits at byte {position}")
    return value | byte << 28, position + 5


def encode_signed(value: int) -> bytes:
    """A zigzag varint, as the records of a batch use it (up to 64 bits)."""
    if -64 <= value < 64:
        return _SMALL_SIGNED[value]
    return encode_unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def decode_signed(buffer: Buffer, position: int) -> tuple[int, int]:
    """The zigzag varint (up to 64 bits) at `position`, and the position behind it.

    Raises:
        DecodeError: more than 10 bytes or 64 bits.
        IndexError: the buffer ends inside it.
    """
    byte = buffer[position]
    position += 1
    if byte < 128:
        return SIGNED_BYTE[byte], position
    value = byte & 127
    byte = buffer[position]
    if byte < 128:
        value |= byte << 7
        return (value >> 1) ^ -(value & 1), position + 1
    shift = 7
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFFFFFFFFFF:
                raise DecodeError(f"varint of more than 64 bits at byte {position}")
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise DecodeError(f"varint of more than 10 bytes at byte {position}")


SIGNED_BYTE = [(byte >> 1) ^ -(byte & 1) for byte in range(128)]
"""What a zigzag varint of one byte says."""

_SMALL_SIGNED = [bytes([value << 1]) for value in range(64)] + [
    bytes([(-value << 1) - 1]) for value in range(-64, 0)
]  # a negative index counts from the end
_TWO_BYTES = Format("BB").pack
_THREE_BYTES = Format("BBB").pack
_ONE_BYTE = [bytes([value]) for value in range(128)]
