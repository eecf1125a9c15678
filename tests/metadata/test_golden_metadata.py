"""RULES A3: a command log of each release replays to the digest it had then."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from logboat.metadata.apply import apply
from logboat.metadata.codec import decode_command, encode_command
from logboat.metadata.snapshot import digest_of, empty_image

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("name", ["metadata-level-1.bin"])
def test_a3_golden_command_log_replays_to_its_digest(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    image = empty_image("test-cluster")
    position, kinds = 0, set()
    while True:
        (index,) = struct.unpack_from(">I", data, position)
        position += 4
        if index == 0:
            break
        (length,) = struct.unpack_from(">I", data, position)
        raw = data[position + 4 : position + 4 + length]
        position += 4 + length
        command = decode_command(raw)
        assert encode_command(command, level=1) == raw
        kinds.add(type(command).__name__)
        image, _ = apply(image, index, command)
    assert digest_of(image) == data[position:]
    assert len(kinds) == 16, f"the log lacks some commands, it has {sorted(kinds)}"
