"""What travels between two kernels."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

MAX_SEGMENT_BYTES = 64 * 1024
WINDOW_BYTES = 256 * 1024
"""Bytes of one direction that may be on their way or unread by the receiving process."""


class Kind(Enum):
    DATA = "data"
    FIN = "fin"
    RST = "rst"
    ACK = "ack"
    """The receiving process has read this many bytes."""


class Segment(NamedTuple):
    kind: Kind
    data: bytes = b""
    consumed: int = 0
