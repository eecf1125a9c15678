"""What a disk does to bytes while nobody looks: where, and what stands there then. Pure."""

from __future__ import annotations

from random import Random

from .schedule import Fault

SECTOR_BYTES = 512
QUORUM = "quorum/"


def is_at(path: str, place: str) -> bool:
    """Whether a damage at this place may hit the file. `path`: within the data directory."""
    if place == "quorum":
        return path.startswith(QUORUM)
    if path.startswith(QUORUM):
        return False
    if place == "log":
        return path.endswith(".log")
    if place == "index":
        return path.endswith(("index", ".snapshot"))
    return path.endswith("-checkpoint")


def changed(fault: Fault, content: bytes, other: bytes, dice: Random) -> tuple[int, bytes]:
    """(position, the bytes that stand there now) in a file that is not empty. `other`: what a
    misdirected write may have been meant for."""
    position = min(int(float(fault.option("where")) * len(content)), len(content) - 1)
    if fault.kind == "bit-flip":
        return position, bytes([content[position] ^ 1 << int(fault.option("bit"))])
    sector = position // SECTOR_BYTES * SECTOR_BYTES
    if fault.kind == "stale-block":
        # A write that the device reported and never did: before it there was nothing.
        new = bytes(SECTOR_BYTES)
    else:
        # A write that belongs elsewhere landed here.
        start = dice.randrange(max(1, len(other) - SECTOR_BYTES + 1))
        new = other[start : start + SECTOR_BYTES]
    return sector, new[: len(content) - sector]
