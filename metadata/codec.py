"""Commands as bytes of the quorum's log.

`u8 format | u8 level | u16 kind | msgpack array of the fields`. The level is the one of the image
the command was made for; it decides the layout (RULES A2).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType

from ..seam import Fatal
from .commands import (
    AllocateProducerIds,
    AlterConfigs,
    AlterPartition,
    Command,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    Digest,
    ElectLeaders,
    FeatureLevel,
    FenceBroker,
    NewController,
    PinVoterDirectory,
    RegisterBroker,
    ReorderReplicas,
    ReplicasLost,
    SetControlledShutdown,
    UnfenceBroker,
    UnregisterBroker,
)
from .levels import FIRST_LEVEL, LATEST_LEVEL
from .packing import Malformed, Packer, packer_of
from .steps import Steps

COMMAND_FORMAT = 1

SHORT_BYTES = 2_048
"""A command up to this size needs no steps to be decoded."""

_HEADER = struct.Struct(">BBH")

_KINDS: Mapping[int, type[Command]] = MappingProxyType(
    {
        1: NewController,
        2: RegisterBroker,
        3: FenceBroker,
        4: UnfenceBroker,
        5: SetControlledShutdown,
        6: UnregisterBroker,
        7: CreateTopics,
        8: DeleteTopics,
        9: CreatePartitions,
        10: AlterPartition,
        11: ElectLeaders,
        12: AlterConfigs,
        13: AllocateProducerIds,
        14: PinVoterDirectory,
        15: FeatureLevel,
        16: Digest,
        17: ReplicasLost,
        18: ReorderReplicas,
    }
)
"""Numbers are never used again for another command."""

_KIND_OF: Mapping[type[Command], int] = MappingProxyType(
    {cls: kind for kind, cls in _KINDS.items()}
)

_PACKERS: Mapping[tuple[int, int], Packer[Command]] = MappingProxyType(
    {
        (level, kind): packer_of(cls, level)
        for level in range(FIRST_LEVEL, LATEST_LEVEL + 1)
        for kind, cls in _KINDS.items()
    }
)


def encode_command(command: Command, level: int = LATEST_LEVEL) -> bytes:
    """Exact inverse of `decode_command`; equal commands give equal bytes."""
    kind = _KIND_OF[type(command)]
    return _HEADER.pack(COMMAND_FORMAT, level, kind) + _PACKERS[level, kind].encode(command)


def decode_command(data: bytes) -> Command:
    """Raises Fatal: a node that does not know a committed command cannot go on (RULES A2)."""
    kind, packer = _packer_of(data)
    try:
        return packer.decode(data[_HEADER.size :])
    except Malformed as error:
        raise _malformed(kind, error) from error


def decode_in_steps(data: bytes) -> Steps[Command]:
    """The same, leaving the loop to others in between (RULES F1)."""
    kind, packer = _packer_of(data)
    try:
        return (yield from packer.decode_in_steps(data[_HEADER.size :]))
    except Malformed as error:
        raise _malformed(kind, error) from error


def _packer_of(data: bytes) -> tuple[int, Packer[Command]]:
    if len(data) < _HEADER.size:
        raise Fatal(f"a command of {len(data)} bytes stands in the quorum's log")
    form, level, kind = _HEADER.unpack_from(data)
    packer = _PACKERS.get((level, kind))
    if form != COMMAND_FORMAT or packer is None:
        raise Fatal(
            f"the quorum's log holds a command of format {form}, level {level}, kind {kind}, which "
            f"this release does not know (format {COMMAND_FORMAT}, levels up to {LATEST_LEVEL}, "
            f"kinds up to {max(_KINDS)}): start a newer release on this node"
        )
    return kind, packer


def _malformed(kind: int, error: Malformed) -> Fatal:
    name = _KINDS[kind].__name__
    return Fatal(f"a {name} command in the quorum's log is malformed: {error}")
