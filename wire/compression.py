"""The codecs of a record batch. Everything behind the batch header is one compressed block.

The libraries are loaded at first use: produce and fetch pass batches on as they are, so most nodes
never need them (extra `logboat[compression]`).

Snappy comes in two dresses: the stream that snappy-java made a habit (a magic, then blocks with a
length each; what Java clients read and write) and one raw block (what some C clients write). Both
are read, the first is written.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from importlib import import_module
from struct import Struct as Format
from typing import Any

from .buffers import Buffer
from .exceptions import DecodeError, WireError
from .varint import decode_unsigned


class Compression(IntEnum):
    """Bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionUnavailable(RuntimeError):
    """The codec's library is not installed."""


class DecompressionFailed(WireError):
    """The block is damaged, or larger than its reader allows."""


class UnpackedTooLarge(DecompressionFailed):
    """More would come out than its reader allows; the block may be in order."""


def compress(codec: Compression, data: Buffer, level: int | None = None) -> bytes:
    """`level` in Kafka's terms (KIP-390), None for the codec's default; snappy has none.

    Raises:
        CompressionUnavailable: the codec's library is not installed.
    """
    return _COMPRESS[codec](data, level)


def decompress(codec: Compression, data: Buffer, *, max_bytes: int) -> bytes:
    """What was compressed; never holds more than about `max_bytes` of it.

    Raises:
        DecompressionFailed: damaged, or more than `max_bytes` come out.
        CompressionUnavailable: the codec's library is not installed.
    """
    try:
        plain = _DECOMPRESS[codec](data, max_bytes)
    except (WireError, CompressionUnavailable):
        raise
    except Exception as error:  # each library has its own
        raise DecompressionFailed(f"{codec.name.lower()}: {error}") from error
    if len(plain) > max_bytes:
        raise _too_large(codec, max_bytes)
    return plain


def _too_large(codec: Compression, max_bytes: int) -> UnpackedTooLarge:
    return UnpackedTooLarge(f"{codec.name.lower()}: more than {max_bytes} bytes come out")


def _library(module: str, codec: Compression) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise CompressionUnavailable(
            f"{codec.name.lower()} needs the package {module.partition('.')[0]}: "
            "pip install 'logboat[compression]'"
        ) from None


# gzip


def _gzip_compress(data: Buffer, level: int | None) -> bytes:
    """Levels 1 to 9, -1 for zlib's default."""
    deflate = zlib.compressobj(-1 if level is None else level, wbits=_GZIP)
    return deflate.compress(data) + deflate.flush()


def _gzip_decompress(data: Buffer, max_bytes: int) -> bytes:
    plain = bytearray()
    rest = bytes(data)
    while rest:  # a gzip file may hold several members
        inflate = zlib.decompressobj(wbits=_GZIP)
        plain += inflate.decompress(rest, max_bytes + 1 - len(plain))
        if len(plain) > max_bytes:
            raise _too_large(Compression.GZIP, max_bytes)
        if not inflate.eof:
            raise DecompressionFailed("gzip: truncated")
        rest = inflate.unused_data
    return bytes(plain)


_GZIP = 31  # zlib's number for "largest window, gzip header"


# snappy


def _snappy_compress(data: Buffer, _level: int | None) -> bytes:
    snappy = _library("cramjam", Compression.SNAPPY).snappy
    stream = bytearray(_XERIAL_MAGIC + _XERIAL_VERSIONS)
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        stream += _INT32.pack(len(block)) + block
    return bytes(stream)


def _snappy_decompress(data: Buffer, max_bytes: int) -> bytes:
    view = memoryview(data)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _snappy_block(view, max_bytes)
    plain = bytearray()
    position = len(_XERIAL_MAGIC) + len(_XERIAL_VERSIONS)
    if len(view) < position:
        raise DecompressionFailed("snappy: truncated stream header")
    while position < len(view):
        if len(view) - position < 4:
            raise DecompressionFailed("snappy: truncated block length")
        (length,) = _INT32.unpack_from(view, position)
        position += 4
        if not 0 < length <= len(view) - position:
            raise DecompressionFailed(f"snappy: block of {length} bytes")
        plain += _snappy_block(view[position : position + length], max_bytes - len(plain))
        position += length
    return bytes(plain)


def _snappy_block(block: memoryview, max_bytes: int) -> bytes:
    snappy = _library("cramjam", Compression.SNAPPY).snappy
    try:
        size, _ = decode_unsigned(block, 0)  # a raw block says first how much it holds
    except (IndexError, DecodeError):
        raise DecompressionFailed("snappy: no size") from None
    if size > max_bytes:
        raise _too_large(Compression.SNAPPY, max_bytes)
    return bytes(snappy.decompress_raw(bytes(block)))


_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_VERSIONS = b"\0\0\0\1\0\0\0\1"  # version, and the oldest that can read it
_XERIAL_BLOCK = 32 * 1024
_INT32 = Format(">i")


# lz4


def _lz4_compress(data: Buffer, level: int | None) -> bytes:
    """Levels 1 to 17. Kafka's default, 9, is its fast compressor; all others are high ones."""
    frame = _library("lz4.frame", Compression.LZ4)
    high = level is not None and level != _LZ4_FAST
    # Java clients refuse blocks that depend on each other.
    compressed: bytes = frame.compress(
        data,
        compression_level=min(max(level or 0, _LZ4_LOWEST_HIGH), _LZ4_HIGHEST) if high else 0,
        block_linked=False,
        store_size=False,
    )
    return compressed


_LZ4_FAST = 9
_LZ4_LOWEST_HIGH = 3
_LZ4_HIGHEST = 16


def _lz4_decompress(data: Buffer, max_bytes: int) -> bytes:
    frame = _library("lz4.frame", Compression.LZ4)
    plain = bytearray()
    rest = bytes(data)
    while rest:
        decompressor = frame.LZ4FrameDecompressor()
        plain += decompressor.decompress(rest, max_bytes + 1 - len(plain))
        if len(plain) > max_bytes:
            raise _too_large(Compression.LZ4, max_bytes)
        if not decompressor.eof:
            raise DecompressionFailed("lz4: truncated")
        rest = decompressor.unused_data or b""
    return bytes(plain)


# zstd


def _zstd_compress(data: Buffer, level: int | None) -> bytes:
    """Levels -131072 to 22; the default is 3."""
    zstandard = _library("zstandard", Compression.ZSTD)
    compressor = zstandard.ZstdCompressor(level=3 if level is None else level)
    compressed: bytes = compressor.compress(data)
    return compressed


def _zstd_decompress(data: Buffer, max_bytes: int) -> bytes:
    zstandard = _library("zstandard", Compression.ZSTD)
    limits = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    plain = bytearray()
    rest = bytes(data)
    while rest:  # several frames may follow each other
        decompressor = limits.decompressobj()
        while rest and not decompressor.eof:
            # The library cannot be told where to stop, so it is fed no more than what could
            # become `max_bytes` at zstd's best ratio.
            step = 64 + (max_bytes - len(plain)) // _ZSTD_BEST_RATIO
            plain += decompressor.decompress(rest[:step])
            if len(plain) > max_bytes:
                raise _too_large(Compression.ZSTD, max_bytes)
            rest = decompressor.unused_data + rest[step:]
        if not decompressor.eof:
            raise DecompressionFailed("zstd: truncated")
    return bytes(plain)


_ZSTD_WINDOW = 2**27
"""The library's own default, and the window of its highest level."""
_ZSTD_BEST_RATIO = 2**15
"""A block of 128 KiB takes at least four bytes."""


_COMPRESS: dict[Compression, Callable[[Buffer, int | None], bytes]] = {
    Compression.NONE: lambda data, _: bytes(data),
    Compression.GZIP: _gzip_compress,
    Compression.SNAPPY: _snappy_compress,
    Compression.LZ4: _lz4_compress,
    Compression.ZSTD: _zstd_compress,
}

_DECOMPRESS: dict[Compression, Callable[[Buffer, int], bytes]] = {
    Compression.NONE: lambda data, _: bytes(data),
    Compression.GZIP: _gzip_decompress,
    Compression.SNAPPY: _snappy_decompress,
    Compression.LZ4: _lz4_decompress,
    Compression.ZSTD: _zstd_decompress,
}
