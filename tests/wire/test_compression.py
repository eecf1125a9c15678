"""Codecs: both ways, bounded, and plain about what is missing."""

from __future__ import annotations

import gzip
import importlib
import random
import tracemalloc
from typing import Any

import cramjam
import lz4.frame
import pytest
import zstandard

from logboat.wire import compression as module
from logboat.wire.compression import (
    Compression,
    CompressionUnavailable,
    DecompressionFailed,
    compress,
    decompress,
)

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
TEXT = b"a log that is worth keeping, " * 5000
NOISE = random.Random(1).randbytes(100_000)


@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE], ids=["empty", "byte", "text", "noise"])
@pytest.mark.parametrize("codec", Compression, ids=lambda codec: codec.name)
def test_what_was_compressed_comes_back(codec: Compression, data: bytes) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        squeezed = compress(codec, buffer)
        assert decompress(codec, memoryview(squeezed), max_bytes=len(data)) == data


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_small_block_cannot_fill_the_memory(codec: Compression) -> None:
    bomb = compress(codec, bytes(2**24))
    decompress(codec, compress(codec, b"warm"), max_bytes=10)
    tracemalloc.start()
    try:
        with pytest.raises(DecompressionFailed, match=r"more than \d+ bytes"):
            decompress(codec, bomb, max_bytes=100_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * 2**20


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_damaged_block_is_refused(codec: Compression) -> None:
    squeezed = compress(codec, TEXT)
    for damaged in (squeezed[: len(squeezed) // 2], b"\xff" * 40):
        with pytest.raises(DecompressionFailed, match=codec.name.lower()):
            decompress(codec, damaged, max_bytes=2**20)


def test_gzip_reads_several_members_as_one() -> None:
    data = gzip.compress(b"one ") + gzip.compress(b"two")
    assert decompress(Compression.GZIP, data, max_bytes=100) == b"one two"
    assert gzip.decompress(compress(Compression.GZIP, TEXT)) == TEXT


def test_snappy_writes_the_stream_of_java_and_reads_both_dresses() -> None:
    squeezed = compress(Compression.SNAPPY, TEXT)
    assert squeezed.startswith(b"\x82SNAPPY\0\0\0\0\1\0\0\0\1")
    length = int.from_bytes(squeezed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(squeezed[20 : 20 + length])) == TEXT[: 32 * 1024]
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(Compression.SNAPPY, raw, max_bytes=len(TEXT)) == TEXT


@pytest.mark.parametrize(
    "stream",
    [
        b"\x82SNAPPY\0",
        b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0",
        b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0\0\0",
        b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\xff\xff\xff\xffabc",
        b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0\0\x09abc",
        b"",
        b"\xff\xff\xff\xff\xff\xff",
    ],
)
def test_a_broken_snappy_stream_is_refused(stream: bytes) -> None:
    with pytest.raises(DecompressionFailed):
        decompress(Compression.SNAPPY, stream, max_bytes=1000)


def test_lz4_frames_have_independent_blocks() -> None:
    squeezed = compress(Compression.LZ4, TEXT)
    assert squeezed[:4] == b"\x04\x22\x4d\x18"
    assert squeezed[4] & 0x20  # Java clients refuse blocks that depend on each other
    assert decompress(Compression.LZ4, lz4.frame.compress(TEXT), max_bytes=len(TEXT)) == TEXT


def test_zstd_reads_streams_that_do_not_say_their_size() -> None:
    stream = zstandard.ZstdCompressor(level=19).compressobj()
    squeezed = stream.compress(TEXT) + stream.flush()
    assert decompress(Compression.ZSTD, squeezed, max_bytes=len(TEXT)) == TEXT
    assert decompress(Compression.ZSTD, squeezed + squeezed, max_bytes=2**20) == TEXT + TEXT


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", missing)
    assert importlib.import_module is not missing
    for codec, package in (
        (Compression.SNAPPY, "cramjam"),
        (Compression.LZ4, "lz4"),
        (Compression.ZSTD, "zstandard"),
    ):
        with pytest.raises(CompressionUnavailable, match=rf"{package}.*logboat\[compression\]"):
            compress(codec, b"x")
        with pytest.raises(CompressionUnavailable, match=package):
            decompress(codec, b"\x01x", max_bytes=10)
