"""Commands and images as bytes (RULES A2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.metadata.codec import COMMAND_FORMAT, decode_command, encode_command
from logboat.metadata.commands import Command, NewController
from logboat.metadata.packing import Malformed, packer_of, since
from logboat.metadata.snapshot import decode_snapshot, empty_image, encode_snapshot
from logboat.seam import Fatal
from tests.metadata.cluster_builder import Cluster

long = st.integers(-(2**63), 2**63 - 1)
st.register_type_strategy(int, long)


@pytest.mark.parametrize("kind", get_args(Command), ids=lambda kind: kind.__name__)
def test_every_command_comes_back_as_it_was(kind: type[Command]) -> None:
    @given(command=st.from_type(kind))
    @settings(max_examples=10, deadline=None)
    def check(command: Command) -> None:
        data = encode_command(command)
        assert decode_command(data) == command
        assert encode_command(decode_command(data)) == data

    check()


def test_a2_unknown_command_ends_the_process_with_one_sentence() -> None:
    data = encode_command(NewController(1, 1))
    for unknown in (
        bytes([COMMAND_FORMAT + 1]) + data[1:],
        data[:1] + b"\x63" + data[2:],
        data[:2] + b"\x7f\xff" + data[4:],
    ):
        with pytest.raises(Fatal, match="does not know") as raised:
            decode_command(unknown)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("data", [b"", b"\x01", encode_command(NewController(1, 1))[:-1]])
def test_damaged_command_ends_the_process(data: bytes) -> None:
    with pytest.raises(Fatal):
        decode_command(data)


@given(data=st.binary(max_size=64))
@settings(deadline=None)
def test_garbage_is_fatal_and_nothing_else(data: bytes) -> None:
    header = encode_command(NewController(1, 1))[:4]
    with pytest.raises(Fatal):
        decode_command(header + b"\xc1" + data)


@dataclass(frozen=True)
class Grown:
    old: int
    added: str = field(default="?", metadata=since(2))


def test_a2_a_field_of_a_later_level_is_not_written_for_an_earlier_one() -> None:
    first, second = packer_of(Grown, 1), packer_of(Grown, 2)
    assert first.decode(first.encode(Grown(7, "new"))) == Grown(7, "?")
    assert second.decode(second.encode(Grown(7, "new"))) == Grown(7, "new")
    with pytest.raises(Malformed):
        second.decode(first.encode(Grown(7)))


def test_maps_are_written_in_the_order_of_their_keys() -> None:
    packer = packer_of(Mapping[str, int], 1)
    assert packer.encode({"b": 1, "a": 2}) == packer.encode({"a": 2, "b": 1})
    uuids = packer_of(Mapping[UUID, int], 1)
    assert uuids.encode({UUID(int=2): 0, UUID(int=1): 0}) == uuids.encode(
        {UUID(int=1): 0, UUID(int=2): 0}
    )


@pytest.mark.parametrize("hint", [float, set, dict, int | str])
def test_what_has_more_than_one_form_cannot_be_declared(hint: object) -> None:
    with pytest.raises(TypeError, match="one way only"):
        packer_of(hint, 1)


def test_bool_and_int_are_not_confused() -> None:
    with pytest.raises(Malformed):
        packer_of(int, 1).decode(packer_of(bool, 1).encode(True))


def test_snapshot_gives_back_the_whole_image() -> None:
    cluster = Cluster()
    cluster.create((1, 2, 3), (2, 3, 1), configs={"retention.ms": "5"})
    cluster.fence(3)
    image = decode_snapshot(encode_snapshot(cluster.image))
    assert image == cluster.image
    assert image.topic_names == cluster.image.topic_names


def test_snapshot_of_one_flipped_bit_is_fatal() -> None:
    data = bytearray(encode_snapshot(empty_image("c")))
    for position in range(len(data)):
        data[position] ^= 4
        with pytest.raises(Fatal):
            decode_snapshot(bytes(data))
        data[position] ^= 4
