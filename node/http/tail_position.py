"""Where a reader of a topic stands, and how an event says so.

    <topic id>:<partition>:<leader epoch>:<offset>[,<partition>:<leader epoch>:<offset>...]

The first place is the event's own; those of the tail's other partitions follow, so that the last
event that was seen is enough to go on everywhere. Offset and epoch are those of the last record
that was passed; -1 says that there was none. The topic's id tells a topic from one that was created
later under its name, the epoch a record from one that took its offset after a truncation (KIP-320).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from ...seam import frozen
from .errors import ApiError

NO_EPOCH = -1
LONGEST_ID = 8_192
_LARGEST_OFFSET = 2**63 - 2
_LARGEST_INT32 = 2**31 - 1


class Position(NamedTuple):
    """In one partition."""

    next_offset: int
    last_epoch: int = NO_EPOCH
    """Of the record before; NO_EPOCH where it is not known, and then it cannot be checked."""


@frozen
class EventId:
    topic_id: UUID
    positions: Mapping[int, Position]

    @classmethod
    def parse(cls, text: str) -> EventId:
        """Raises ApiError 400."""
        topic, _, places = text.partition(":")
        try:
            if len(text) > LONGEST_ID or not text.isascii():
                raise ValueError
            positions = dict(_place(place) for place in places.split(","))
            return cls(UUID(topic), positions)
        except ValueError:
            raise ApiError(
                400,
                f"{text[:80]!r} is no id of an event",
                hint="send the id of the last event as it came, or none",
            ) from None


def _place(text: str) -> tuple[int, Position]:
    partition, epoch, offset = (int(number) for number in text.split(":"))
    if not (
        0 <= partition <= _LARGEST_INT32
        and NO_EPOCH <= epoch <= _LARGEST_INT32
        and -1 <= offset <= _LARGEST_OFFSET
    ):
        raise ValueError
    return partition, Position(offset + 1, epoch)


def place_text(partition: int, epoch: int, offset: int) -> str:
    """One place of an id; `offset` is that of the last record."""
    return f"{partition}:{epoch}:{offset}"


def places_text(positions: Mapping[int, Position]) -> str:
    return ",".join(
        place_text(partition, position.last_epoch, position.next_offset - 1)
        for partition, position in positions.items()
    )
